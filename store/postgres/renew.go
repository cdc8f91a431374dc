package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Renew extends the leases of batches. It uses a connection pool of its own, so other work cannot delay it. The answer lists the jobs that are no
// longer members of their batch, and those with a cancel request.
func (s *Store) Renew(ctx context.Context, renewals []store.Renewal, lease time.Duration) (answer store.RenewResult, err error) {
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
	err = s.withRetries(ctx, "renew", true, func(ctx context.Context) error {
		answer = store.RenewResult{}
		return s.transact(ctx, s.renews, func(p *pipeline) error {
			held, _, err := s.lockBatches(ctx, p, batches)
			if err != nil {
				return err
			}
			p.Queue(s.sql["batch_renew"], ids(batches), micros(lease))
			var id [16]byte
			p.queueRows(s.sql["find_cancels_in_batches"], []any{ids(batches)}, []any{&id}, func() error {
				answer.Cancelling = append(answer.Cancelling, id)
				return nil
			})
			answer.Lost = s.markStarted(p, held, renewals)
			return nil
		})
	})
	return answer, err
}

// markStarted records which members have started, and returns the jobs that are not members.
func (s *Store) markStarted(p *pipeline, held []*batchRow, renewals []store.Renewal) (lost []holdfast.ID) {
	changed := map[*batchRow]bool{}
	for _, n := range renewals {
		i := slices.IndexFunc(held, func(l *batchRow) bool { return l.id == n.Batch })
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
		p.Queue(s.sql["batch_started"], l.id.String(), started.String())
	}
	return lost
}
