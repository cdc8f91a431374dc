package api

import (
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// CountOut is the number of jobs that match.
type CountOut struct {
	Count int `json:"count" doc:"Number of jobs. Counting stops at 10000: there may be more."`
}

// DepthsOut lists the depth of each queue.
type DepthsOut struct {
	Depths []store.Depth `json:"depths" doc:"Queues that have jobs, by name."`
}

// TrendsIn is the request for trends.
type TrendsIn struct {
	Within time.Duration `query:"within" required:"true" doc:"How far back, at most 192h." example:"24h"`
	Step   time.Duration `query:"step" doc:"Length of one step: a multiple of 1m; 1m when left out."`
}

// TrendsOut is the number of attempts by result, over time.
type TrendsOut struct {
	Trends []store.Trend `json:"trends" doc:"Oldest step first, and by queue within a step. Steps without an ended attempt are left out."`
}

// ErrorTrendsIn is the request for trends of error groups.
type ErrorTrendsIn struct {
	Fingerprint []string      `query:"fingerprint" required:"true" doc:"Fingerprints of the error groups, at most 200."`
	Within      time.Duration `query:"within" required:"true" doc:"How far back, at most 192h." example:"24h"`
	Step        time.Duration `query:"step" doc:"Length of one step: a multiple of 5m; 5m when left out."`
}

// ErrorTrendsOut is the number of failures of error groups, over time.
type ErrorTrendsOut struct {
	Trends []store.ErrorTrend `json:"trends" doc:"One entry for each fingerprint, in the order of the request."`
}

// The routes of counts and trends, which are cheap whatever the size of the store.
var (
	GetCount        = Route[JobsIn, CountOut]{Name: "get-count", Method: "GET", Path: "/count", Scope: apikey.Viewer, Tag: "figures", About: "Count jobs. Counting stops at 10000; limit and cursor have no effect."}
	ListDepths      = Route[struct{}, DepthsOut]{Name: "list-depths", Method: "GET", Path: "/depths", Scope: apikey.Viewer, Tag: "figures", About: "List the depth of each queue. Counting stops at 10000, so that the call is cheap whatever the number of jobs."}
	ListTrends      = Route[TrendsIn, TrendsOut]{Name: "list-trends", Method: "GET", Path: "/trends", Scope: apikey.Viewer, Tag: "figures", About: "List trends. Number of attempts by result, over time and by queue."}
	ListErrorTrends = Route[ErrorTrendsIn, ErrorTrendsOut]{Name: "list-error-trends", Method: "GET", Path: "/errors/trends", Scope: apikey.Viewer, Tag: "errors", About: "List trends of error groups. Number of failures over time, and the current states of their jobs."}
)

// The requests of the same routes of a store.
type (
	// CountWanted says which jobs to count, and where counting stops.
	CountWanted struct {
		Filter store.Filter `json:"filter" doc:"Which jobs to count."`
		Most   int          `json:"most" doc:"Number at which counting stops."`
	}
	// TrendsWanted is the period and the step of trends.
	TrendsWanted struct {
		Within time.Duration `json:"within" doc:"How far back."`
		Step   time.Duration `json:"step,omitempty" doc:"Length of one step."`
	}
	// ErrorTrendsWanted says of which error groups trends are wanted.
	ErrorTrendsWanted struct {
		Fingerprints []string `json:"fingerprints" doc:"Fingerprints of the error groups."`
		TrendsWanted
	}
)

// The store routes of counts and trends.
var (
	StoreCount       = storeRoute[CountWanted, Counted]("count", apikey.Viewer, "", "Count jobs. Counting stops at a number.")
	StoreDepths      = storeRoute[struct{}, []store.Depth]("depths", apikey.Viewer, "", "List the depth of each queue.")
	StoreTrends      = storeRoute[TrendsWanted, []store.Trend]("trends", apikey.Viewer, "", "List trends.")
	StoreErrorTrends = storeRoute[ErrorTrendsWanted, []store.ErrorTrend]("error-trends", apikey.Viewer, "", "List trends of error groups.")
)
