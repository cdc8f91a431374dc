package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Retry makes a job claimable at once, as a new generation with its counters at zero. It returns how many jobs are ahead of it, up to 1000.
func (s *Store) Retry(ctx context.Context, i store.Intervention) (ahead int, err error) {
	var back startedLines
	err = s.intervene(ctx, "retry the job", i, func(ctx context.Context, p *pipeline, at *lockedJob) error {
		back = startedLines{}
		ready, err := s.retry(ctx, p, at, i)
		if err != nil {
			return err
		}
		if at.ordered {
			s.returnToLines(p, &ready, at.now, &back)
		} else {
			ready.queue(p, s.sql["ready_add gently"], timestamp(at.now), &back.readyPlaces)
		}
		p.queueRow(s.sql["count_ahead"], []any{at.queue, at.priority, i.Job.String()}, &ahead)
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.planner.noteJobs(i.Job)
	s.announceLines(&back)
	return ahead, nil
}

// retry removes the job from where it is, and returns the row with which its new generation starts.
func (s *Store) retry(ctx context.Context, p *pipeline, at *lockedJob, i store.Intervention) (ready moveRows, err error) {
	if err := rule.Retry(at.rule(), i.StuckAfter, at.now); err != nil {
		return ready, err
	}
	m := &at.member
	switch at.place {
	case inFinished:
		if err := s.retakeKey(ctx, p, at); err != nil {
			return ready, err
		}
		p.Queue(s.sql["delete_finished"], i.Job.String())
	case inLater:
		p.Queue(s.sql["delete_later"], i.Job.String())
	case inLease:
		s.takeFromWorker(p, at)
	}
	m.failures, m.crashes, m.releases = 0, 0, 0
	m.generation++
	ready.add(m)
	p.Queue(s.sql["begin_generation"], i.Job.String(), timestamp(at.now))
	s.recordEvent(p, at, "manual retry", i)
	if at.grouped {
		return ready, s.reopen(ctx, p, []holdfast.ID{i.Job}, at.now, i)
	}
	return ready, nil
}

// takeFromWorker takes a stuck job from its worker. The higher token fences the worker out.
func (s *Store) takeFromWorker(p *pipeline, at *lockedJob) {
	m := &at.member
	s.removeMembers(p, []*batchRow{at.lease}, func(other *member) bool { return other.job == m.job })
	m.token++
	began := at.now // the duration of an attempt that never started is 0
	if m.started {
		began = at.lease.claimed
	}
	var attempts attemptRows
	attempts.add(m, attempt{worker: at.lease.attemptWorker(), started: began, due: at.now, to: holdfast.Queued,
		charge: store.ChargeRelease, why: "taken from its worker by a manual retry"})
	attempts.queue(p, s.sql["attempt_add gently"], at.now)
	p.Queue(s.sql["cancel_drop"], ids([]holdfast.ID{m.job}))
}

// retakeKey takes the unique key of an ended job again. It returns ErrConflict if another job holds the key.
func (s *Store) retakeKey(ctx context.Context, p *pipeline, at *lockedJob) error {
	if at.unique == "" {
		return nil
	}
	owner, kind, name := textArray([]string{at.owner}), textArray([]string{at.kind}), textArray([]string{at.unique})
	for range 20 {
		var holder string
		var k key
		took := false
		p.queueRows(s.sql["unique_take"], []any{owner, kind, name, ids([]holdfast.ID{at.member.job})}, k.fields("unique"), func() error { took = true; return nil })
		p.queueRows(s.sql["unique_find"], []any{owner, kind, name}, append(k.fields("unique"), &holder), func() error { return nil })
		if err := p.flush(ctx); err != nil {
			return err
		}
		if took || holder == at.member.job.String() {
			return nil
		}
		if id, err := holdfast.ParseID(holder); err == nil {
			return rule.KeyHeld(id, at.member.job)
		}
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not retry the job: other processes keep taking and freeing its unique key; try again"}
}
