package api

import (
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/store"
)

// DutiesOut lists all duties.
type DutiesOut struct {
	Duties []duty.Status `json:"duties" doc:"Duties, by name."`
}

// WorkersOut lists the workers that are alive.
type WorkersOut struct {
	Workers []store.WorkerInfo `json:"workers" doc:"Workers that are alive."`
}

// The routes of duties and workers.
var (
	ListDuties  = Route[struct{}, DutiesOut]{Name: "list-duties", Method: "GET", Path: "/duties", Scope: apikey.Viewer, Tag: "duties", About: "List duties. Maintenance that workers do at intervals: the last run, the next, the delay and the last error."}
	PauseDuty   = Route[PauseNamed, Nothing]{Name: "pause-duty", Method: "POST", Path: "/duties/{name}/pause", Scope: apikey.Operator, Tag: "duties", About: "Pause a duty. No worker performs it until it is resumed or the time is over. Errors: not_found (no worker has this duty), invalid (the duty cannot be paused)."}
	ResumeDuty  = Route[OnNamed, Nothing]{Name: "resume-duty", Method: "POST", Path: "/duties/{name}/resume", Scope: apikey.Operator, Tag: "duties", About: "Resume a duty. Errors: not_found (no worker has this duty), conflict (the duty is not paused)."}
	RunDuty     = Route[OnNamed, Nothing]{Name: "run-duty", Method: "POST", Path: "/duties/{name}/run", Scope: apikey.Operator, Tag: "duties", About: "Run a duty now. Every worker performs it once, also while it is paused. Errors: not_found (no worker has this duty), invalid (the duty cannot be run on request)."}
	ListWorkers = Route[struct{}, WorkersOut]{Name: "list-workers", Method: "GET", Path: "/workers", Scope: apikey.Viewer, Tag: "duties", About: "List workers. The workers that are alive, and what each works on."}
)
