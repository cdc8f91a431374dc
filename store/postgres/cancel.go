package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Cancel cancels a queued job at once. For a processing job it stores a cancel request and wakes workers; the job ends when its worker settles it.
func (s *Store) Cancel(ctx context.Context, i store.Intervention) (state holdfast.State, err error) {
	var back startedLines
	err = s.intervene(ctx, "cancel the job", i, func(ctx context.Context, p *pipeline, at *lockedJob) error {
		back = startedLines{}
		var err error
		if state, err = rule.Cancel(at.rule()); err != nil {
			return err
		}
		switch at.place {
		case inLease:
			return s.requestCancel(ctx, p, at, i)
		case inReady:
			p.Queue(s.sql["delete_ready"], i.Job.String())
		case inLater:
			p.Queue(s.sql["delete_later"], i.Job.String())
		}
		var rows finishedRows
		rows.add(&at.member, ending{state: holdfast.Cancelled})
		rows.queue(p, s.sql["finish gently"], at.now)
		p.Queue(s.sql["unique_free"], ids([]holdfast.ID{i.Job}))
		if at.ordered {
			s.leaveLines(p, []holdfast.ID{i.Job}, &back)
		}
		s.recordEvent(p, at, "cancel", i)
		return nil
	})
	if err != nil {
		return "", err
	}
	s.ends.Ended(i.Job)
	s.announceLines(&back)
	if state == holdfast.Processing {
		s.hub.wake(nil, true)
	}
	return state, nil
}

// requestCancel stores the request, which overrules the worker's settlement. Only the first request is recorded as an event.
func (s *Store) requestCancel(ctx context.Context, p *pipeline, at *lockedJob, i store.Intervention) error {
	requested := false
	var id [16]byte
	p.queueRows(s.sql["cancel_find"], []any{ids([]holdfast.ID{i.Job})}, []any{&id}, func() error { requested = true; return nil })
	if err := p.flush(ctx); err != nil || requested {
		return err
	}
	p.Queue(s.sql["cancel_add"], i.Job.String(), timestamp(at.now), i.Actor, i.Reason)
	s.recordEvent(p, at, "cancel", i)
	return nil
}
