package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/duty"
)

// DutiesOut are all duties.
type DutiesOut struct {
	Duties []duty.Standing `json:"duties"`
}

// WorkersOut are the workers that are alive.
type WorkersOut struct {
	Workers []holdfast.Presence `json:"workers"`
}

// The routes of duties, and of who performs them.
var (
	ListDuties  = Route[struct{}, DutiesOut]{Name: "list-duties", Method: "GET", Path: "/duties", Scope: apikey.Viewer, Tag: "duties", About: "What workers do on a beat: the last run, the next, how late it is, the last error."}
	PauseDuty   = Route[PauseNamed, Nothing]{Name: "pause-duty", Method: "POST", Path: "/duties/{name}/pause", Scope: apikey.Operator, Tag: "duties", About: "Have every worker leave a duty alone."}
	ResumeDuty  = Route[OnNamed, Nothing]{Name: "resume-duty", Method: "POST", Path: "/duties/{name}/resume", Scope: apikey.Operator, Tag: "duties", About: "End a pause."}
	RunDuty     = Route[OnNamed, Nothing]{Name: "run-duty", Method: "POST", Path: "/duties/{name}/run", Scope: apikey.Operator, Tag: "duties", About: "Have every worker perform a duty once, out of turn and also while it is paused."}
	ListWorkers = Route[struct{}, WorkersOut]{Name: "list-workers", Method: "GET", Path: "/workers", Scope: apikey.Viewer, Tag: "duties", About: "The workers that are alive, and what each works on."}
)
