package failure

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Window is a time of day, such as 09:00 to 17:00 in Berlin, during which jobs are not retried. It follows the local time
// of its zone. If the clock is put forward over the start or the end, the window starts or ends at that moment. If the
// clock is put back and shows an hour twice, the window starts at the first and ends at the last occurrence.
type Window struct {
	From int            // minutes after midnight, 0 to 1439
	To   int            // minutes after midnight, 0 to 1440; on the next day unless it is after From
	Days []time.Weekday // days on which the window starts; every day when empty
	Zone *time.Location // UTC when nil
}

const minutesADay = 24 * 60

// Check returns an error that names every problem, or nil.
func (w Window) Check() error {
	var problems []error
	if w.From < 0 || w.From >= minutesADay {
		problems = append(problems, fmt.Errorf("a window from minute %d of the day: give 0 to %d", w.From, minutesADay-1))
	}
	if w.To < 0 || w.To > minutesADay {
		problems = append(problems, fmt.Errorf("a window to minute %d of the day: give 0 to %d", w.To, minutesADay))
	}
	for _, day := range w.Days {
		if day < time.Sunday || day > time.Saturday {
			problems = append(problems, fmt.Errorf("a window on weekday %d: give %d (Sunday) to %d (Saturday)", day, time.Sunday, time.Saturday))
		}
	}
	return errors.Join(problems...)
}

// Until reports whether the window contains now and, if so, when it ends.
func (w Window) Until(now time.Time) (end time.Time, inside bool) {
	w.From, w.To = min(max(w.From, 0), minutesADay-1), min(max(w.To, 0), minutesADay)
	year, month, day := now.In(w.zone()).Date()
	for back := 2; back >= 0; back-- { // where a zone skipped a day, a window that began the day before yesterday may not have ended
		begins, ends := w.on(time.Date(year, month, day-back, 0, 0, 0, 0, time.UTC))
		if !now.Before(begins) && now.Before(ends) && ends.After(end) {
			end, inside = ends, true
		}
	}
	return end, inside
}

// on returns the window that starts on a date, given as midnight UTC of that date. It is empty if none does.
func (w Window) on(date time.Time) (begins, ends time.Time) {
	if len(w.Days) > 0 && !slices.Contains(w.Days, date.Weekday()) {
		return begins, ends
	}
	to := w.To
	if to <= w.From {
		to += minutesADay
	}
	begins, _ = localTimes(date.Add(time.Duration(w.From)*time.Minute), w.zone())
	_, ends = localTimes(date.Add(time.Duration(to)*time.Minute), w.zone())
	return begins, ends
}

func (w Window) zone() *time.Location {
	if w.Zone == nil {
		return time.UTC
	}
	return w.Zone
}

// localTimes returns the first and the last time at which the local clock of a zone shows the wall time that wall has in UTC.
// The two differ if the clock is put back over that time; if it is put forward over it, both are the moment of the change.
func localTimes(wall time.Time, zone *time.Location) (first, last time.Time) {
	before, early := atOffset(wall, wall.Add(-24*time.Hour), zone)
	after, late := atOffset(wall, wall.Add(24*time.Hour), zone)
	switch {
	case early && late && before.Before(after):
		return before, after
	case early && late:
		return after, before
	case early:
		return before, before
	case late:
		return after, after
	}
	forward, _ := before.In(zone).ZoneBounds()
	return forward, forward
}

// atOffset returns the time at which a clock with the zone's offset around a moment shows the wall time, and whether the
// zone has that offset then.
func atOffset(wall, around time.Time, zone *time.Location) (at time.Time, shows bool) {
	_, offset := around.In(zone).Zone()
	at = wall.Add(-time.Duration(offset) * time.Second)
	_, real := at.In(zone).Zone()
	return at, real == offset
}
