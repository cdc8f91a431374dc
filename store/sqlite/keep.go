package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// Promote makes queued jobs claimable whose time has come.
func (s *Store) Promote(ctx context.Context, limit int) (promoted int, err error) {
	if err := rule.Batch("promote", limit); err != nil {
		return 0, err
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
	if _, err := t.one("find_promote_bound", []any{t.now, limit - 1}, &due, &last); err != nil {
		return 0, err
	}
	if _, err := t.exec("promote", due, last); err != nil {
		return 0, err
	}
	promoted, err := t.exec("delete_promoted", due, last)
	if err != nil {
		return 0, err
	}
	back, err := t.bringBack(limit - promoted)
	return promoted + back, err
}

// bringBack makes jobs claimable again that were set aside behind tags that are held no more.
func (t *tx) bringBack(limit int) (back int, err error) {
	for tag := ""; back < limit; {
		if free, err := t.one("find_free_tag", []any{t.now, tag}, &tag); err != nil || !free {
			return back, err
		}
		last := highest.job
		if _, err := t.one("find_set_aside_bound", []any{tag, limit - back - 1}, &last); err != nil {
			return back, err
		}
		if _, err := t.exec("promote_set_aside", tag, last); err != nil {
			return back, err
		}
		n, err := t.exec("delete_promoted_set_aside", tag, last)
		if err != nil {
			return back, err
		}
		back += n
	}
	return back, nil
}

// Reclaim takes over batches that have expired.
func (s *Store) Reclaim(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := c.Check(); err != nil {
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

func reclaim(t *tx, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	silent, err := t.readLeases("lease_expired", t.now)
	if err != nil || len(silent) == 0 {
		return nil, err
	}
	cancelled, err := t.cancelled()
	if err != nil {
		return nil, err
	}
	for _, l := range silent { // whole leases, until enough started jobs are among them
		if len(leases) >= c.Limit {
			break
		}
		taken, err := l.takeOver(t, c, cancelled)
		if err != nil {
			return nil, err
		}
		leases = append(leases, taken...)
	}
	return leases, nil
}

// cancelled are the jobs that somebody asked to stop.
func (t *tx) cancelled() (jobs map[holdfast.ID]bool, err error) {
	jobs = map[holdfast.ID]bool{}
	err = t.rows("cancel_list", nil, func(st *sqlite.Stmt) error {
		jobs[columnID(st, 0)] = true
		return nil
	})
	return jobs, err
}

// takeOver sends back what never started, and puts the rest into a lease of the caller's. A job that somebody asked to cancel
// is handed over although it never started: its settlement obeys the request, which a quiet way back would forget. Members
// without facts stay: they are the audit's.
func (l *lease) takeOver(t *tx, c holdfast.Claim, cancelled map[holdfast.ID]bool) (leases []holdfast.Lease, err error) {
	batch := &lease{id: holdfast.NewID(), worker: c.Worker, lost: l.who(), claimed: l.claimed, expires: t.at(c.Lease)}
	for i := range l.members {
		m := &l.members[i]
		facts := holdfast.Lease{}
		if m.left, err = t.facts(m.job, &facts); err != nil {
			return nil, err
		}
		if !m.left {
			continue
		}
		taken := *m
		taken.left = false
		taken.token++
		if !m.started && !cancelled[m.job] {
			if err := l.sendBack(t, taken); err != nil {
				return nil, err
			}
			continue
		}
		batch.members = append(batch.members, taken)
		leases = append(leases, batch.hand(facts, taken, t.now))
	}
	if len(leases) > 0 {
		if err := t.begin(batch); err != nil {
			return nil, err
		}
	}
	return leases, t.keep(l)
}

// hand is a job in its holder's hands.
func (l *lease) hand(facts holdfast.Lease, m member, now int64) holdfast.Lease {
	facts.Token, facts.Failures, facts.Crashes, facts.Interrupts, facts.Generation = m.token, m.failures, m.crashes, m.interrupts, m.generation
	facts.Batch, facts.Worker, facts.Lost, facts.LeaseUntil, facts.AsOf = l.id, l.worker, l.lost, instant(l.expires), instant(now)
	if m.started {
		facts.StartedAt = instant(l.claimed)
	}
	return facts
}

// sendBack returns a job to its lane that its worker took and never started. That costs the job nothing.
func (l *lease) sendBack(t *tx, m member) error {
	t.news.all = true
	if err := t.interrupted(m, l, "its worker went silent before it started"); err != nil {
		return err
	}
	_, err := t.exec("return_to_ready", m.job, m.token, m.failures, m.crashes, m.interrupts+1, m.generation, t.now)
	return err
}

// interrupted records that a job was taken from its worker through no fault of its own. Its token has grown, so that the
// worker's own word comes too late.
func (t *tx) interrupted(m member, l *lease, why string) error {
	began := l.claimed
	if !m.started {
		began = t.now // a job that never started took no time
	}
	t.goesRound(&m.job, m.token, holdfast.ChargeInterrupt)
	args := []any{m.job, m.token, m.generation, l.who(), began, t.now, holdfast.Queued, holdfast.ChargeInterrupt, 0, 0, t.now}
	_, err := t.exec("attempt_add", append(append(args, failureColumns(nil)...), why, nil)...)
	return err
}

// facts reads what never changes about a job, if it is there.
func (t *tx) facts(job holdfast.ID, into *holdfast.Lease) (found bool, err error) {
	err = t.rows("job_facts", []any{job}, func(st *sqlite.Stmt) error {
		found = true
		readFacts(st, into)
		return nil
	})
	return found, err
}

// Expire hands out queued jobs whose expiry has passed.
func (s *Store) Expire(ctx context.Context, c holdfast.Claim) (leases []holdfast.Lease, err error) {
	if err := c.Check(); err != nil {
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
	if _, err := t.exec("expiry_sweep", t.now); err != nil {
		return nil, err
	}
	batch := &lease{id: holdfast.NewID(), worker: c.Worker, claimed: t.now, expires: t.at(c.Lease)}
	err = t.rows("find_expired", []any{t.now, c.Limit}, func(st *sqlite.Stmt) error {
		batch.members = append(batch.members, member{job: columnID(st, 1), token: st.ColumnInt(2) + 1, failures: st.ColumnInt(3), crashes: st.ColumnInt(4),
			interrupts: st.ColumnInt(5), generation: st.ColumnInt(6)})
		return nil
	})
	if err != nil || len(batch.members) == 0 {
		return nil, err
	}
	for _, m := range batch.members {
		if err := t.leaveQueue(m.job); err != nil {
			return nil, err
		}
		facts := holdfast.Lease{}
		if _, err := t.facts(m.job, &facts); err != nil {
			return nil, err
		}
		leases = append(leases, batch.hand(facts, m, t.now))
	}
	return leases, t.begin(batch)
}

// leaveQueue takes a queued job out of wherever it waits.
func (t *tx) leaveQueue(job holdfast.ID) error {
	if left, err := t.exec("delete_ready", job); left > 0 || err != nil {
		return err
	}
	_, err := t.exec("delete_later", job)
	return err
}
