package sqlite

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"zombiezen.com/go/sqlite"
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
func (s *Store) Claim(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	scope, err := lane.NewScope(c)
	if err != nil {
		return nil, err
	}
	rings := s.bell.rings()
	err = s.claims.with(ctx, func(beside *session) error { // one claim plans at a time; see above
		e := errand{c, scope, s.plan.turns.Guard()}
		seen, err := s.plan.lookBeside(beside, e, s.now().UnixMicro())
		if s.plan.brought = len(seen.leases); err != nil || seen.nothing() {
			return err
		}
		err = s.writer.write(ctx, func(t *tx) (err error) {
			leases, err = s.plan.claim(t, e, seen)
			return err
		})
		if err != nil {
			s.plan.forget(scope)
		}
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	if len(leases) < c.Limit && len(c.Kinds) == 0 { // with kinds, jobs of other kinds may still wait in these queues
		s.bell.drained(c.Queues, rings)
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
	lowest  = key{math.MinInt64, nil}
	highest = key{math.MaxInt64, bytes.Repeat([]byte{0xff}, 17)}
)

// A claimPlan is what a claim would take, with everything that the plan depends on: the holds, the edit counter, the
// counts of live jobs, and the position and token of each job.
type sight struct {
	holds  []held
	edits  int64 // holdfast_feed.edits: how often facts of queued jobs were changed
	shares []share
	leases []holdfast.Lease // with the facts of the jobs, in the order of the claim
	sorted bool             // leases are in order already
	bytes  int              // the size of their arguments and checkpoints
	full   bool             // the jobs have more bytes than the claim may have
	aside  []aside          // jobs that wait behind a held tag and are to be set aside

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
	row      []stand
	runs     []run // where these rows are now, found when they are taken
}

// A readyRow is the position of a job in its line, with the token that the claim will give it.
type stand struct {
	priority int64
	job      holdfast.ID
	token    int
}

// A heldJob is a ready job that has a held tag.
type aside struct {
	stand
	number int64
	tag    string
}

// empty reports whether there is nothing to take and nothing to set aside.
func (v *sight) nothing() bool { return len(v.leases) == 0 && len(v.aside) == 0 }

// addShares adds picked shares to the plan. Their rows are not read yet.
func (v *sight) pick(picked []lane.Share) {
	for _, s := range picked {
		from, to := int64(math.MinInt16), int64(math.MaxInt16)
		if s.Priority != nil {
			from, to = int64(*s.Priority), int64(*s.Priority)
		}
		v.shares = append(v.shares, share{line: line{s.Line, s.Lane}, limit: s.Jobs, from: from, to: to})
	}
}

// takenShares returns how many jobs the plan takes from each line.
func (v *sight) taken() (all []lane.Share) {
	for i := range v.shares {
		all = append(all, lane.Share{Lane: v.shares[i].lane, Line: v.shares[i].number, Jobs: len(v.shares[i].row)})
	}
	return all
}

// planOnReader plans a claim on a reading connection, in one read transaction, so that all of it is read at one moment.
func (p *planner) lookBeside(s *session, e errand, now int64) (seen sight, err error) {
	if _, err := s.exec("begin_read"); err != nil {
		return sight{}, err
	}
	seen, err = p.look(e.view(s, now, p.lanes), e)
	if _, ended := s.exec("rollback"); err == nil {
		err = ended
	}
	return seen, err
}

// sort puts the leases of several shares into the order of the claim. Leases are large, so each is moved only once.
func (v *sight) sort() {
	order := make([]*holdfast.Lease, len(v.leases))
	for i := range v.leases {
		order[i] = &v.leases[i]
	}
	slices.SortFunc(order, func(a, b *holdfast.Lease) int {
		return key{int64(a.Priority), a.ID[:]}.compare(key{int64(b.Priority), b.ID[:]})
	})
	sorted := make([]holdfast.Lease, len(order))
	for i, l := range order {
		sorted[i] = *l
	}
	v.leases = sorted
}

// readShare reads the facts of a share's jobs. Jobs behind a held tag go to setAside; the share keeps the others. It
// stops when the claim has as many bytes as it may have; the first job is always read.
func (v *sight) read(from *view, of *share) error {
	of.row = make([]stand, 0, min(of.limit, max(cap(v.leases), 16)))
	return from.rows("read_ready_jobs", []any{of.number, of.limit, of.from, of.to, of.after}, func(st *sqlite.Stmt) error {
		if v.full {
			return nil
		}
		v.leases = append(v.leases, holdfast.Lease{})
		l := &v.leases[len(v.leases)-1]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes = st.ColumnInt(20), st.ColumnInt(21), st.ColumnInt(22)
		l.Interrupts, l.Generation = st.ColumnInt(23), st.ColumnInt(24)
		at := stand{st.ColumnInt64(19), l.ID, l.Token}
		if tag, held := from.valves.Held(l.Tags); held {
			v.aside = append(v.aside, aside{at, of.number, tag})
			v.leases = v.leases[:len(v.leases)-1]
			return nil
		}
		of.row = append(of.row, at)
		v.bytes += len(l.Args) + len(l.Checkpoint)
		v.full = from.bytes > 0 && v.bytes > from.bytes && len(v.leases) > 1
		return nil
	})
}

// maxSetAside is how many jobs behind held tags one claim sets aside before it returns with what it has.
const patience = 10_000

// claim takes what was planned. It runs in the write transaction.
//
// If the plan is unchanged, it is taken as it is. Jobs that became ready after planning are left to the next claim. If
// anything has changed, or after jobs were set aside and others may take their place, claim plans again in this
// transaction, where no other connection can write. A plan that was made inside the transaction cannot be outdated, so
// a second refusal means that the rows contradict each other.
func (p *planner) claim(t *tx, e errand, seen sight) ([]holdfast.Lease, error) {
	for refused, put := 0, 0; refused < 2; {
		stands, err := seen.stands(t, p)
		if err != nil {
			return nil, err
		}
		if stands {
			if err := t.setAside(seen.aside); err != nil {
				return nil, err
			}
			if put += len(seen.aside); len(seen.aside) == 0 || put >= patience {
				t.news.all = t.news.all || put >= patience
				return seen.take(t, e.Claim)
			}
		} else {
			refused++
			p.forget(e.scope)
		}
		p.undo(&seen)
		v := e.view(t.session, t.now, p.lanes)
		v.writes = true
		if seen, err = p.look(v, e); err != nil || seen.nothing() {
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
func (v *sight) stands(t *tx, p *planner) (bool, error) {
	holds, edits, err := readHolds(t.session)
	if err != nil || edits != v.edits || !slices.Equal(holds, v.holds) {
		return false, err
	}
	if v.live != nil {
		live, err := p.count(t.session)
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
		if v.shares[i].runs, err = v.shares[i].findRuns(t); err != nil || v.shares[i].runs == nil {
			return false, err
		}
	}
	return true, nil
}

// setAside moves jobs behind held tags out of the claims' way. Nothing else about them changes: it costs no attempt and
// no charge.
func (t *tx) setAside(jobs []aside) error {
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
func (v *sight) take(t *tx, c holdfast.Claim) ([]holdfast.Lease, error) {
	if len(v.leases) == 0 {
		return nil, nil
	}
	for i := range v.shares {
		for _, r := range v.shares[i].runs {
			if _, err := t.exec("delete_ready_range", v.shares[i].number, r.first.priority, r.first.job, r.last.job); err != nil {
				return nil, err
			}
		}
	}
	if v.valves != nil {
		for _, spent := range v.valves.Spend(v.taken()) {
			if err := t.deposit(spent); err != nil {
				return nil, err
			}
		}
	}
	return deliver(t, c, v.leases)
}

// A keyRange is a range of a line that contains only jobs of one share, all of one priority.
type run struct{ first, last *stand }

// findRanges finds the ranges of a line in which the share's jobs are, so that each range can be deleted by key. There
// is one range for each priority; there are more only where another job lies in between, or a row without facts, which
// is left for the integrity check. The result is nil if a job of the share is gone, or has another token because it was
// claimed and returned meanwhile.
func (s *share) findRuns(t *tx) (all []run, err error) {
	for left := s.row; len(left) > 0; {
		n := slices.IndexFunc(left, func(at stand) bool { return at.priority != left[0].priority })
		if n < 0 {
			n = len(left)
		}
		met, on := 0, false
		err = t.rows("read_ready_range", []any{s.number, left[0].priority, left[0].job, left[n-1].job}, func(st *sqlite.Stmt) error {
			if met == n || left[met].job != columnID(st, 0) || left[met].token != st.ColumnInt(1) {
				on = false
				return nil
			}
			if !on {
				all, on = append(all, run{first: &left[met]}), true
			}
			all[len(all)-1].last = &left[met]
			met++
			return nil
		})
		if err != nil || met < n {
			return nil, err
		}
		left = left[n:]
	}
	return all, nil
}

// startBatch writes the batch row and completes the leases. The first c.Start jobs count as started. A job that was
// interrupted or lost before counts as started from its claim on, so that losing it again is charged as a crash and not
// as a release.
func deliver(t *tx, c holdfast.Claim, leases []holdfast.Lease) ([]holdfast.Lease, error) {
	batch := &lease{id: holdfast.NewID(), worker: c.Worker, claimed: t.now, expires: t.at(c.Lease), members: make([]member, len(leases))}
	now, until := instant(batch.claimed), instant(batch.expires)
	for i := range leases {
		l := &leases[i]
		l.Batch, l.Worker, l.LeaseUntil, l.AsOf, l.StartedAt = batch.id, c.Worker, until, now, time.Time{}
		started := i < c.Start || l.Interrupts > 0 || l.Crashes > 0
		if started {
			l.StartedAt = now
		}
		batch.members[i] = member{job: l.ID, token: l.Token, failures: l.Failures, crashes: l.Crashes, interrupts: l.Interrupts, generation: l.Generation, started: started}
	}
	return leases, t.begin(batch)
}
