package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

const wholeDay = 24 * 60

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (r *reader) windowKey(e *entry) key {
	return key{"no_retries", func(r *reader, at place) {
		r.sequence(at, func(at place) {
			if w, ok := r.window(at); ok {
				e.windows = append(e.windows, w)
			}
		})
	}}
}

// window reads a time of day in which jobs are not retried.
func (r *reader) window(at place) (w failure.Window, ok bool) {
	before := len(r.mistakes)
	from, to := -1, -1
	w.Zone = time.UTC
	r.object(at, []key{
		{"from", func(r *reader, at place) { from = r.minutes(at, wholeDay-1) }},
		{"to", func(r *reader, at place) { to = r.minutes(at, wholeDay) }},
		{"zone", func(r *reader, at place) { w.Zone = r.zone(at) }},
		{"days", func(r *reader, at place) {
			r.sequence(at, func(at place) { w.Days = append(w.Days, r.days(at)...) })
		}},
	})
	if len(r.mistakes) > before {
		return w, false
	}
	switch {
	case from < 0 || to < 0:
		r.wrong(at, "a window needs from and to, such as {from: \"09:00\", to: \"17:00\"}")
	case from == to:
		r.wrong(at, "from and to are the same; for a whole day write from: \"00:00\", to: \"24:00\"")
	default:
		w.From, w.To = from, to
		return w, true
	}
	return w, false
}

// minutes reads a time of day.
func (r *reader) minutes(at place, most int) int {
	text, ok := r.scalar(at, "a time of day such as \"09:00\"")
	if !ok {
		return -1
	}
	hour, minute, found := strings.Cut(text, ":")
	h, err := strconv.Atoi(hour)
	m, err2 := strconv.Atoi(minute)
	n := h*60 + m
	if !found || err != nil || err2 != nil || len(minute) != 2 || h < 0 || m < 0 || m > 59 || n > most {
		r.wrong(at, "%.40q is not a time of day: write hours and minutes, such as \"09:00\"", text)
		return -1
	}
	return n
}

// zone reads a time zone. Local is refused, because it differs between machines.
func (r *reader) zone(at place) *time.Location {
	text, ok := r.scalar(at, "a time zone such as Europe/Berlin")
	if !ok {
		return time.UTC
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		r.wrong(at, "%.60q is not a time zone: give one such as Europe/Berlin or UTC", text)
		return time.UTC
	}
	return zone
}

// days reads mon, or mon-fri, also across the end of the week.
func (r *reader) days(at place) (days []time.Weekday) {
	text, ok := r.scalar(at, "a day such as mon, or days such as mon-fri")
	if !ok {
		return nil
	}
	first, last, span := strings.Cut(text, "-")
	if !span {
		last = first
	}
	from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
	if from < 0 || to < 0 {
		r.wrong(at, "%.40q is not a day: use mon, tue, wed, thu, fri, sat and sun, or mon-fri", text)
		return nil
	}
	for d := from; ; d = (d + 1) % 7 {
		days = append(days, time.Weekday(d))
		if d == to {
			return days
		}
	}
}

// describe formats a window: from 09:00 to 17:00 Europe/Berlin on mon, tue.
func describe(w failure.Window) string {
	text := fmt.Sprintf("from %s to %s %s", clock(w.From), clock(w.To), w.Zone)
	if len(w.Days) > 0 {
		names := make([]string, len(w.Days))
		for i, d := range w.Days {
			names[i] = weekdays[d]
		}
		text += " on " + strings.Join(names, ", ")
	}
	return text
}

func clock(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }
