package client

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// Count counts the jobs that match the filter, up to 10000.
func (d *Operator) Count(ctx context.Context, f store.Filter) (int, error) {
	out, err := call(ctx, d.c, api.GetCount, api.JobsInOf(f))
	return out.Count, err
}

// Depths returns the depth of each queue.
func (d *Operator) Depths(ctx context.Context) ([]store.Depth, error) {
	out, err := call(ctx, d.c, api.ListDepths, struct{}{})
	return out.Depths, err
}

// Trends returns the number of attempts by result, over time and by queue.
func (d *Operator) Trends(ctx context.Context, within, step time.Duration) ([]store.Trend, error) {
	out, err := call(ctx, d.c, api.ListTrends, api.TrendsIn{Within: within, Step: step})
	return out.Trends, err
}

// ErrorTrends returns the number of failures of error groups, over time.
func (d *Operator) ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]store.ErrorTrend, error) {
	out, err := call(ctx, d.c, api.ListErrorTrends, api.ErrorTrendsIn{Fingerprint: fingerprints, Within: within, Step: step})
	return out.Trends, err
}

// Count counts the jobs that match the filter, up to most.
func (s *Store) Count(ctx context.Context, f store.Filter, most int) (int, error) {
	out, err := callVerb(ctx, s, api.StoreCount, api.CountWanted{Filter: f, Most: most}, mayRepeat)
	return out.Count, err
}

// Depths returns the depth of each queue.
func (s *Store) Depths(ctx context.Context) ([]store.Depth, error) {
	return callVerb(ctx, s, api.StoreDepths, struct{}{}, mayRepeat)
}

// Trends returns the number of attempts by result, over time and by queue.
func (s *Store) Trends(ctx context.Context, within, step time.Duration) ([]store.Trend, error) {
	return callVerb(ctx, s, api.StoreTrends, api.TrendsWanted{Within: within, Step: step}, mayRepeat)
}

// ErrorTrends returns the number of failures of error groups, over time.
func (s *Store) ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]store.ErrorTrend, error) {
	return callVerb(ctx, s, api.StoreErrorTrends, api.ErrorTrendsWanted{Fingerprints: fingerprints, TrendsWanted: api.TrendsWanted{Within: within, Step: step}}, mayRepeat)
}
