package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// MissedDeadlines finds jobs whose next attempt did not start within its deadline, records an event for each, once, and returns them.
func (s *Store) MissedDeadlines(ctx context.Context, limit int) ([]holdfast.ID, error) {
	if err := rule.Batch("missed deadlines", limit); err != nil {
		return nil, err
	}
	missed := []holdfast.ID{}
	for left := clampLimit(limit); left > 0; {
		checked, found := 0, []holdfast.ID(nil)
		err := s.withRetries(ctx, "check start deadlines", true, func(ctx context.Context) error {
			checked, found = 0, nil
			send := &pgx.Batch{}
			send.Queue(s.sql["configure_planner"])
			send.Queue(s.sql["find_missed_deadlines"], left).Query(func(rows pgx.Rows) error {
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
			return s.work.send(ctx, send)
		})
		if err != nil && len(missed) == 0 {
			return nil, err
		}
		missed = append(missed, found...)
		if err != nil || checked < left { // deadlines that were recorded as missed must be returned
			break
		}
		left -= len(found)
	}
	return missed, nil
}
