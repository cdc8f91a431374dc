package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/schedule"
)

// A scheduleRun is a run that is to come.
type scheduleRun struct {
	At    time.Time
	There string // on the clock on the wall of the schedule's zone
	Here  string // on the visitor's, when that is another
}

// zoneOfSchedule is the zone in which an expression is read.
func zoneOfSchedule(s schedule.Schedule) *time.Location {
	if zone, err := zoneOf(s.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// scheduleRuns are slots as two clocks show them. An interval knows no zone: it is shown on the visitor's clock alone.
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

// wallClock is a day and a time, with the year and the seconds only where they say something.
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

// changeAhead is how far ahead changes of the clock are told of.
const changeAhead = 45 * 24 * time.Hour

// clockChanges tell what the next changes of the clock do to a schedule: of hours that do not exist, and of those that come twice. What goes by time passed
// has nothing to be told.
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

// everyHour reports whether an expression names every hour.
func everyHour(cron string) bool {
	fields := strings.Fields(cronPlain(cron))
	return len(fields) == 5 && (fields[1] == "*" || fields[1] == "0-23" || fields[1] == "*/1")
}

// clockChange tells what one change of the clock does to a schedule, and nothing when it does nothing. The change is an instant in the schedule's zone.
func clockChange(s schedule.Schedule, change time.Time) string {
	_, was := change.Add(-time.Second).Zone()
	_, is := change.Zone()
	from, to := change.UTC().Add(time.Duration(was)*time.Second), change.UTC().Add(time.Duration(is)*time.Second) // readings of the clock on the wall
	skips := to.After(from)
	if !skips {
		from, to = to, from
	}
	s.Zone = "" // read as if the wall were everything
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
