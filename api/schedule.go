package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// SchedulesIn asks for all schedules.
type SchedulesIn struct {
	Next int `query:"next" doc:"how many of the next slots to tell, of each"`
}

// SchedulesOut are all schedules.
type SchedulesOut struct {
	Schedules []ops.Scheduled `json:"schedules"`
	Partial
}

// ScheduleIn asks for one.
type ScheduleIn struct {
	ByName
	Next int `query:"next" doc:"how many of the next slots to tell"`
}

// SetScheduleIn adds or replaces a schedule.
type SetScheduleIn struct {
	ByName
	Asked
	Body ScheduleBody
}

// ScheduleBody says what is due when.
type ScheduleBody struct {
	Word
	Cron   string          `json:"cron,omitempty" doc:"when, in the five fields of cron" example:"0 9 * * 1-5"`
	Every  time.Duration   `json:"every,omitempty" doc:"or an interval; exactly one of the two"`
	Zone   string          `json:"zone,omitempty" doc:"in which cron is read; UTC when it is left out" example:"Europe/Berlin"`
	Draft  holdfast.Draft  `json:"draft" doc:"the job that is made; without arguments it gets {schedule, slot}"`
	Missed schedule.Missed `json:"missed,omitempty" doc:"what to do about slots that passed while nobody was there: one when it is left out"`
	Most   int             `json:"most,omitempty" doc:"with all: at most so many; 10 when it is left out"`
}

// Schedule is what is asked for, under a name.
func (b ScheduleBody) Schedule(name string) schedule.Schedule {
	return schedule.Schedule{Name: name, Cron: b.Cron, Every: b.Every, Zone: b.Zone, Draft: b.Draft, Missed: b.Missed, Most: b.Most}
}

func scheduleBody(s schedule.Schedule, w Word) ScheduleBody {
	return ScheduleBody{w, s.Cron, s.Every, s.Zone, s.Draft, s.Missed, s.Most}
}

// The routes of schedules.
var (
	ListSchedules  = Route[SchedulesIn, SchedulesOut]{Name: "list-schedules", Method: "GET", Path: "/schedules", Scope: apikey.Viewer, Tag: "schedules", About: "Schedules by name, each with its next slots."}
	GetSchedule    = Route[ScheduleIn, ops.Scheduled]{Name: "get-schedule", Method: "GET", Path: "/schedules/{name}", Scope: apikey.Viewer, Tag: "schedules", About: "One schedule, with its next slots."}
	SetSchedule    = Route[SetScheduleIn, ops.Scheduled]{Name: "set-schedule", Method: "PUT", Path: "/schedules/{name}", Scope: apikey.Operator, Tag: "schedules", About: "Add a schedule, or replace the one of that name, which goes on where it is."}
	RemoveSchedule = Route[DropNamed, Nothing]{Name: "remove-schedule", Method: "DELETE", Path: "/schedules/{name}", Scope: apikey.Operator, Tag: "schedules", About: "Forget a schedule. Jobs it has made go on."}
	PauseSchedule  = Route[PauseNamed, Nothing]{Name: "pause-schedule", Method: "POST", Path: "/schedules/{name}/pause", Scope: apikey.Operator, Tag: "schedules", About: "Let the slots of a schedule pass by."}
	ResumeSchedule = Route[OnNamed, Nothing]{Name: "resume-schedule", Method: "POST", Path: "/schedules/{name}/resume", Scope: apikey.Operator, Tag: "schedules", About: "End a pause. Its slots are not made up for."}
	RunSchedule    = Route[OnNamed, Nothing]{Name: "run-schedule", Method: "POST", Path: "/schedules/{name}/run", Scope: apikey.Operator, Tag: "schedules", About: "Have a schedule make a job out of turn, also while it is paused."}
)
