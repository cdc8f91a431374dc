package postgres

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// Retry sends a job round again at once, as a new generation with fresh counts.
func (s *Store) Retry(ctx context.Context, i holdfast.Intervention) (ahead int, err error) {
	var back returned
	err = s.intervene(ctx, "retry the job", i, func(ctx context.Context, p *pipe, at *standing) error {
		back = returned{}
		ready, err := s.retry(ctx, p, at, i)
		if err != nil {
			return err
		}
		ready.queue(p, s.sql["ready_add gently"], stamp(at.now), &back)
		p.one(s.sql["ahead"], []any{at.queue, at.priority, i.Job.String()}, &ahead)
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.marks.lower(i.Job)
	s.announce(&back)
	return ahead, nil
}

// retry takes the job from where it stands, and answers with what it is when it begins anew.
func (s *Store) retry(ctx context.Context, p *pipe, at *standing, i holdfast.Intervention) (ready narrow, err error) {
	m := &at.member
	switch {
	case at.state == holdfast.Failed:
		if err := s.retake(ctx, p, at); err != nil {
			return ready, err
		}
		p.Queue(s.sql["leave_finished"], i.Job.String())
	case at.waits:
		return ready, against(i.Job, "waits for members of its group: retry those, or the group")
	case at.place == inLater && m.failures+m.crashes+m.interrupts > 0:
		p.Queue(s.sql["leave_later"], i.Job.String())
	case at.place == inLease && at.stuck(i.StuckAfter):
		s.wrest(p, at)
	case at.place == inLease:
		return ready, against(i.Job, "is being processed: cancel it, or retry it once it is stuck")
	case at.place == inFinished:
		return ready, against(i.Job, "is "+string(at.state)+": only a failed job can be retried")
	default:
		return ready, against(i.Job, "is already waiting to run")
	}
	if at.expire != nil && !at.expire.After(at.now) {
		return ready, tooLate(i.Job)
	}
	m.failures, m.crashes, m.interrupts = 0, 0, 0
	m.generation++
	ready.add(m)
	p.Queue(s.sql["begin_generation"], i.Job.String(), stamp(at.now))
	s.record(p, at, "manual retry", i)
	if at.grouped {
		return ready, s.reopen(ctx, p, []holdfast.ID{i.Job}, at.now, i)
	}
	return ready, nil
}

// wrest takes a stuck job from its worker.
func (s *Store) wrest(p *pipe, at *standing) {
	m := &at.member
	s.keepOnly(p, []*lease{at.lease}, func(other *member) bool { return other.job == m.job })
	m.token++
	began := at.now // a job that never started took no time
	if m.started {
		began = at.lease.claimed
	}
	var attempts attemptRows
	attempts.add(m, attempt{worker: at.lease.who(), started: began, due: at.now, to: holdfast.Queued,
		charge: holdfast.ChargeInterrupt, why: "taken from its worker by a manual retry"})
	attempts.queue(p, s.sql["attempt_add gently"], at.now)
	p.Queue(s.sql["cancel_drop"], ids([]holdfast.ID{m.job}))
}

// retake takes the unique key of an ended job again, which somebody else may hold by now.
func (s *Store) retake(ctx context.Context, p *pipe, at *standing) error {
	if at.unique == "" {
		return nil
	}
	owner, kind, name := texts([]string{at.owner}), texts([]string{at.kind}), texts([]string{at.unique})
	for range 20 {
		var holder string
		var k key
		took := false
		p.each(s.sql["unique_take"], []any{owner, kind, name, ids([]holdfast.ID{at.member.job})}, k.fields("unique"), func() error { took = true; return nil })
		p.each(s.sql["unique_find"], []any{owner, kind, name}, append(k.fields("unique"), &holder), func() error { return nil })
		if err := p.flush(ctx); err != nil {
			return err
		}
		if took || holder == at.member.job.String() {
			return nil
		}
		if id, err := holdfast.ParseID(holder); err == nil {
			return &holdfast.Error{Kind: holdfast.ErrConflict, Job: id,
				Message: fmt.Sprintf("job %v holds the unique key of job %v: wait for it to end, or cancel it", id, at.member.job)}
		}
	}
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "could not retry the job: its unique key changes hands too fast; try again"}
}

// Cancel ends a queued job at once, and asks a processing one to stop.
func (s *Store) Cancel(ctx context.Context, i holdfast.Intervention) (state holdfast.State, err error) {
	err = s.intervene(ctx, "cancel the job", i, func(ctx context.Context, p *pipe, at *standing) error {
		switch at.place {
		case inFinished:
			return against(i.Job, "is already "+string(at.state))
		case inLease:
			state = holdfast.Processing
			return s.askToStop(ctx, p, at, i)
		case inReady:
			p.Queue(s.sql["leave_ready"], i.Job.String())
		case inLater:
			p.Queue(s.sql["leave_later"], i.Job.String())
		}
		state = holdfast.Cancelled
		var rows finishedRows
		rows.add(&at.member, ending{state: holdfast.Cancelled})
		rows.queue(p, s.sql["finish gently"], at.now)
		p.Queue(s.sql["unique_free"], ids([]holdfast.ID{i.Job}))
		s.record(p, at, "cancel", i)
		return nil
	})
	if err != nil {
		return "", err
	}
	if state == holdfast.Processing {
		s.wake(nil, true)
	}
	return state, nil
}

// askToStop leaves the request for the holder's settlement to obey. Only the first is part of the story.
func (s *Store) askToStop(ctx context.Context, p *pipe, at *standing, i holdfast.Intervention) error {
	asked := false
	var id [16]byte
	p.each(s.sql["cancel_find"], []any{ids([]holdfast.ID{i.Job})}, []any{&id}, func() error { asked = true; return nil })
	if err := p.flush(ctx); err != nil || asked {
		return err
	}
	p.Queue(s.sql["cancel_add"], i.Job.String(), stamp(at.now), i.Actor, i.Reason)
	s.record(p, at, "cancel", i)
	return nil
}

// Discard takes a failed job off the dead letters.
func (s *Store) Discard(ctx context.Context, i holdfast.Intervention) error {
	if i.Reason == "" {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "a discard without a reason: say why nobody needs this job any more"}
	}
	return s.intervene(ctx, "discard the job", i, func(_ context.Context, p *pipe, at *standing) error {
		switch {
		case at.state != holdfast.Failed:
			return against(i.Job, "has not failed: only a failed job can be discarded")
		case at.discarded:
			return against(i.Job, "is already discarded")
		}
		p.Queue(s.sql["discard"], i.Job.String(), stamp(at.now))
		s.record(p, at, "discard", i)
		return nil
	})
}

