package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Expire moves queued jobs that have passed their expiry into a batch of the caller, which settles them.
func (s *Store) Expire(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var leases []store.Lease
	err := s.withRetries(ctx, "expire", true, func(ctx context.Context) error {
		batch := holdfast.NewID()
		return s.transact(ctx, s.work, func(p *pipeline) (err error) {
			p.Queue(s.sql["expiry_sweep"], clampLimit(c.Limit))
			var n int
			p.queueRow(s.sql["expire"], []any{clampLimit(c.Limit), batch.String(), c.Worker, micros(c.Lease)}, &n)
			leases, err = s.readBatches(ctx, p, []holdfast.ID{batch})
			return err
		})
	})
	return leases, err
}
