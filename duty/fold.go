package duty

import (
	"maps"
	"slices"
	"time"
)

// Statuses combines orders and reports into the status of each duty, sorted by name. It includes duties that have an order but that no process runs.
func Statuses(orders map[string]Control, reports []Reports, now time.Time) []Status {
	all := make(map[string]*Status)
	of := func(name string) *Status {
		if all[name] == nil {
			all[name] = &Status{Name: name}
		}
		return all[name]
	}
	for _, r := range reports {
		for name, one := range r.Duties {
			of(name).add(one, overdue(one, r.At, now))
		}
	}
	for name, o := range orders {
		s := of(name)
		if o.Halts(now) && Pausable(name) {
			s.Paused, s.Until, s.Actor, s.Reason, s.Lag = true, o.Until, o.Actor, o.Reason, 0
		}
	}
	folded := make([]Status, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		folded = append(folded, *all[name])
	}
	return folded
}

// overdue returns how late the next run of one process is. While the report is current, that is as of the time of the report, because some duties run more often than
// they can be reported. If the process has stopped reporting, it is as of now.
func overdue(r Report, at, now time.Time) time.Duration {
	if r.Next.IsZero() {
		return 0
	}
	if now.Sub(at) <= GoneAfter {
		now = at
	}
	return max(0, now.Sub(r.Next))
}

// add adds the report of one process. The lag is that of the process that is least late.
func (s *Status) add(r Report, overdue time.Duration) {
	if s.Workers++; s.Workers == 1 || overdue < s.Lag {
		s.Lag = overdue
	}
	if r.Last.After(s.Last) {
		s.Last, s.Took = r.Last, r.Took
	}
	if !r.Next.IsZero() && (s.Next.IsZero() || r.Next.Before(s.Next)) {
		s.Next = r.Next
	}
	if r.ErrorAt.After(s.ErrorAt) {
		s.Error, s.ErrorAt = r.Error, r.ErrorAt
	}
}
