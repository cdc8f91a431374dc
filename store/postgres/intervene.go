package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Where a job can be: the table that has its row. A processing job is in holdfast_batch.
const (
	notFound = iota
	inReady
	inLater
	inLease
	inFinished
)

// A lockedJob is a job with the row that says where it is. The row is locked, so the job stays there until the transaction ends.
type lockedJob struct {
	owner, queue, kind, unique string
	priority                   int16
	expire                     *time.Time // expiry; nil: never
	grouped                    bool       // member of a group
	ordered                    bool       // has an order key

	now       time.Time
	place     int
	member    member
	lease     *batchRow      // if processing
	state     holdfast.State // if ended
	waits     bool           // it waits for other members of its group
	discarded bool
}

// rule returns what the rules need to decide whether a person may change the job.
func (a *lockedJob) rule() rule.Job {
	j := rule.Job{ID: a.member.job, State: holdfast.Queued, Ready: a.place == inReady, Waits: a.waits, Discarded: a.discarded,
		Tried: a.member.failures+a.member.crashes+a.member.releases > 0}
	switch a.place {
	case inLease:
		j.State, j.Claimed, j.Until = holdfast.Processing, a.lease.claimed, a.lease.expires
	case inFinished:
		j.State = a.state
	}
	if a.expire != nil {
		j.ExpireAt = *a.expire
	}
	return j
}

// intervene finds a job, locks it where it is, and calls act to change it, in one transaction. If act returns an error, nothing is changed. After a
// lost answer it does not repeat: if the first attempt committed, the second would be refused because of it.
func (s *Store) intervene(ctx context.Context, verb string, i store.Intervention, act func(context.Context, *pipeline, *lockedJob) error) error {
	if err := i.Check(); err != nil {
		return err
	}
	return s.withRetries(ctx, verb, false, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipeline) error {
			at, err := s.lockJob(ctx, p, i)
			if err != nil {
				return err
			}
			return act(ctx, p, at)
		})
	})
}

// lockJob searches all tables for the job and waits at each for a transaction that is moving it. A job that moved to a table that was already
// searched is found by the next round.
func (s *Store) lockJob(ctx context.Context, p *pipeline, i store.Intervention) (*lockedJob, error) {
	for range 10 {
		at, there, err := s.findJob(ctx, p, i.Job)
		switch {
		case err != nil:
			return nil, err
		case !there || i.Owner != "" && at.owner != i.Owner:
			return nil, rule.NoJob(i.Job)
		case at.place != notFound:
			return at, nil
		}
	}
	return nil, rule.NoState(i.Job)
}

// findJob searches each table once, in one round trip. at.place is notFound if the job has moved in between.
func (s *Store) findJob(ctx context.Context, p *pipeline, job holdfast.ID) (at *lockedJob, there bool, err error) {
	at = &lockedJob{member: member{job: job}}
	id := []any{job.String()}
	var lane int32
	p.queueRows(s.sql["read_job"], id, []any{&at.owner, &at.queue, &at.kind, &lane, &at.priority, &at.unique, &at.expire, &at.grouped, &at.ordered}, func() error { there = true; return nil })
	var state string
	at.queueFind(p, inFinished, s.sql["lock_finished"], &state, &at.discarded)
	at.queueFind(p, inReady, s.sql["lock_ready"])
	at.queueFind(p, inLater, s.sql["lock_later"], &at.waits)
	var held []*batchRow
	s.queueLockBatches(p, &held, s.sql["lock_batch_of_job"], id...)
	p.queueRow(s.sql["now"], nil, &at.now)
	if err := p.flush(ctx); err != nil || !there {
		return at, there, err
	}
	at.state = holdfast.State(state)
	if at.place == notFound && len(held) > 0 {
		if m := held[0].find(job); m != nil {
			at.place, at.lease, at.member = inLease, held[0], *m
		}
	}
	return at, true, nil
}

// queueFind queues the search in one table.
func (a *lockedJob) queueFind(p *pipeline, place int, sql string, more ...any) {
	m := &a.member
	p.queueRows(sql, []any{m.job.String()}, append([]any{&m.token, &m.failures, &m.crashes, &m.releases, &m.generation}, more...), func() error {
		a.place = place
		return nil
	})
}

// recordEvent adds an event for a person's action to the job's story.
func (s *Store) recordEvent(p *pipeline, at *lockedJob, name string, i store.Intervention) {
	s.recordChange(p, at, name, i, nil)
}

// recordChange is recordEvent with the values that were replaced.
func (s *Store) recordChange(p *pipeline, at *lockedJob, name string, i store.Intervention, was json.RawMessage) {
	p.Queue(s.sql["event_add"], i.Job.String(), timestamp(at.now), name, i.Actor, i.Reason, i.Request, at.member.token, at.member.generation, string(was))
}
