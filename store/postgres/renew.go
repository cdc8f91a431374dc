package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Renew extends batches, all in one go, over a connection that no other work can occupy.
func (s *Store) Renew(ctx context.Context, renewals []holdfast.Renewal, lease time.Duration) (answer holdfast.Renewed, err error) {
	if err := rule.Lease(lease); err != nil {
		return answer, err
	}
	if len(renewals) == 0 {
		return answer, nil
	}
	batches := make([]holdfast.ID, len(renewals))
	for i := range renewals {
		batches[i] = renewals[i].Batch
	}
	err = s.ask(ctx, "renew", true, func(ctx context.Context) error {
		answer = holdfast.Renewed{}
		return s.transact(ctx, s.renews, func(p *pipe) error {
			held, _, err := s.lock(ctx, p, batches)
			if err != nil {
				return err
			}
			p.Queue(s.sql["lease_renew"], ids(batches), micros(lease))
			var id [16]byte
			p.each(s.sql["find_cancels_in_batches"], []any{ids(batches)}, []any{&id}, func() error {
				answer.Cancelling = append(answer.Cancelling, id)
				return nil
			})
			answer.Lost = s.mark(p, held, renewals)
			return nil
		})
	})
	return answer, err
}

// mark notes which members have started since, and answers with the jobs that are not members.
func (s *Store) mark(p *pipe, held []*lease, renewals []holdfast.Renewal) (lost []holdfast.ID) {
	changed := map[*lease]bool{}
	for _, n := range renewals {
		i := slices.IndexFunc(held, func(l *lease) bool { return l.id == n.Batch })
		if i < 0 {
			lost = append(append(lost, n.Running...), n.Waiting...)
			continue
		}
		members := make(map[holdfast.ID]*member, len(held[i].members))
		for k := range held[i].members {
			members[held[i].members[k].job] = &held[i].members[k]
		}
		for _, id := range n.Running {
			m := members[id]
			if m == nil {
				lost = append(lost, id)
			} else if !m.started {
				m.started, changed[held[i]] = true, true
			}
		}
		for _, id := range n.Waiting {
			if members[id] == nil {
				lost = append(lost, id)
			}
		}
	}
	for l := range changed {
		var started column
		for _, m := range l.members {
			started.bool(m.started)
		}
		p.Queue(s.sql["lease_started"], l.id.String(), started.String())
	}
	return lost
}

// Note keeps progress and checkpoints of jobs that are held.
func (s *Store) Note(ctx context.Context, notes []holdfast.Note) ([]error, error) {
	if len(notes) == 0 {
		return []error{}, nil
	}
	batches := make([]holdfast.ID, len(notes))
	for i := range notes {
		batches[i] = notes[i].Batch
	}
	answers := make([]error, len(notes))
	err := s.ask(ctx, "keep progress", true, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipe) error {
			held, now, err := s.lock(ctx, p, batches)
			if err != nil {
				return err
			}
			for i := range notes {
				if answers[i] = checkNote(held, &notes[i]); answers[i] == nil {
					s.note(p, &notes[i], now)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func (s *Store) note(p *pipe, n *holdfast.Note, now time.Time) {
	var checkpoint, percent, text any
	if n.Checkpoint != nil {
		checkpoint = string(n.Checkpoint)
	}
	if n.Progress != nil {
		percent, text = min(max(n.Progress.Percent, 0), 100), clean(n.Progress.Note)
	}
	p.Queue(s.sql["save_note"], n.Job.String(), checkpoint, percent, text, stamp(now))
}

func checkNote(held []*lease, n *holdfast.Note) error {
	if err := n.Check(); err != nil {
		return err
	}
	i := slices.IndexFunc(held, func(l *lease) bool { return l.id == n.Batch })
	if i < 0 {
		return rule.LeaseLost(n.Job)
	}
	if m := held[i].find(n.Job); m == nil || m.token != n.Token {
		return rule.LeaseLost(n.Job)
	}
	return nil
}

// Present says that a worker process is alive, or is leaving.
func (s *Store) Present(ctx context.Context, p holdfast.Presence) error {
	if err := p.Check(); err != nil {
		return err
	}
	return s.ask(ctx, "report the worker", true, func(ctx context.Context) (err error) {
		if p.For == 0 {
			_, err = s.renews.Exec(ctx, s.sql["delete_worker"], p.Worker)
			return err
		}
		_, err = s.renews.Exec(ctx, s.sql["upsert_worker"], p.Worker, clean(texts(p.Queues)), clean(texts(p.Kinds)), p.Slots, micros(p.For), clean(p.Version), clean(p.Codes), p.Policy, clean(p.Misses))
		if err != nil || len(p.Depends) == 0 {
			return err
		}
		var kinds, dependencies column
		for kind, dependency := range p.Depends {
			kinds.quote(clean(kind))
			dependencies.quote(clean(dependency))
		}
		_, err = s.renews.Exec(ctx, s.sql["declare_kinds"], kinds.String(), dependencies.String())
		return err
	})
}
