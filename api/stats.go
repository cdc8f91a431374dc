package api

import (
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// AnalyticsIn asks how it went.
type AnalyticsIn struct {
	Within time.Duration `query:"within" required:"true" doc:"about jobs that were created within this time" example:"24h"`
}

// The routes of figures.
var (
	GetStats     = Route[struct{}, ops.Stats]{Name: "get-stats", Method: "GET", Path: "/stats", Scope: apikey.Viewer, Tag: "figures", About: "The store at a glance."}
	GetAnalytics = Route[AnalyticsIn, ops.Analytics]{Name: "get-analytics", Method: "GET", Path: "/analytics", Scope: apikey.Viewer, Tag: "figures", About: "Whether it helps to try again, and what it costs."}
	GetDoctor    = Route[struct{}, ops.Report]{Name: "get-doctor", Method: "GET", Path: "/doctor", Scope: apikey.Operator, Tag: "figures", About: "Put every promise to the test, and name the rows that break one. It reads the whole store."}
)