// record adds what a person did to the job's story.
func (s *Store) record(p *pipe, at *standing, name string, i holdfast.Intervention) {
	p.Queue(s.sql["event_add"], i.Job.String(), stamp(at.now), name, i.Actor, i.Reason, i.Request, at.member.token, at.member.generation)
}

func tooLate(job holdfast.ID) error {
	return against(job, "could not start in time any more: its expiry has passed; enqueue it anew")
}

func against(job holdfast.ID, what string) error {
	return &holdfast.Error{Kind: holdfast.ErrConflict, Job: job, Message: fmt.Sprintf("job %v %s", job, what)}
}

// checkPerson refuses a person's word that does not say whose it is, or cannot be shown to others.
func checkPerson(actor, reason, owner, request string) error {
	switch {
	case actor == "":
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "an intervention without an actor: say who you are"}
	case !plain(actor, 255):
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the actor: use at most 255 bytes of UTF-8 without control characters"}
	case !plain(reason, 1000):
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the reason: use at most 1000 bytes of UTF-8 without control characters"}
	case !plain(owner, 255):
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the owner: use at most 255 bytes of UTF-8 without control characters"}
	case !plain(request, 255):
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the request: use at most 255 bytes of UTF-8 without control characters"}
	}
	return nil
}

func plain(text string, limit int) bool {
	if len(text) > limit || !utf8.ValidString(text) {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return false
		}
	}
	return true
}
