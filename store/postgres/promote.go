package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Promote makes up to limit queued jobs claimable whose due time has come or whose tag is no longer held, and returns how many. The ids are not known
// here, so it clears the marks.
func (s *Store) Promote(ctx context.Context, limit int) (int, error) {
	if err := rule.Batch("promote", limit); err != nil {
		return 0, err
	}
	var total int
	var back readyPlaces
	err := s.withRetries(ctx, "promote", true, func(ctx context.Context) error {
		total, back = 0, readyPlaces{}
		send := s.newBatch()
		send.Queue(s.sql["promote"], clampLimit(limit)).Query(func(rows pgx.Rows) error {
			var queue string
			var at place
			var n int
			_, err := pgx.ForEachRow(rows, []any{&queue, &at.lane, &at.priority, &n}, func() error {
				total += n
				back.add(queue, at)
				return nil
			})
			return err
		})
		return s.work.send(ctx, send)
	})
	if err != nil {
		return 0, err
	}
	if total > 0 {
		s.planner.noteUnknownJobs()
	}
	s.announce(&back)
	return total, nil
}
