package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// MissedDeadlines finds jobs whose next attempt did not start within its deadline, records a breach event for each, once, and returns them.
func (s *Store) MissedDeadlines(ctx context.Context, limit int) ([]holdfast.ID, error) {
	if err := rule.Batch("breach", limit); err != nil {
		return nil, err
	}
	breached := []holdfast.ID{}
	for left := clampLimit(limit); left > 0; {
		checked, found := 0, []holdfast.ID(nil)
		err := s.withRetries(ctx, "check start deadlines", true, func(ctx context.Context) error {
			checked, found = 0, nil
			send := &pgx.Batch{}
			send.Queue(s.sql["configure_planner"])
			send.Queue(s.sql["find_breaches"], left).Query(func(rows pgx.Rows) error {
				var id [16]byte
				var waits bool
				_, err := pgx.ForEachRow(rows, []any{&id, &waits}, func() error {
					if checked++; waits {
						found = append(found, id)
					}
					return nil
				})
				return err
			})
			return s.work.SendBatch(ctx, send).Close()
		})
		if err != nil && len(breached) == 0 {
			return nil, err
		}
		breached = append(breached, found...)
		if err != nil || checked < left { // breaches that were recorded must be returned
			break
		}
		left -= len(found)
	}
	return breached, nil
}
