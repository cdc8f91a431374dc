package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// Promote makes queued jobs claimable whose time has come.
func (s *Store) Promote(ctx context.Context, limit int) (promoted int, err error) {
	if limit <= 0 {
		return 0, invalid("a promotion of %d jobs: give a positive limit", limit)
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		promoted, err = promote(t, limit)
		t.news.all = promoted > 0
		return err
	})
	if err != nil {
		return 0, err
	}
	return promoted, nil
}

func promote(t *tx, limit int) (int, error) {
	due, last := t.now, highest.job
	if _, err := t.one("promote-bound", []any{t.now, limit - 1}, &due, &last); err != nil {
		return 0, err
	}
	if _, err := t.exec("promote-ready", due, last); err != nil {
		return 0, err
	}
	return t.exec("promote-leave", due, last)
}

// Reclaim takes over batches that have expired.
func (s *Store) Reclaim(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := checkClaim(c); err != nil {
		return nil, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		leases, err = reclaim(t, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// A silent lease is one whose worker has not renewed it in time.
type silent struct {
	id      holdfast.ID
	worker  string // who went silent: the first one, if reclaiming went silent too
	claimed int64
	members []silentMember
	started int
}

type silentMember struct {
	member
	job       holdfast.ID
	token     int
	cancelled bool // somebody asked it to stop
}

func reclaim(t *tx, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	var due bool
	if _, err := t.one("reclaim-any", []any{t.now}, &due); err != nil || !due {
		return nil, err
	}
	if _, err := t.exec("reclaim-empty", t.now); err != nil {
		return nil, err
	}
	expired, err := silentLeases(t, c.Limit)
	if err != nil {
		return nil, err
	}
	for i := range expired {
		taken, err := expired[i].takeOver(t, c)
		if err != nil {
			return nil, err
		}
		leases = append(leases, taken...)
	}
	return leases, nil
}

// silentLeases are whole leases, oldest first, until enough started jobs are among them.
func silentLeases(t *tx, limit int) (all []silent, err error) {
	started, enough := 0, false
	err = t.rows("reclaim-members", []any{t.now}, func(st *sqlite.Stmt) error {
		if id := columnID(st, 0); len(all) == 0 || all[len(all)-1].id != id {
			if enough = enough || started >= limit; enough {
				return nil
			}
			worker := st.ColumnText(2)
			if worker == "" {
				worker = st.ColumnText(1)
			}
			all = append(all, silent{id: id, worker: worker, claimed: st.ColumnInt64(3)})
		}
		last := &all[len(all)-1]
		m := silentMember{job: columnID(st, 4), token: st.ColumnInt(5)}
		m.member = member{st.ColumnInt(6), st.ColumnInt(7), st.ColumnInt(8), st.ColumnInt(9), st.ColumnInt64(10) != 0}
		m.cancelled = st.ColumnInt64(11) != 0
		last.members = append(last.members, m)
		if m.started || m.cancelled {
			last.started++
			started++
		}
		return nil
	})
	return all, err
}

// takeOver sends back what never started, and puts the rest into a lease of the caller's.
func (s *silent) takeOver(t *tx, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	batch := holdfast.NewID()
	for _, m := range s.members {
		if !m.started && !m.cancelled {
			if err := s.sendBack(t, m); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := t.exec("reclaim-take", m.job, batch); err != nil {
			return nil, err
		}
		lease, err := t.lease(m.job)
		if err != nil {
			return nil, err
		}
		lease.Batch, lease.Worker, lease.Lost = batch, c.Worker, s.worker
		lease.LeaseUntil, lease.AsOf = instant(t.at(c.Lease)), instant(t.now)
		if m.started {
			lease.StartedAt = instant(s.claimed)
		}
		leases = append(leases, lease)
	}
	if len(leases) > 0 {
		if _, err := t.exec("lease-add", batch, c.Worker, s.worker, s.claimed, t.at(c.Lease), len(leases)); err != nil {
			return nil, err
		}
	}
	return leases, t.release(s.id, len(s.members))
}

// sendBack returns a job to its lane that its worker took and never started. That costs the job nothing.
func (s *silent) sendBack(t *tx, m silentMember) error {
	if _, err := t.exec("settle-leave", m.job); err != nil {
		return err
	}
	t.news.all = true
	if err := t.interrupted(m, s.worker, s.claimed, "its worker went silent before it started"); err != nil {
		return err
	}
	_, err := t.exec("ready-again", m.job, m.token+1, m.failures, m.crashes, m.interrupts+1, m.generation, t.now)
	return err
}

// interrupted records that a job was taken from its worker through no fault of its own. The token grows, so that the
// worker's own word comes too late.
func (t *tx) interrupted(m silentMember, worker string, claimed int64, why string) error {
	if !m.started {
		claimed = t.now // a job that never started took no time
	}
	args := []any{m.job, m.token + 1, m.generation, worker, claimed, t.now, holdfast.Queued, holdfast.ChargeInterrupt, 0, 0, t.now}
	_, err := t.exec("settle-attempt", append(append(args, failureColumns(nil)...), why, nil)...)
	return err
}

// lease reads a member with its facts.
func (t *tx) lease(job holdfast.ID) (lease holdfast.Lease, err error) {
	err = t.rows("lease-read", []any{job}, func(st *sqlite.Stmt) error {
		lease = readLease(st)
		return nil
	})
	return lease, err
}

// Expire hands out queued jobs whose expiry has passed.
func (s *Store) Expire(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := checkClaim(c); err != nil {
		return nil, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		leases, err = expire(t, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

func expire(t *tx, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if _, err := t.exec("expire-ended", t.now); err != nil {
		return nil, err
	}
	var expired []silentMember
	err = t.rows("expire-queued", []any{t.now, c.Limit}, func(st *sqlite.Stmt) error {
		m := silentMember{job: columnID(st, 1), token: st.ColumnInt(2)}
		m.member = member{failures: st.ColumnInt(3), crashes: st.ColumnInt(4), interrupts: st.ColumnInt(5), generation: st.ColumnInt(6)}
		expired = append(expired, m)
		return nil
	})
	if err != nil || len(expired) == 0 {
		return nil, err
	}
	batch := holdfast.NewID()
	for _, m := range expired {
		if err := t.leaveQueue(m.job); err != nil {
			return nil, err
		}
		if _, err := t.exec("member-add", m.job, batch, m.token+1, m.failures, m.crashes, m.interrupts, m.generation, false); err != nil {
			return nil, err
		}
		lease, err := t.lease(m.job)
		if err != nil {
			return nil, err
		}
		lease.Batch, lease.Worker, lease.LeaseUntil, lease.AsOf = batch, c.Worker, instant(t.at(c.Lease)), instant(t.now)
		leases = append(leases, lease)
	}
	_, err = t.exec("lease-add", batch, c.Worker, nil, t.now, t.at(c.Lease), len(leases))
	return leases, err
}

// leaveQueue takes a queued job out of wherever it waits.
func (t *tx) leaveQueue(job holdfast.ID) error {
	if left, err := t.exec("ready-drop", job); left > 0 || err != nil {
		return err
	}
	_, err := t.exec("later-drop", job)
	return err
}
