package ops

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Count counts the jobs that match, up to MostCounted.
func (s *Service) Count(ctx context.Context, f holdfast.Filter) (int, error) {
	return s.store.Count(ctx, f, MostCounted)
}

// Depths tells what stands in each queue. Unlike Stats it does not read the whole store, and its numbers stop at MostCounted.
func (s *Service) Depths(ctx context.Context) ([]holdfast.Depth, error) { return s.store.Depths(ctx) }

// Trends tells what became of attempts within that time, by step and queue.
func (s *Service) Trends(ctx context.Context, within, step time.Duration) ([]holdfast.Trend, error) {
	return s.store.Trends(ctx, within, step)
}

// ErrorTrends tells how error groups come and go, and what became of the jobs that met them.
func (s *Service) ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]holdfast.ErrorTrend, error) {
	return s.store.ErrorTrends(ctx, fingerprints, within, step)
}
