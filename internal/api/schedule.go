package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// SchedulesIn is the request for all schedules.
type SchedulesIn struct {
	Next int `query:"next" doc:"How many of the next slots to return for each schedule."`
}

// SchedulesOut lists schedules.
type SchedulesOut struct {
	Schedules []ops.ScheduleStatus `json:"schedules" doc:"Schedules, by name."`
	Partial
}

// ScheduleIn is the request for one schedule.
type ScheduleIn struct {
	ByName
	Next int `query:"next" doc:"How many of the next slots to return."`
}

// SetScheduleIn is the request to create or replace a schedule.
type SetScheduleIn struct {
	ByName
	Asked
	Body ScheduleBody
}

// ScheduleBody is a schedule: when it makes a job, and which.
type ScheduleBody struct {
	Word
	Cron   string          `json:"cron,omitempty" doc:"When, as a cron expression of five fields. Exactly one of cron and every is required." example:"0 9 * * 1-5"`
	Every  time.Duration   `json:"every,omitempty" doc:"Interval between slots. Exactly one of cron and every is required."`
	Zone   string          `json:"zone,omitempty" doc:"Time zone of cron; UTC when left out." example:"Europe/Berlin"`
	Draft  holdfast.Draft  `json:"draft" doc:"The job to enqueue. Without arguments it gets {schedule, slot}."`
	Missed schedule.Missed `json:"missed,omitempty" doc:"What to do about slots that passed while no worker was running: skip, one or all; one when left out."`
	Most   int             `json:"most,omitempty" doc:"With all: maximum number of missed slots to make up for; 10 when left out."`
}

// Schedule returns the schedule with this name.
func (b ScheduleBody) Schedule(name string) schedule.Schedule {
	return schedule.Schedule{Name: name, Cron: b.Cron, Every: b.Every, Zone: b.Zone, Draft: b.Draft, Missed: b.Missed, Most: b.Most}
}

// ScheduleBodyOf returns a schedule as a request has it.
func ScheduleBodyOf(s schedule.Schedule, w Word) ScheduleBody {
	return ScheduleBody{w, s.Cron, s.Every, s.Zone, s.Draft, s.Missed, s.Most}
}

// The routes of schedules.
var (
	ListSchedules  = Route[SchedulesIn, SchedulesOut]{Name: "list-schedules", Method: "GET", Path: "/schedules", Scope: apikey.Viewer, Tag: "schedules", About: "List schedules. By name, each with its next slots."}
	GetSchedule    = Route[ScheduleIn, ops.ScheduleStatus]{Name: "get-schedule", Method: "GET", Path: "/schedules/{name}", Scope: apikey.Viewer, Tag: "schedules", About: "Get a schedule. Includes its next slots. Errors: not_found (no such schedule)."}
	SetSchedule    = Route[SetScheduleIn, ops.ScheduleStatus]{Name: "set-schedule", Method: "PUT", Path: "/schedules/{name}", Scope: apikey.Operator, Tag: "schedules", About: "Create or replace a schedule. A schedule that is replaced keeps its position: no slot runs twice. Errors: invalid (the detail names every mistake)."}
	RemoveSchedule = Route[DropNamed, Nothing]{Name: "remove-schedule", Method: "DELETE", Path: "/schedules/{name}", Scope: apikey.Operator, Tag: "schedules", About: "Delete a schedule. Jobs that it has made continue. Errors: not_found (no such schedule)."}
	PauseSchedule  = Route[PauseNamed, Nothing]{Name: "pause-schedule", Method: "POST", Path: "/schedules/{name}/pause", Scope: apikey.Operator, Tag: "schedules", About: "Pause a schedule. Its slots pass without a job. Errors: not_found (no such schedule)."}
	ResumeSchedule = Route[OnNamed, Nothing]{Name: "resume-schedule", Method: "POST", Path: "/schedules/{name}/resume", Scope: apikey.Operator, Tag: "schedules", About: "Resume a schedule. Slots that passed during the pause are not made up for. Errors: not_found (no such schedule), conflict (it is not paused)."}
	RunSchedule    = Route[OnNamed, Nothing]{Name: "run-schedule", Method: "POST", Path: "/schedules/{name}/run", Scope: apikey.Operator, Tag: "schedules", About: "Run a schedule now. It makes one job out of turn, also while it is paused. Errors: not_found (no such schedule)."}
)
