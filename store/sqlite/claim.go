package sqlite

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Claim gives due jobs to the caller, in order of priority and age, within the holds and in fair turns between owners.
//
// A claim has two steps. First it plans on a reading connection beside the writer: it chooses the jobs and reads their
// facts, in the caller's own time. Then the writer takes exactly the planned jobs, after it has verified in its own
// transaction that nothing that the plan depends on has changed (see claimPlan.unchanged). If something has changed,
// the writer plans again inside the transaction, where no other claim can interfere. A claim that finds no job does not
// use the writer at all.
//
// Claims of one process plan one at a time: two that planned at the same moment would choose the same jobs. Claims of
// several processes are kept apart by the verification, and no job is given out twice, because only the write
// transaction removes rows from holdfast_ready.
func (s *Store) Claim(ctx context.Context, c store.Claim) (leases []store.Lease, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	scope, err := lane.NewScope(c)
	if err != nil {
		return nil, err
	}
	rings := s.waker.round()
	err = s.claims.with(ctx, func(beside *session) error { // one claim plans at a time; see above
		e := claimRequest{c, scope, s.planner.turns.Guard()}
		plan, err := s.planner.planOnReader(beside, e, s.now().UnixMicro())
		if s.planner.lastClaimed = len(plan.leases); err != nil || plan.empty() {
			return err
		}
		err = s.writer.write(ctx, func(t *tx) (err error) {
			leases, err = s.planner.claim(t, e, plan)
			return err
		})
		if err != nil {
			s.planner.dropCache(scope)
		}
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	if len(leases) < c.Limit && len(c.Kinds) == 0 { // with kinds, jobs of other kinds may still wait in these queues
		s.waker.drained(c.Queues, rings)
	}
	return leases, nil
}

// A key is a position in the order of claims within a line: priority first, then age (the job's id).
type key struct {
	priority int64
	job      []byte
}

func (k key) compare(o key) int {
	switch {
	case k.priority < o.priority:
		return -1
	case k.priority > o.priority:
		return 1
	}
	return bytes.Compare(k.job, o.job)
}

// lowestKey sorts before and highestKey after every key. The job of highestKey is longer than any id.
var (
	lowestKey  = key{math.MinInt64, nil}
	highestKey = key{math.MaxInt64, bytes.Repeat([]byte{0xff}, 17)}
)

// A claimPlan is what a claim would take, with everything that the plan depends on: the holds, the edit counter, the
// counts of live jobs, and the position and token of each job.
type claimPlan struct {
	holds    []holdRow
	edits    int64 // holdfast_feed.edits: how often facts of queued jobs were changed
	shares   []share
	leases   []store.Lease // with the facts of the jobs, in the order of the claim
	sorted   bool          // leases are in order already
	bytes    int           // the size of their arguments and checkpoints
	full     bool          // the jobs have more bytes than the claim may have
	setAside []heldJob     // jobs that wait behind a held tag and are to be set aside

	// Only when a hold limits how many jobs pass.
	valves *lane.Valves
	live   map[int64]int // processing jobs by line; nil: not counted
}

// A share is what a claim takes from one line: its first jobs, or the first jobs of one priority.
type share struct {
	line
	limit    int
	from, to int64  // priorities
	after    []byte // with priority from, begin behind this job; nil: at the first
	rows     []readyRow
	ranges   []keyRange // where these rows are now, found when they are taken
}

// A readyRow is the position of a job in its line, with the token that the claim will give it.
type readyRow struct {
	priority int64
	job      holdfast.ID
	token    int
}

// A heldJob is a ready job that has a held tag.
type heldJob struct {
	readyRow
	number int64
	tag    string
}

// empty reports whether there is nothing to take and nothing to set aside.
func (v *claimPlan) empty() bool { return len(v.leases) == 0 && len(v.setAside) == 0 }

// addShares adds picked shares to the plan. Their rows are not read yet.
func (v *claimPlan) addShares(picked []lane.Share) {
	for _, s := range picked {
		from, to := int64(math.MinInt16), int64(math.MaxInt16)
		if s.Priority != nil {
			from, to = int64(*s.Priority), int64(*s.Priority)
		}
		v.shares = append(v.shares, share{line: line{s.Line, s.Lane}, limit: s.Jobs, from: from, to: to})
	}
}

// takenShares returns how many jobs the plan takes from each line.
func (v *claimPlan) takenShares() (all []lane.Share) {
	for i := range v.shares {
		all = append(all, lane.Share{Lane: v.shares[i].lane, Line: v.shares[i].number, Jobs: len(v.shares[i].rows)})
	}
	return all
}

// planOnReader plans a claim on a reading connection, in one read transaction, so that all of it is read at one moment.
func (p *claimPlanner) planOnReader(s *session, e claimRequest, now int64) (plan claimPlan, err error) {
	if _, err := s.exec("begin_read"); err != nil {
		return claimPlan{}, err
	}
	plan, err = p.plan(e.view(s, now, p.lanes), e)
	if _, ended := s.exec("rollback"); err == nil {
		err = ended
	}
	return plan, err
}

// sort puts the leases of several shares into the order of the claim. Leases are large, so each is moved only once.
func (v *claimPlan) sort() {
	order := make([]*store.Lease, len(v.leases))
	for i := range v.leases {
		order[i] = &v.leases[i]
	}
	slices.SortFunc(order, func(a, b *store.Lease) int {
		return key{int64(a.Priority), a.ID[:]}.compare(key{int64(b.Priority), b.ID[:]})
	})
	sorted := make([]store.Lease, len(order))
	for i, l := range order {
		sorted[i] = *l
	}
	v.leases = sorted
}

// readShare reads the facts of a share's jobs. Jobs behind a held tag go to setAside; the share keeps the others. It
// stops when the claim has as many bytes as it may have; the first job is always read.
func (v *claimPlan) readShare(from *claimView, of *share) error {
	of.rows = make([]readyRow, 0, min(of.limit, max(cap(v.leases), 16)))
	return from.rows("read_ready_jobs", []any{of.number, of.limit, of.from, of.to, of.after}, func(st *sqlite.Stmt) error {
		if v.full {
			return nil
		}
		v.leases = append(v.leases, store.Lease{})
		l := &v.leases[len(v.leases)-1]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes = st.ColumnInt(20), st.ColumnInt(21), st.ColumnInt(22)
		l.Releases, l.Generation = st.ColumnInt(23), st.ColumnInt(24)
		at := readyRow{st.ColumnInt64(19), l.ID, l.Token}
		if tag, held := from.valves.Held(l.Tags); held {
			v.setAside = append(v.setAside, heldJob{at, of.number, tag})
			v.leases = v.leases[:len(v.leases)-1]
			return nil
		}
		of.rows = append(of.rows, at)
		v.bytes += len(l.Args) + len(l.Checkpoint)
		v.full = from.bytes > 0 && v.bytes > from.bytes && len(v.leases) > 1
		return nil
	})
}

// maxSetAside is how many jobs behind held tags one claim sets aside before it returns with what it has.
const maxSetAside = 10_000

// claim takes what was planned. It runs in the write transaction.
//
// If the plan is unchanged, it is taken as it is. Jobs that became ready after planning are left to the next claim. If
// anything has changed, or after jobs were set aside and others may take their place, claim plans again in this
// transaction, where no other connection can write. A plan that was made inside the transaction cannot be outdated, so
// a second refusal means that the rows contradict each other.
func (p *claimPlanner) claim(t *tx, e claimRequest, plan claimPlan) ([]store.Lease, error) {
	for refused, setAside := 0, 0; refused < 2; {
		stands, err := plan.unchanged(t, p)
		if err != nil {
			return nil, err
		}
		if stands {
			if err := t.setAside(plan.setAside); err != nil {
				return nil, err
			}
			if setAside += len(plan.setAside); len(plan.setAside) == 0 || setAside >= maxSetAside {
				t.wakeup.allQueues = t.wakeup.allQueues || setAside >= maxSetAside
				return plan.take(t, e.Claim)
			}
		} else {
			refused++
			p.dropCache(e.scope)
		}
		p.undoTurns(&plan)
		v := e.view(t.session, t.now, p.lanes)
		v.onWriter = true
		if plan, err = p.plan(v, e); err != nil || plan.empty() {
			return nil, err
		}
	}
	return nil, unavailable("jobs are ready but cannot be claimed: run `holdfast doctor`", nil)
}

// unchanged reports whether everything that the plan depends on is as it was when the plan was made, and finds where
// the rows of all shares are. It is what makes planning beside the writer safe:
//
//   - The holds and the edit counter are equal. So a hold that was committed before this transaction is obeyed, and the
//     facts that were read are those of the jobs.
//   - No line has more processing jobs than were counted. So a limit is never exceeded, even if another claim has used
//     the same capacity since.
//   - Every job is still at its position with the same token. So none was taken, moved or returned meanwhile.
func (v *claimPlan) unchanged(t *tx, p *claimPlanner) (bool, error) {
	holds, edits, err := readHolds(t.session)
	if err != nil || edits != v.edits || !slices.Equal(holds, v.holds) {
		return false, err
	}
	if v.live != nil {
		live, err := p.countLive(t.session)
		if err != nil {
			return false, err
		}
		for number, jobs := range live {
			if jobs > v.live[number] {
				return false, nil
			}
		}
	}
	for i := range v.shares {
		if v.shares[i].ranges, err = v.shares[i].findRanges(t); err != nil || v.shares[i].ranges == nil {
			return false, err
		}
	}
	return true, nil
}

// setAside moves jobs behind held tags out of the claims' way. Nothing else about them changes: it costs no attempt and
// no charge.
func (t *tx) setAside(jobs []heldJob) error {
	for i := range jobs {
		a := &jobs[i]
		if _, err := t.exec("set_aside", a.number, a.priority, a.job, a.tag); err != nil {
			return err
		}
		if _, err := t.exec("delete_ready_range", a.number, a.priority, a.job, a.job); err != nil {
			return err
		}
	}
	return nil
}

// take removes the rows of all shares from holdfast_ready, pays the rate limits for them, and gives the jobs to the
// caller as one batch.
func (v *claimPlan) take(t *tx, c store.Claim) ([]store.Lease, error) {
	if len(v.leases) == 0 {
		return nil, nil
	}
	for i := range v.shares {
		for _, r := range v.shares[i].ranges {
			if _, err := t.exec("delete_ready_range", v.shares[i].number, r.first.priority, r.first.job, r.last.job); err != nil {
				return nil, err
			}
		}
	}
	if v.valves != nil {
		for _, spent := range v.valves.Spend(v.takenShares()) {
			if err := t.deposit(spent); err != nil {
				return nil, err
			}
		}
	}
	return startBatch(t, c, v.leases)
}

// A keyRange is a range of a line that contains only jobs of one share, all of one priority.
type keyRange struct{ first, last *readyRow }

// findRanges finds the ranges of a line in which the share's jobs are, so that each range can be deleted by key. There
// is one range for each priority; there are more only where another job lies in between, or a row without facts, which
// is left for the integrity check. The result is nil if a job of the share is gone, or has another token because it was
// claimed and returned meanwhile.
func (s *share) findRanges(t *tx) (all []keyRange, err error) {
	for rest := s.rows; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(at readyRow) bool { return at.priority != rest[0].priority })
		if n < 0 {
			n = len(rest)
		}
		matched, inRange := 0, false
		err = t.rows("read_ready_range", []any{s.number, rest[0].priority, rest[0].job, rest[n-1].job}, func(st *sqlite.Stmt) error {
			if matched == n || rest[matched].job != columnID(st, 0) || rest[matched].token != st.ColumnInt(1) {
				inRange = false
				return nil
			}
			if !inRange {
				all, inRange = append(all, keyRange{first: &rest[matched]}), true
			}
			all[len(all)-1].last = &rest[matched]
			matched++
			return nil
		})
		if err != nil || matched < n {
			return nil, err
		}
		rest = rest[n:]
	}
	return all, nil
}

// startBatch writes the batch row and completes the leases. The first c.Start jobs count as started. A job that was
// interrupted or lost before counts as started from its claim on, so that losing it again is charged as a crash and not
// as a release.
func startBatch(t *tx, c store.Claim, leases []store.Lease) ([]store.Lease, error) {
	batch := &batch{id: holdfast.NewID(), worker: c.Worker, claimed: t.now, expires: t.at(c.Lease), members: make([]member, len(leases))}
	now, until := instant(batch.claimed), instant(batch.expires)
	for i := range leases {
		l := &leases[i]
		l.Batch, l.Worker, l.LeaseUntil, l.AsOf, l.StartedAt = batch.id, c.Worker, until, now, time.Time{}
		started := i < c.Start || l.Releases > 0 || l.Crashes > 0
		if started {
			l.StartedAt = now
		}
		batch.members[i] = member{job: l.ID, token: l.Token, failures: l.Failures, crashes: l.Crashes, interrupts: l.Releases, generation: l.Generation, started: started}
	}
	return leases, t.insertBatch(batch)
}
