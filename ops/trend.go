package ops

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// Count returns the number of jobs that match, up to 10,000.
func (s *Service) Count(ctx context.Context, f store.Filter) (int, error) {
	return s.store.Count(ctx, f, MaxCounted)
}

// Depths returns the number of jobs in each queue. It does not read the whole store; counting stops at 10,000.
func (s *Service) Depths(ctx context.Context) ([]store.Depth, error) { return s.store.Depths(ctx) }

// Trends counts the attempts that ended within that time, by step and queue.
func (s *Service) Trends(ctx context.Context, within, step time.Duration) ([]store.Trend, error) {
	return s.store.Trends(ctx, within, step)
}

// ErrorTrends returns the number of failures of error groups over time, and the current state of their jobs.
func (s *Service) ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]store.ErrorTrend, error) {
	return s.store.ErrorTrends(ctx, fingerprints, within, step)
}
