package api

import (
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// AnalyticsIn is the request for analytics.
type AnalyticsIn struct {
	Within time.Duration `query:"within" required:"true" doc:"How far back: jobs that were created within this time." example:"24h"`
}

// The routes of statistics.
var (
	GetStats     = Route[struct{}, ops.Stats]{Name: "get-stats", Method: "GET", Path: "/stats", Scope: apikey.Viewer, Tag: "figures", About: "Get statistics. Number of jobs by queue and state, and the live workers."}
	GetAnalytics = Route[AnalyticsIn, ops.Analytics]{Name: "get-analytics", Method: "GET", Path: "/analytics", Scope: apikey.Viewer, Tag: "figures", About: "Get analytics of attempts. How often retries succeed, and what they cost."}
	GetDoctor    = Route[struct{}, ops.IntegrityReport]{Name: "get-doctor", Method: "GET", Path: "/doctor", Scope: apikey.Operator, Tag: "figures", About: "Run the integrity check. Verifies every invariant of the store and names the rows that break one; it reads the whole store."}
)
