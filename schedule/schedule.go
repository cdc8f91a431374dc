// Package schedule computes when recurring jobs are due. A [Schedule] is a value, and its slots are a function of the schedule and
// the time. So all processes that read the same schedule and the same clock compute the same slots.
//
// # Slots
//
// A slot is a point in time at which a job is due. One slot makes one job, however many processes find it, because the job's
// idempotency key names the schedule and the slot.
//
// An interval (Every) counts from the second in which the schedule was made: the first slot is one interval later. Time zones
// and summer time do not affect it.
//
// A cron expression has the five fields of crontab, or is one of @yearly, @monthly, @weekly, @daily and @hourly. As in crontab,
// if both the day of the month and the day of the week are given, a day that matches one of them is enough. Beyond crontab, L is the last day of the
// month, 15W the weekday nearest to the 15th, FRI#3 the third Friday and FRI#L the last one.
//
// # Summer time
//
// A cron expression means the local time of its zone:
//
//   - A slot in an hour that the clock skips runs once, at the first moment after the gap. Several slots in the gap, and one at that
//     moment, make one job.
//   - A slot in an hour that the clock shows twice runs once, the first time.
//   - An expression that names every hour (* or 0-23) follows elapsed time: it runs in both of the doubled hours and loses no slot
//     in a gap.
package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// Namespace is the namespace of the records that store schedules, by their names.
const Namespace = "schedule"

// Missed says what happens to slots that passed while no process was running.
type Missed string

const (
	Skip Missed = "skip" // they make no job
	One  Missed = "one"  // one job replaces all of them; the default
	All  Missed = "all"  // each of the newest Most slots makes its job
)

// Limits of a schedule.
const (
	MinEvery = time.Second
	MaxMost  = 1000

	defaultMost = 10
)

