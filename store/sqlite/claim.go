package sqlite

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// Claim moves due jobs into the caller's hands.
func (s *Store) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	if err := checkClaim(c); err != nil {
		return nil, err
	}
	var leases []holdfast.Lease
	err := s.writer.write(ctx, func(t *tx) (err error) {
		leases, err = claim(t, c)
		if len(leases) < c.Limit {
			t.news.drained = c.Queues
		}
		return err
	})
	if err != nil {
		return nil, err
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

// A share is what a claim takes from one lane: everything up to a key, a number of jobs.
type share struct {
	lane int64
	last key
	jobs int
}

func claim(t *tx, c holdfast.Claim) ([]holdfast.Lease, error) {
	open, err := openLanes(t, c.Queues)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	shares := []share{{open[0], highest, c.Limit}}
	if len(open) > 1 {
		if shares, err = divide(t, open, c.Limit); err != nil {
			return nil, err
		}
	}
	batch := holdfast.NewID()
	var drawn []draw
	for i := range shares {
		taken, err := shares[i].read(t)
		if err != nil {
			return nil, err
		}
		if drawn == nil {
			drawn = taken
		} else {
			drawn = append(drawn, taken...)
		}
	}
	if len(drawn) == 0 {
		return nil, nil
	}
	order := make([]*draw, len(drawn))
	for i := range drawn {
		order[i] = &drawn[i]
	}
	if len(shares) > 1 {
		slices.SortFunc(order, func(a, b *draw) int { return a.key().compare(b.key()) })
	}
	start := lowest
	if c.Start > 0 {
		start = order[min(c.Start, len(order))-1].key()
	}
	strays := false
	for _, share := range shares {
		met, err := share.take(t, batch, start)
		if err != nil {
			return nil, err
		}
		strays = strays || met
	}
	return deliver(t, c, batch, order, strays)
}

// openLanes are the lanes of the queues that no hold closes.
func openLanes(t *tx, queues []string) (open []int64, err error) {
	held := map[lane]bool{}
	err = t.rows("claim-holds", []any{t.now}, func(st *sqlite.Stmt) error {
		if name := st.ColumnText(1); st.ColumnText(0) == "queue" {
			held[lane{queue: name}] = true
		} else {
			held[lane{kind: name}] = true
		}
		return nil
	})
	for _, known := range []lanes{t.known, t.fresh} {
		for l, id := range known {
			if slices.Contains(queues, l.queue) && !held[lane{queue: l.queue}] && !held[lane{kind: l.kind}] {
				open = append(open, id)
			}
		}
	}
	return open, err
}

// A draw is one job that a claim will take.
type draw struct {
	lease    holdfast.Lease
	priority int64 // in ready, where it makes the order
}

func (d *draw) key() key { return key{d.priority, d.lease.ID[:]} }

// read reads the facts of a share, and narrows the share to what is there.
func (s *share) read(t *tx) (drawn []draw, err error) {
	err = t.rows("claim-read", []any{s.lane, s.last.priority, s.last.job, s.jobs}, func(st *sqlite.Stmt) error {
		if drawn == nil {
			drawn = make([]draw, 0, min(s.jobs, 256))
		}
		drawn = append(drawn, draw{readLease(st), st.ColumnInt64(19)})
		return nil
	})
	if s.jobs = len(drawn); s.jobs > 0 {
		s.last = drawn[s.jobs-1].key()
	}
	return drawn, err
}

// take moves a share from its lane into the batch, and reports whether it met strays: rows without facts, which stay where
// they are for the audit, or rows of a job that somebody holds already, which go.
func (s *share) take(t *tx, batch holdfast.ID, start key) (strays bool, err error) {
	if s.jobs == 0 {
		return false, nil
	}
	taken, err := t.exec("claim-take", s.lane, s.last.priority, s.last.job, batch, start.priority, start.job)
	if err != nil {
		return false, err
	}
	if taken == s.jobs {
		left, err := t.exec("claim-leave", s.lane, s.last.priority, s.last.job)
		return left != s.jobs, err
	}
	if _, err := t.exec("claim-drop-unknown", batch); err != nil {
		return true, err
	}
	_, err = t.exec("claim-leave-known", s.lane, s.last.priority, s.last.job)
	return true, err
}

// deliver writes the lease and completes the answer.
func deliver(t *tx, c holdfast.Claim, batch holdfast.ID, drawn []*draw, strays bool) ([]holdfast.Lease, error) {
	members := map[holdfast.ID]bool{}
	if strays {
		err := t.rows("claim-members", []any{batch}, func(st *sqlite.Stmt) error {
			members[columnID(st, 0)] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	now, until := instant(t.now), instant(t.at(c.Lease))
	leases := make([]holdfast.Lease, 0, len(drawn))
	for i, drawn := range drawn {
		l := &drawn.lease
		if strays && !members[l.ID] {
			continue
		}
		l.Batch, l.Worker, l.LeaseUntil, l.AsOf = batch, c.Worker, until, now
		if i < c.Start || l.Interrupts > 0 || l.Crashes > 0 {
			l.StartedAt = now
		}
		leases = append(leases, *l)
	}
	if len(leases) == 0 {
		return nil, nil
	}
	_, err := t.exec("lease-add", batch, c.Worker, nil, t.now, t.at(c.Lease), len(leases))
	return leases, err
}
