package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// CountOut is how many jobs match.
type CountOut struct {
	Count int `json:"count" doc:"up to 10000: there are that many, or more"`
}

// DepthsOut is what stands in each queue.
type DepthsOut struct {
	Depths []holdfast.Depth `json:"depths" doc:"of the queues in which something stands, by name"`
}

// TrendsIn asks what became of attempts.
type TrendsIn struct {
	Within time.Duration `query:"within" required:"true" doc:"how far back, at most 192h" example:"24h"`
	Step   time.Duration `query:"step" doc:"how finely: a multiple of 1m, which is also what is meant when nobody says"`
}

// TrendsOut is what became of attempts.
type TrendsOut struct {
	Trends []holdfast.Trend `json:"trends" doc:"the oldest step first, and by queue within it; a step in which nothing ended is left out"`
}

// ErrorTrendsIn asks how error groups come and go.
type ErrorTrendsIn struct {
	Fingerprint []string      `query:"fingerprint" required:"true" doc:"of these error groups, at most 200"`
	Within      time.Duration `query:"within" required:"true" doc:"how far back, at most 192h" example:"24h"`
	Step        time.Duration `query:"step" doc:"how finely: a multiple of 5m, which is also what is meant when nobody says"`
}

// ErrorTrendsOut is how error groups come and go.
type ErrorTrendsOut struct {
	Trends []holdfast.ErrorTrend `json:"trends" doc:"in the order in which they were asked for"`
}

// The routes of numbers that are known without reading the whole store.
var (
	GetCount        = Route[JobsIn, CountOut]{Name: "get-count", Method: "GET", Path: "/count", Scope: apikey.Viewer, Tag: "figures", About: "Count jobs, up to 10000. What a list takes as limit and cursor means nothing here."}
	ListDepths      = Route[struct{}, DepthsOut]{Name: "list-depths", Method: "GET", Path: "/depths", Scope: apikey.Viewer, Tag: "figures", About: "What stands in each queue. Numbers stop at 10000, so that asking costs little however much there is."}
	ListTrends      = Route[TrendsIn, TrendsOut]{Name: "list-trends", Method: "GET", Path: "/trends", Scope: apikey.Viewer, Tag: "figures", About: "What became of attempts, by time and queue."}
	ListErrorTrends = Route[ErrorTrendsIn, ErrorTrendsOut]{Name: "list-error-trends", Method: "GET", Path: "/errors/trends", Scope: apikey.Viewer, Tag: "errors", About: "How error groups come and go, and what became of the jobs that met them."}
)

// The questions of the same to a store.
type (
	// CountWanted says what to count, and how far.
	CountWanted struct {
		Filter holdfast.Filter `json:"filter"`
		Most   int             `json:"most"`
	}
	// TrendsWanted says how far back to look, and how finely.
	TrendsWanted struct {
		Within time.Duration `json:"within"`
		Step   time.Duration `json:"step,omitempty"`
	}
	// ErrorTrendsWanted says of which error groups.
	ErrorTrendsWanted struct {
		Fingerprints []string `json:"fingerprints"`
		TrendsWanted
	}
)

// The verbs of a store that answer them.
var (
	StoreCount       = verb[CountWanted, Counted]("count", apikey.Viewer, "", "Count jobs that match, up to a number.")
	StoreDepths      = verb[struct{}, []holdfast.Depth]("depths", apikey.Viewer, "", "What stands in each queue.")
	StoreTrends      = verb[TrendsWanted, []holdfast.Trend]("trends", apikey.Viewer, "", "What became of attempts.")
	StoreErrorTrends = verb[ErrorTrendsWanted, []holdfast.ErrorTrend]("error-trends", apikey.Viewer, "", "How error groups come and go.")
)

// Count counts the jobs that match.
func (d *Desk) Count(ctx context.Context, f holdfast.Filter) (int, error) {
	out, err := call(ctx, d.c, GetCount, jobsIn(f))
	return out.Count, err
}

// Depths tells what stands in each queue.
func (d *Desk) Depths(ctx context.Context) ([]holdfast.Depth, error) {
	out, err := call(ctx, d.c, ListDepths, struct{}{})
	return out.Depths, err
}

// Trends tells what became of attempts.
func (d *Desk) Trends(ctx context.Context, within, step time.Duration) ([]holdfast.Trend, error) {
	out, err := call(ctx, d.c, ListTrends, TrendsIn{within, step})
	return out.Trends, err
}

// ErrorTrends tells how error groups come and go.
func (d *Desk) ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]holdfast.ErrorTrend, error) {
	out, err := call(ctx, d.c, ListErrorTrends, ErrorTrendsIn{fingerprints, within, step})
	return out.Trends, err
}

// Count counts the jobs that match, up to most.
func (s *Store) Count(ctx context.Context, f holdfast.Filter, most int) (int, error) {
	out, err := ask(ctx, s, StoreCount, CountWanted{f, most}, again)
	return out.Count, err
}

// Depths tells what stands in each queue.
func (s *Store) Depths(ctx context.Context) ([]holdfast.Depth, error) {
	return ask(ctx, s, StoreDepths, struct{}{}, again)
}

// Trends tells what became of attempts.
func (s *Store) Trends(ctx context.Context, within, step time.Duration) ([]holdfast.Trend, error) {
	return ask(ctx, s, StoreTrends, TrendsWanted{within, step}, again)
}

// ErrorTrends tells how error groups come and go.
func (s *Store) ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]holdfast.ErrorTrend, error) {
	return ask(ctx, s, StoreErrorTrends, ErrorTrendsWanted{fingerprints, TrendsWanted{within, step}}, again)
}
