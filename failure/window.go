package failure

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Window is a time of day at which something does not happen: no retries from 09:00 to 17:00 in Berlin. It goes by the
// clock on the wall there. Where that clock is put forward over the beginning or the end, the window begins or ends at that
// moment; where it is put back and shows an hour twice, the window begins with the first and ends with the last.
type Window struct {
	From int            // minutes after midnight, 0 to 1439
	To   int            // minutes after midnight, 0 to 1440; on the next day unless it is after From
	Days []time.Weekday // on which it begins; every day when empty
	Zone *time.Location // UTC when nil
}

const minutesADay = 24 * 60

// Check refuses a window that makes no sense, naming every problem at once.
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

// Until reports whether the window is open at that moment, and when it ends then.
func (w Window) Until(now time.Time) (end time.Time, inside bool) {
	w.From, w.To = min(max(w.From, 0), minutesADay-1), min(max(w.To, 0), minutesADay)
	year, month, day := now.In(w.zone()).Date()
	for back := 2; back >= 0; back-- { // a window that began the day before yesterday may go on where a day was left out
		begins, ends := w.on(time.Date(year, month, day-back, 0, 0, 0, 0, time.UTC))
		if !now.Before(begins) && now.Before(ends) && ends.After(end) {
			end, inside = ends, true
		}
	}
	return end, inside
}

// on is the window that begins on a date, given as its midnight in UTC. It is empty when none does.
func (w Window) on(date time.Time) (begins, ends time.Time) {
	if len(w.Days) > 0 && !slices.Contains(w.Days, date.Weekday()) {
		return begins, ends
	}
	to := w.To
	if to <= w.From {
		to += minutesADay
	}
	begins, _ = shown(date.Add(time.Duration(w.From)*time.Minute), w.zone())
	_, ends = shown(date.Add(time.Duration(to)*time.Minute), w.zone())
	return begins, ends
}

func (w Window) zone() *time.Location {
	if w.Zone == nil {
		return time.UTC
	}
	return w.Zone
}

// shown is when the clock in a zone shows what a clock in UTC shows at that moment: the first time and the last. They differ
// when it is put back over it; when it is put forward over it both are the moment at which that happens.
func shown(wall time.Time, zone *time.Location) (first, last time.Time) {
	before, early := reading(wall, wall.Add(-24*time.Hour), zone)
	after, late := reading(wall, wall.Add(24*time.Hour), zone)
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

// reading is when a clock that goes as the zone's does around some moment shows that time, and whether the zone's does too.
func reading(wall, around time.Time, zone *time.Location) (at time.Time, shows bool) {
	_, offset := around.In(zone).Zone()
	at = wall.Add(-time.Duration(offset) * time.Second)
	_, real := at.In(zone).Zone()
	return at, real == offset
}
