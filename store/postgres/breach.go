package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Breach finds jobs whose next attempt did not start in time, and says so in the story of each, once.
func (s *Store) Breach(ctx context.Context, limit int) ([]holdfast.ID, error) {
	if err := rule.Batch("breach", limit); err != nil {
		return nil, err
	}
	broken := []holdfast.ID{}
	for left := clampLimit(limit); left > 0; {
		looked, found := 0, []holdfast.ID(nil)
		err := s.withRetries(ctx, "look for broken promises", true, func(ctx context.Context) error {
			looked, found = 0, nil
			send := &pgx.Batch{}
			send.Queue(s.sql["configure_planner"])
			send.Queue(s.sql["find_breaches"], left).Query(func(rows pgx.Rows) error {
				var id [16]byte
				var waits bool
				_, err := pgx.ForEachRow(rows, []any{&id, &waits}, func() error {
					if looked++; waits {
						found = append(found, id)
					}
					return nil
				})
				return err
			})
			return s.work.SendBatch(ctx, send).Close()
		})
		if err != nil && len(broken) == 0 {
			return nil, err
		}
		broken = append(broken, found...)
		if err != nil || looked < left { // what was found must reach the caller
			break
		}
		left -= len(found)
	}
	return broken, nil
}
