package sqlite

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// Claim moves due jobs into the caller's hands. What it takes is read in the caller's own time, on a connection beside the
// writer; the writer only moves what was seen. A claim that sees nothing does not trouble the writer at all.
func (s *Store) Claim(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := checkClaim(c); err != nil {
		return nil, err
	}
	rings := s.bell.rings()
	err = s.claims.with(ctx, func(beside *session) error { // one claim at a time: two would see the same jobs
		seen, err := lookBeside(beside, c, s.now().UnixMicro(), s.brought)
		if s.brought = len(seen.leases); err != nil || s.brought == 0 {
			return err
		}
		return s.writer.write(ctx, func(t *tx) (err error) {
			leases, err = claim(t, c, seen)
			return err
		})
	})
	if err != nil {
		return nil, explain(err)
	}
	if len(leases) < c.Limit {
		s.bell.drained(c.Queues, rings)
	}
	return leases, nil
}

func checkClaim(c holdfast.Claim) error {
	switch {
	case c.Worker == "":
		return invalid("a claim without a worker: say who will hold the leases")
	case c.Limit <= 0:
		return invalid("a claim for %d jobs: give a positive limit", c.Limit)
	case c.Lease <= 0:
		return invalid("a lease of %v: give a positive duration", c.Lease)
	}
	return nil
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

// A sight is what a claim saw: which lanes were open, what it would take from each, and the facts of all that.
type sight struct {
	lanes  []int64
	shares []share
	leases []holdfast.Lease // in the order of the claim
}

// A share is what a claim takes from one lane: its first jobs.
type share struct {
	lane  int64
	limit int
	row   []stand
}

// A stand is how a job stands in its lane, with the token that a claim will give it.
type stand struct {
	priority int64
	job      holdfast.ID
	token    int
}

// lookBeside looks on a connection that only reads.
func lookBeside(s *session, c holdfast.Claim, now int64, room int) (seen sight, err error) {
	if _, err := s.exec("look"); err != nil {
		return sight{}, err
	}
	seen, err = look(s, c, now, room)
	if _, ended := s.exec("rollback"); err == nil {
		err = ended
	}
	return seen, err
}

// look finds what a claim would take now. Leases are large, so room for as many as there may be is made at once.
func look(s *session, c holdfast.Claim, now int64, room int) (seen sight, err error) {
	if seen.lanes, err = openLanes(s, c.Queues, now); err != nil || len(seen.lanes) == 0 {
		return seen, err
	}
	seen.shares = []share{{lane: seen.lanes[0], limit: c.Limit}}
	if len(seen.lanes) > 1 {
		if seen.shares, err = divide(s, seen.lanes, c.Limit); err != nil {
			return seen, err
		}
	}
	if room > 0 {
		seen.leases = make([]holdfast.Lease, 0, min(c.Limit, room+room/8))
	}
	for i := range seen.shares {
		if err := seen.read(s, &seen.shares[i]); err != nil {
			return seen, err
		}
	}
	seen.shares = slices.DeleteFunc(seen.shares, func(s share) bool { return len(s.row) == 0 })
	if len(seen.shares) > 1 {
		seen.sort()
	}
	return seen, nil
}

// sort puts the shares of several lanes into one order. Leases are large: each is moved once.
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

// openLanes are the lanes of the queues that no hold closes.
func openLanes(s *session, queues []string, now int64) (open []int64, err error) {
	for i, queue := range queues {
		if slices.Contains(queues[:i], queue) {
			continue
		}
		err = s.rows("claim-lanes", []any{queue, now}, func(st *sqlite.Stmt) error {
			open = append(open, st.ColumnInt64(0))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return open, nil
}

// read reads the facts of a share, and narrows the share to what is there.
func (v *sight) read(s *session, of *share) error {
	of.row = make([]stand, 0, min(of.limit, max(cap(v.leases), 16)))
	return s.rows("claim-read", []any{of.lane, of.limit}, func(st *sqlite.Stmt) error {
		v.leases = append(v.leases, holdfast.Lease{})
		l := &v.leases[len(v.leases)-1]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes = st.ColumnInt(16), st.ColumnInt(17), st.ColumnInt(18)
		l.Interrupts, l.Generation = st.ColumnInt(19), st.ColumnInt(20)
		of.row = append(of.row, stand{st.ColumnInt64(15), l.ID, l.Token})
		return nil
	})
}

// claim takes what was seen, if all of it still stands as it stood, in lanes that are still open. What came between since then
// is the next claim's. If something is gone it looks again, where nobody can interfere.
func claim(t *tx, c holdfast.Claim, seen sight) ([]holdfast.Lease, error) {
	for range 2 {
		taken, err := seen.take(t, c.Queues)
		if err != nil {
			return nil, err
		}
		if taken {
			return deliver(t, c, seen.leases)
		}
		if seen, err = look(t.session, c, t.now, len(seen.leases)); err != nil || len(seen.leases) == 0 {
			return nil, err
		}
	}
	return nil, unavailable("what is ready cannot be claimed: run the doctor", nil)
}

// take moves all shares out of their lanes, or changes nothing and is false.
func (v *sight) take(t *tx, queues []string) (taken bool, err error) {
	open, err := openLanes(t.session, queues, t.now)
	if err != nil || !slices.Equal(open, v.lanes) {
		return false, err
	}
	runs := make([][]run, len(v.shares))
	for i := range v.shares {
		if runs[i], err = v.shares[i].runs(t); err != nil || runs[i] == nil {
			return false, err
		}
	}
	for i := range v.shares {
		for _, r := range runs[i] {
			if _, err := t.exec("claim-leave", v.shares[i].lane, r.first.priority, r.first.job, r.last.job); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// A run is a stretch of a lane with nothing in it but jobs of one share, all of one priority.
type run struct{ first, last *stand }

// runs finds the stretches of a share. There is one for each priority, and more only if somebody came between, or rows
// without facts did, which stay for the audit. There is none if a job of the share is gone, or has been in other hands.
func (s *share) runs(t *tx) (all []run, err error) {
	for left := s.row; len(left) > 0; {
		n := slices.IndexFunc(left, func(at stand) bool { return at.priority != left[0].priority })
		if n < 0 {
			n = len(left)
		}
		met, on := 0, false
		err = t.rows("claim-stand", []any{s.lane, left[0].priority, left[0].job, left[n-1].job}, func(st *sqlite.Stmt) error {
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
