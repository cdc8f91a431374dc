package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/schedule"
)

// A scheduleRun is a future run.
type scheduleRun struct {
	At    time.Time
	There string // local time in the zone of the schedule
	Here  string // local time of the visitor, if it differs
}

// zoneOfSchedule returns the zone of a cron expression.
func zoneOfSchedule(s schedule.Schedule) *time.Location {
	if zone, err := zoneOf(s.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// scheduleRuns returns slots in the zone of the schedule and in the visitor's. An interval has no zone and is shown in the visitor's only.
func scheduleRuns(s schedule.Schedule, slots []time.Time, here *time.Location, now time.Time) (runs []scheduleRun) {
	zone := zoneOfSchedule(s)
	if s.Cron == "" {
		zone = here
	}
	for _, slot := range slots {
		run := scheduleRun{At: slot, There: wallClock(slot.In(zone), now)}
		_, there := slot.In(zone).Zone()
		if _, offset := slot.In(here).Zone(); offset != there {
			run.Here = wallClock(slot.In(here), now)
		}
		runs = append(runs, run)
	}
	return runs
}

// wallClock formats a day and a time, with the year if it is another one and the seconds if they are not zero.
func wallClock(at, now time.Time) string {
	format := "Mon 2 Jan 15:04"
	if at.Year() != now.In(at.Location()).Year() {
		format = "Mon 2 Jan 2006 15:04"
	}
	if at.Second() != 0 {
		format += ":05"
	}
	return at.Format(format) + " " + zoneName(at)
}

// changeAhead is how far ahead clock changes are announced.
const changeAhead = 45 * 24 * time.Hour

// clockChanges returns notes about what the next clock changes (daylight saving time) do to a schedule: local times that do not exist or occur twice. Intervals
// and hourly expressions are not affected.
func clockChanges(s schedule.Schedule, now time.Time) (notes []string) {
	if s.Cron == "" || everyHour(s.Cron) {
		return nil
	}
	zone, until := zoneOfSchedule(s), now.Add(changeAhead)
	for at := now.In(zone); len(notes) < 2; {
		_, change := at.ZoneBounds()
		if change.IsZero() || change.After(until) {
			break
		}
		if note := clockChange(s, change); note != "" {
			notes = append(notes, note)
		}
		at = change
	}
	return notes
}

// everyHour reports whether an expression runs in every hour.
func everyHour(cron string) bool {
	fields := strings.Fields(cronPlain(cron))
	return len(fields) == 5 && (fields[1] == "*" || fields[1] == "0-23" || fields[1] == "*/1")
}

// clockChange returns the note about one clock change, or "" if it does not affect the schedule. The change is a time in the zone of the schedule.
func clockChange(s schedule.Schedule, change time.Time) string {
	_, was := change.Add(-time.Second).Zone()
	_, is := change.Zone()
	from, to := change.UTC().Add(time.Duration(was)*time.Second), change.UTC().Add(time.Duration(is)*time.Second) // local times before and after the change
	skips := to.After(from)
	if !skips {
		from, to = to, from
	}
	s.Zone = "" // compute slots in local time
	var shown []string
	more := false
	for _, reading := range s.Next(from.Add(-time.Second), 4) {
		if !reading.Before(to) {
			break
		}
		if more = len(shown) == 3; !more {
			shown = append(shown, reading.Format("15:04"))
		}
	}
	if len(shown) == 0 {
		return ""
	}
	times, exist, come, each := andWords(shown), "does not exist", "comes twice", "It runs once"
	if len(shown) > 1 {
		exist, come, each = "do not exist", "come twice", "Each runs once"
	}
	if len(shown) > 1 && skips {
		each = "One run makes up for them"
	}
	if more {
		times = strings.Join(shown, ", ") + " and others"
	}
	day := change.Format("Mon 2 Jan 2006")
	if skips {
		return fmt.Sprintf("On %s %s %s in %s: the clock goes from %s to %s. %s, at %s.", day, times, exist, change.Location(), from.Format("15:04"), to.Format("15:04"), each, to.Format("15:04"))
	}
	return fmt.Sprintf("On %s %s %s in %s: the clock goes back from %s to %s. %s, the first time.", day, times, come, change.Location(), to.Format("15:04"), from.Format("15:04"), each)
}