// A Schedule makes a job at every slot.
type Schedule struct {
	Name  string         `json:"name"`
	Cron  string         `json:"cron,omitempty"`
	Every time.Duration  `json:"every,omitempty"` // or an interval; exactly one of the two
	Zone  string         `json:"zone,omitempty"`  // the time zone of Cron, such as Europe/Berlin; UTC when empty
	Draft holdfast.Draft `json:"draft"`           // if it has no arguments, its jobs get {"schedule", "slot"}

	Missed Missed `json:"missed,omitempty"` // One when empty
	Most   int    `json:"most,omitempty"`   // with All: the maximum number of missed slots; 10 when zero

	// Slots of a paused schedule make no job, also not afterwards, whatever Missed is.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"` // when the pause ends by itself; zero: when a person resumes it
	Actor       string    `json:"actor,omitempty"`       // the person or program that paused it
	Reason      string    `json:"reason,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	Last      time.Time `json:"last,omitzero"` // the last slot that was handled; it never moves back

	RunNow int `json:"run_now,omitempty"` // how many extra runs were requested,
	Ran    int `json:"ran,omitempty"`     // and how many of them were made

	Runs    int `json:"runs,omitempty"`    // jobs it has made
	Skipped int `json:"skipped,omitempty"` // slots that made no job: missed ones, and those of a pause
}

// Prepare fills in defaults. It returns an error that names every problem of an invalid schedule. A zone
// that is written into the expression (TZ=Europe/Berlin 0 9 * * *) becomes Zone, and @every becomes Every.
func (s *Schedule) Prepare(now time.Time) error {
	if s.CreatedAt.IsZero() {
		s.CreatedAt = now
	}
	s.CreatedAt = s.CreatedAt.UTC().Truncate(time.Second)
	s.Missed = orElse(s.Missed, One)
	if s.Missed == All {
		s.Most = orElse(s.Most, defaultMost)
	}
	var p problems
	p.take(s.unfold())
	s.checkName(&p)
	s.checkTimes(&p, now)
	s.checkDraft(&p)
	switch s.Missed {
	case Skip, One, All:
	default:
		p.add("missed slots %.40q: use skip, one or all", s.Missed)
	}
	if s.Most < 0 || s.Most > MaxMost {
		p.add("at most %d missed slots: give 1 to %d, or 0 for %d", s.Most, MaxMost, defaultMost)
	}
	return errors.Join(p...)
}

// checkName checks a name by the rules for names in drafts.
func (s *Schedule) checkName(p *problems) {
	probe := holdfast.Draft{Kind: "probe", Dependency: s.Name}
	if s.Name == "" || probe.Prepare() != nil {
		p.add("schedule name %.140q: use 1 to %d letters, digits and _ - . : /", s.Name, check.MaxName)
	}
}

func (s *Schedule) checkTimes(p *problems, now time.Time) {
	switch {
	case s.Cron == "" && s.Every == 0:
		p.add("neither a cron expression nor an interval: give one")
	case s.Cron != "" && s.Every != 0:
		p.add("both a cron expression and an interval: give one")
	case s.Cron == "" && (s.Every < MinEvery || s.Every > check.MaxDelay || s.Every%time.Second != 0):
		p.add("every %v: give whole seconds, between %v and 100 years", s.Every, MinEvery)
	case s.Cron == "" && s.Zone != "":
		p.add("an interval in zone %.60q: intervals know no zones; leave it out", s.Zone)
	case s.Cron != "":
		if _, err := s.plan(); err != nil {
			p.take(err)
		} else if len(s.Next(now, 1)) == 0 {
			p.add("cron %.80q never comes: there is no such day within %d years", s.Cron, searchYears)
		}
	}
}

func (s *Schedule) checkDraft(p *problems) {
	d := s.Draft
	if !d.ID.IsZero() || d.IdempotencyKey != "" || !d.Group.IsZero() || len(d.After)+len(d.When) > 0 || d.Step != "" || !d.RunAt.IsZero() || !d.ExpireAt.IsZero() {
		p.add("a scheduled job with an id, an idempotency key, a group, a step, something to wait for or a fixed time: leave them out; each slot has its own")
	}
	if err := d.Prepare(); err != nil {
		p.add("its job: %v", err)
	}
}

// Job returns the draft of a slot's job. The slot makes one job, however many processes enqueue the draft and even if the schedule was
// removed and created again, because the idempotency key is the same.
func (s Schedule) Job(slot time.Time) holdfast.Draft {
	d, at := s.Draft, slot.UTC().Format(time.RFC3339Nano)
	d.IdempotencyKey = "schedule/" + s.Name + "/" + at
	if len(d.Args) == 0 {
		d.Args, _ = json.Marshal(map[string]string{"schedule": s.Name, "slot": at}) // these always marshal
	}
	return d
}

// Describe describes for people when the schedule is due.
func (s Schedule) Describe() string {
	if s.Cron == "" {
		return "every " + span(s.Every)
	}
	return fmt.Sprintf("cron %q in %s", s.Cron, orElse(s.Zone, "UTC"))
}

// span formats a duration in the largest unit that divides it.
func span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if d < unit.size || d%unit.size != 0 {
			continue
		}
		if n := d / unit.size; n > 1 {
			return strconv.FormatInt(int64(n), 10) + " " + unit.name + "s"
		}
		return unit.name
	}
	return d.String()
}

// PausedAt reports whether the schedule is paused at that time.
func (s Schedule) PausedAt(now time.Time) bool {
	return s.Paused && (s.PausedUntil.IsZero() || now.Before(s.PausedUntil))
}

// Resume ends a pause. The slots of the pause make no job.
func (s Schedule) Resume(now time.Time) Schedule {
	if s.Paused {
		s, _ = s.pass(now)
		s.Paused, s.PausedUntil, s.Actor, s.Reason = false, time.Time{}, "", ""
	}
	return s
}

func orElse[T comparable](given, otherwise T) T {
	var zero T
	if given == zero {
		return otherwise
	}
	return given
}

// problems collects validation errors.
type problems []error

func (p *problems) add(format string, args ...any) { p.take(refuse(format, args...)) }

func (p *problems) take(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

func refuse(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
