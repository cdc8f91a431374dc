package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Reclaim takes over the batches whose leases have expired.
func (s *Store) Reclaim(ctx context.Context, c store.Claim) (leases []store.Lease, err error) {
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

// reclaim takes over whole batches, until they have c.Limit started jobs or more.
func reclaim(t *tx, c store.Claim) (leases []store.Lease, err error) {
	expired, err := t.readBatches("batch_expired", t.now)
	if err != nil || len(expired) == 0 {
		return nil, err
	}
	cancelled, err := t.cancelRequests()
	if err != nil {
		return nil, err
	}
	for _, l := range expired { // whole batches, until they have enough started jobs
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

// cancelRequests returns the processing jobs that were asked to stop.
func (t *tx) cancelRequests() (jobs map[holdfast.ID]bool, err error) {
	jobs = map[holdfast.ID]bool{}
	err = t.rows("cancel_list", nil, func(st *sqlite.Stmt) error {
		jobs[columnID(st, 0)] = true
		return nil
	})
	return jobs, err
}

// takeOver returns the jobs that never started to their lanes, and puts the others into a new batch for the caller. A
// job with a cancel request is handed over even if it never started: its settlement obeys the request, and a release
// would ignore it. Members without facts stay in the old batch, for the integrity check.
//
// Every job that leaves the old batch gets a higher token, so a late settlement of the lost worker is refused.
func (b *batch) takeOver(t *tx, c store.Claim, cancelled map[holdfast.ID]bool) (leases []store.Lease, err error) {
	batch := &batch{id: holdfast.NewID(), worker: c.Worker, lost: b.attemptWorker(), claimed: b.claimed, expires: t.at(c.Lease)}
	for i := range b.members {
		m := &b.members[i]
		facts := store.Lease{}
		if m.removed, err = t.readJobFacts(m.job, &facts); err != nil {
			return nil, err
		}
		if !m.removed {
			continue
		}
		taken := *m
		taken.removed = false
		taken.token++
		if !m.started && !cancelled[m.job] {
			if err := b.release(t, taken); err != nil {
				return nil, err
			}
			continue
		}
		batch.members = append(batch.members, taken)
		leases = append(leases, batch.leaseOf(facts, taken, t.now))
	}
	if len(leases) > 0 {
		if err := t.insertBatch(batch); err != nil {
			return nil, err
		}
	}
	return leases, t.saveBatch(b)
}

// leaseOf returns the lease of a member.
func (b *batch) leaseOf(facts store.Lease, m member, now int64) store.Lease {
	facts.Token, facts.Failures, facts.Crashes, facts.Releases, facts.Generation = m.token, m.failures, m.crashes, m.releases, m.generation
	facts.Batch, facts.Worker, facts.Lost, facts.LeaseUntil, facts.AsOf = b.id, b.worker, b.lost, instant(b.expires), instant(now)
	if m.started {
		facts.StartedAt = instant(b.claimed)
	}
	return facts
}

// release returns a job that its worker claimed and never started to its lane. It costs the job nothing.
func (b *batch) release(t *tx, m member) error {
	t.wakeup.allQueues = true
	if err := t.recordRelease(m, b, "its worker went silent before it started"); err != nil {
		return err
	}
	_, err := t.exec("return_to_ready", m.job, m.token, m.failures, m.crashes, m.releases+1, m.generation, t.now)
	return err
}

// recordRelease records that a job was taken from its worker without a charge. The job's token has grown, so a later
// settlement of that worker is refused.
func (t *tx) recordRelease(m member, l *batch, why string) error {
	began := l.claimed
	if !m.started {
		began = t.now // a job that never started took no time
	}
	t.emitReturn(&m.job, m.token, store.ChargeRelease)
	args := []any{m.job, m.token, m.generation, l.attemptWorker(), began, t.now, holdfast.Queued, store.ChargeRelease, 0, 0, t.now}
	_, err := t.exec("attempt_add", append(append(args, failureColumns(nil)...), why, nil)...)
	return err
}

// readJobFacts reads the facts of a job, and reports whether there are any.
func (t *tx) readJobFacts(job holdfast.ID, into *store.Lease) (found bool, err error) {
	err = t.rows("job_facts", []any{job}, func(st *sqlite.Stmt) error {
		found = true
		readFacts(st, into)
		return nil
	})
	return found, err
}
