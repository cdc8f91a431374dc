package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// The places where a job can stand.
const (
	notFound = iota
	inReady
	inLater
	inLease
	inFinished
)

// A standing is where a job was found, under a lock that keeps it there.
type lockedJob struct {
	owner, queue, kind, unique string
	priority                   int16
	expire                     *time.Time // no attempt starts after this
	grouped                    bool       // it is a member of a group

	now       time.Time
	place     int
	member    member
	lease     *batchRow      // while it is processed
	state     holdfast.State // once it has ended
	waits     bool           // for members of its group
	discarded bool
}

// rule is what decides whether a person may change the job.
func (a *lockedJob) rule() rule.Job {
	j := rule.Job{ID: a.member.job, State: holdfast.Queued, Ready: a.place == inReady, Waits: a.waits, Discarded: a.discarded,
		Tried: a.member.failures+a.member.crashes+a.member.interrupts > 0}
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

// intervene finds the job, locks it where it stands, and lets act change it, all in one transaction. A refusal changes
// nothing. A lost answer is not repeated: the second time would be refused by what the first did.
func (s *Store) intervene(ctx context.Context, verb string, i holdfast.Intervention, act func(context.Context, *pipeline, *lockedJob) error) error {
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

// locate looks in one place after the other, waiting at each for whoever is moving the job. A job that moved past the search
// is found by the next round.
func (s *Store) lockJob(ctx context.Context, p *pipeline, i holdfast.Intervention) (*lockedJob, error) {
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

// search sends one look at each place, in one round trip.
func (s *Store) findJob(ctx context.Context, p *pipeline, job holdfast.ID) (at *lockedJob, there bool, err error) {
	at = &lockedJob{member: member{job: job}}
	id := []any{job.String()}
	var lane int32
	p.queueRows(s.sql["read_job"], id, []any{&at.owner, &at.queue, &at.kind, &lane, &at.priority, &at.unique, &at.expire, &at.grouped}, func() error { there = true; return nil })
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

// lookIn queues a look at one place.
func (a *lockedJob) queueFind(p *pipeline, place int, sql string, more ...any) {
	m := &a.member
	p.queueRows(sql, []any{m.job.String()}, append([]any{&m.token, &m.failures, &m.crashes, &m.interrupts, &m.generation}, more...), func() error {
		a.place = place
		return nil
	})
}

// record adds what a person did to the job's story.
func (s *Store) recordEvent(p *pipeline, at *lockedJob, name string, i holdfast.Intervention) {
	s.recordChange(p, at, name, i, nil)
}

// recordChange adds what a person did to the job's story, with the values that were replaced.
func (s *Store) recordChange(p *pipeline, at *lockedJob, name string, i holdfast.Intervention, was json.RawMessage) {
	p.Queue(s.sql["event_add"], i.Job.String(), timestamp(at.now), name, i.Actor, i.Reason, i.Request, at.member.token, at.member.generation, string(was))
}
