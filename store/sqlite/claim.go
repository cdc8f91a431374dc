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

// Claim moves due jobs into the caller's hands. What it takes is read in the caller's own time, on a connection beside the
// writer; the writer only moves what was seen. A claim that sees nothing does not trouble the writer at all.
func (s *Store) Claim(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	scope, err := lane.NewScope(c)
	if err != nil {
		return nil, err
	}
	rings := s.bell.rings()
	err = s.claims.with(ctx, func(beside *session) error { // one claim at a time: two would see the same jobs
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
	if len(leases) < c.Limit && len(c.Kinds) == 0 { // jobs of other kinds may wait there
		s.bell.drained(c.Queues, rings)
	}
	return leases, nil
}

// A key is a place in the order of claims within ready: priority first, then age.
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

// Before and after every key. The second is longer than any id.
var (
	lowest  = key{math.MinInt64, nil}
	highest = key{math.MaxInt64, bytes.Repeat([]byte{0xff}, 17)}
)

// A sight is what a claim saw: the holds, what it would take from each line, and the facts of all that.
type sight struct {
	holds  []held
	edits  int64 // how often facts of queued jobs had been changed
	shares []share
	leases []holdfast.Lease // in the order of the claim
	sorted bool             // they are so already
	bytes  int              // of their arguments and checkpoints
	full   bool             // there were more bytes than the claim may have
	aside  []aside

	// When holds let only some through.
	valves *lane.Valves
	live   map[int64]int // jobs in workers' hands by line; nil: nobody counted
}

// A share is what a claim takes from one line: its first jobs, or the first of one priority.
type share struct {
	line
	limit    int
	from, to int64  // priorities
	after    []byte // a job of the first of them that the share begins behind; nil: none
	row      []stand
	runs     []run // as it stands when it is taken
}

// A stand is how a job stands in its line, with the token that a claim will give it.
type stand struct {
	priority int64
	job      holdfast.ID
	token    int
}

// An aside is a job that was met behind a held tag.
type aside struct {
	stand
	number int64
	tag    string
}

func (v *sight) nothing() bool { return len(v.leases) == 0 && len(v.aside) == 0 }

// pick makes the shares that were picked those of the claim.
func (v *sight) pick(picked []lane.Share) {
	for _, s := range picked {
		from, to := int64(math.MinInt16), int64(math.MaxInt16)
		if s.Priority != nil {
			from, to = int64(*s.Priority), int64(*s.Priority)
		}
		v.shares = append(v.shares, share{line: line{s.Line, s.Lane}, limit: s.Jobs, from: from, to: to})
	}
}

// taken is what the shares came to, for those who count.
func (v *sight) taken() (all []lane.Share) {
	for i := range v.shares {
		all = append(all, lane.Share{Lane: v.shares[i].lane, Line: v.shares[i].number, Jobs: len(v.shares[i].row)})
	}
	return all
}

// lookBeside looks on a connection that only reads.
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

// sort puts the shares of several lines into one order. Leases are large: each is moved once.
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

// read reads the facts of a share, and narrows the share to what is there and not behind a held tag.
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

// patience is how many jobs behind held tags a claim sets aside before it contents itself with what it has.
const patience = 10_000

// claim takes what was seen, if all of it still stands as it stood, behind holds that are still the same. What came between
// since then is the next claim's. If something is gone it looks again, where nobody can interfere; and so it does after it
// has set jobs aside, to find others in their place.
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
	return nil, unavailable("what is ready cannot be claimed: run the doctor", nil)
}

// stands reports whether everything is still as it was seen, and finds the runs of all shares.
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

// setAside moves jobs behind held tags out of the way. They are not touched otherwise: no attempt, no charge.
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

// take moves all shares out of their lines and pays for them.
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

// A run is a stretch of a line with nothing in it but jobs of one share, all of one priority.
type run struct{ first, last *stand }

// findRuns finds the stretches of a share. There is one for each priority, and more only if somebody came between, or rows
// without facts did, which stay for the audit. There is none if a job of the share is gone, or has been in other hands.
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

// deliver writes the lease and completes the answer. What has been in a lost worker's hands before is presumed started from
// then on.
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
