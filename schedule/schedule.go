// Package schedule says when recurring work is due. A schedule is a value: what it makes of a time is a function of the two,
// so any number of processes that know the same schedule and the same clock come to the same slots.
//
// # Slots
//
// A slot is an instant at which a job is due. One slot makes one job, whoever finds it: the job's idempotency key names the
// schedule and the slot.
//
// An interval (Every) counts from the second in which the schedule was made: the first slot is one interval later. It knows
// no time zones and no summer time.
//
// A cron expression has the five fields of crontab, or is one of @yearly, @monthly, @weekly, @daily and @hourly. As in crontab,
// when both the day of the month and the day of the week are given, either will do. Beyond crontab, L is the last day of the
// month, 15W the weekday nearest to the 15th, FRI#3 the third Friday and FRI#L the last one.
//
// # Summer time
//
// A cron expression is read on the clock on the wall of its zone:
//
//   - What falls into an hour that the clock skips runs once, at the moment after the gap. Several slots in the gap, and one at the very
//     moment after it, are one.
//   - What falls into an hour that the clock shows twice runs once, the first time.
//   - An expression that names every hour (* or 0-23) goes by time passed: it runs in both of the doubled hours, and has
//     nothing to make up for after a gap.
package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Room is where schedules are kept as records, by their name.
const Room = "schedule"

// Missed says what becomes of slots at which nobody was there.
type Missed string

const (
	Skip Missed = "skip" // nothing
	One  Missed = "one"  // one job makes up for all of them; what is meant when nothing is said
	All  Missed = "all"  // each is made up for, the newest Most of them
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
	Zone  string         `json:"zone,omitempty"`  // in which Cron is read: Europe/Berlin; UTC when empty
	Draft holdfast.Draft `json:"draft"`           // without arguments its jobs get {"schedule", "slot"}

	Missed Missed `json:"missed,omitempty"` // One when empty
	Most   int    `json:"most,omitempty"`   // with All: at most so many; 10 when zero

	// While it is paused its slots pass by: they are not made up for afterwards, whatever Missed says.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"` // then it goes on by itself; zero: until a person says so
	Actor       string    `json:"actor,omitempty"`       // who paused it
	Reason      string    `json:"reason,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	Last      time.Time `json:"last,omitzero"` // the last slot that was dealt with; it never goes back

	RunNow int `json:"run_now,omitempty"` // how often somebody asked for a run out of turn,
	Ran    int `json:"ran,omitempty"`     // and how many of these were made

	Runs    int `json:"runs,omitempty"`    // jobs it has made
	Skipped int `json:"skipped,omitempty"` // slots that made none: missed ones, and those of a pause
}

// Prepare fills in what was left to default and refuses a schedule that makes no sense, naming every problem at once. A zone
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

// checkName goes by the rules for names, which drafts know.
func (s *Schedule) checkName(p *problems) {
	probe := holdfast.Draft{Kind: "probe", Dependency: s.Name}
	if s.Name == "" || probe.Prepare() != nil {
		p.add("schedule name %.140q: use 1 to %d letters, digits and _ - . : /", s.Name, holdfast.MaxName)
	}
}

func (s *Schedule) checkTimes(p *problems, now time.Time) {
	switch {
	case s.Cron == "" && s.Every == 0:
		p.add("neither a cron expression nor an interval: give one")
	case s.Cron != "" && s.Every != 0:
		p.add("both a cron expression and an interval: give one")
	case s.Cron == "" && (s.Every < MinEvery || s.Every > holdfast.MaxDelay || s.Every%time.Second != 0):
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
	if !d.ID.IsZero() || d.IdempotencyKey != "" || !d.Group.IsZero() || len(d.After) > 0 || !d.RunAt.IsZero() || !d.ExpireAt.IsZero() {
		p.add("a scheduled job with an id, an idempotency key, a group, something to wait for or a fixed time: leave them out; each slot has its own")
	}
	if err := d.Prepare(); err != nil {
		p.add("its job: %v", err)
	}
}

// Job is what a slot makes. However many processes find the slot, and even if the schedule was forgotten and made again, its
// idempotency key lets one of them through.
func (s Schedule) Job(slot time.Time) holdfast.Draft {
	d, at := s.Draft, slot.UTC().Format(time.RFC3339Nano)
	d.IdempotencyKey = "schedule/" + s.Name + "/" + at
	if len(d.Args) == 0 {
		d.Args, _ = json.Marshal(map[string]string{"schedule": s.Name, "slot": at}) // these always marshal
	}
	return d
}

// Words says for people when it is due.
func (s Schedule) Words() string {
	if s.Cron == "" {
		return "every " + span(s.Every)
	}
	return fmt.Sprintf("cron %q in %s", s.Cron, orElse(s.Zone, "UTC"))
}

// span says a duration in the largest unit that divides it.
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

// Halted reports whether the schedule is paused at that time.
func (s Schedule) Halted(now time.Time) bool {
	return s.Paused && (s.PausedUntil.IsZero() || now.Before(s.PausedUntil))
}

// Resume ends a pause. The slots of the pause have passed by.
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

// problems gathers what is wrong.
type problems []error

func (p *problems) add(format string, args ...any) { p.take(refuse(format, args...)) }

func (p *problems) take(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

func refuse(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
