package inspect

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

const (
	hour = time.Hour
	// settled is how long after its end an hour may still grow: a settlement that was counted in it may commit later.
	settled = hour
	// remembered is for how long hours that are over are believed without being read again: retention may have forgotten some.
	remembered = hour
	// mostPast is of how many error groups the hours are remembered.
	mostPast = 1_000
)

// A past remembers hours that are over, so that a week of tallies is not added up for every page. What it remembers it has read; nobody adds to
// an hour that has been over for an hour. Where somebody did, while a clock was set back and nobody asked, it is told within the next hour.
type past struct {
	mu     sync.Mutex
	errors map[string]*hours[errorHour] // by fingerprint
	trends *hours[holdfast.Trend]
}

// hours are what was read of whole hours, from one instant to another.
type hours[row any] struct {
	from, to time.Time
	read     time.Time // by the store's clock, at first
	since    time.Time // the same by ours, which nobody sets back
	seen     time.Time // the error group's first failure: another one begins anew
	rows     []row
}

// An errorHour is what failed in an hour, of one error group, in one place.
type errorHour struct {
	fingerprint                      string
	hour                             time.Time
	kind, queue, dependency, version string
	failures                         int
}

// serves reports whether hours can be gone on from.
func (h *hours[row]) serves(since, now time.Time) bool {
	return h != nil && !since.Before(h.from) && !now.Before(h.read) && now.Sub(h.read) < remembered && time.Since(h.since) < remembered
}

// firstHour is the first hour that begins at an instant or after it.
func firstHour(at time.Time) time.Time { return sqltext.StepOf(at.Add(hour-time.Microsecond), hour) }

// lately is where hours begin that may still grow.
func lately(now time.Time) time.Time { return sqltext.StepOf(now.Add(-settled-step), hour) }

// farBack is how far back hours are remembered: as far as anybody usually asks, or does now.
func farBack(since, now time.Time) time.Time {
	if usual := sqltext.StepOf(now.Add(-trendsBack), hour); usual.Before(since) {
		return usual
	}
	return since
}

// errorHours are what failed in each hour since one began, of error groups. What is over is read once.
func (i *Inspector) errorHours(ctx context.Context, groups []holdfast.ErrorGroup, since, now time.Time) ([]errorHour, error) {
	recent := lately(now)
	names := make([]string, len(groups))
	for n := range groups {
		names[n] = groups[n].Fingerprint
	}
	if i.past == nil || !since.Before(recent) {
		return i.readErrorHours(ctx, names, since, endOfTime)
	}
	i.past.mu.Lock()
	defer i.past.mu.Unlock()
	if len(i.past.errors) > mostPast || i.past.errors == nil {
		i.past.errors = map[string]*hours[errorHour]{}
	}
	missing := map[time.Time][]string{} // by where to begin
	for _, g := range groups {
		known := i.past.errors[g.Fingerprint]
		if !known.serves(since, now) || !known.seen.Equal(g.FirstSeen) {
			known = &hours[errorHour]{from: farBack(since, now), to: farBack(since, now), read: now, since: time.Now(), seen: g.FirstSeen}
			i.past.errors[g.Fingerprint] = known
		}
		if known.to.Before(recent) {
			missing[known.to] = append(missing[known.to], g.Fingerprint)
		}
	}
	for from, behind := range missing {
		rows, err := i.readErrorHours(ctx, behind, from, recent.Add(-time.Microsecond))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			known := i.past.errors[row.fingerprint]
			known.rows = append(known.rows, row)
		}
		for _, name := range behind {
			i.past.errors[name].to = recent
		}
	}
	all, err := i.readErrorHours(ctx, names, recent, endOfTime)
	for _, name := range names {
		for _, row := range i.past.errors[name].rows {
			if !row.hour.Before(since) && row.hour.Before(recent) {
				all = append(all, row)
			}
		}
	}
	return all, err
}

// readErrorHours reads what failed between two instants, by hour. An hour that lies partly between them is told as far as it does.
func (i *Inspector) readErrorHours(ctx context.Context, fingerprints []string, from, to time.Time) (rows []errorHour, err error) {
	named, err := json.Marshal(set(slices.Clone(fingerprints)))
	if err != nil || !from.Before(to) {
		return nil, err
	}
	err = i.q.Query(ctx, i.statements["inspect_error_hours"], []any{string(named), int(hour.Microseconds()), from, to}, func(r Row) error {
		rows = append(rows, errorHour{r.Text(0), r.Time(1), r.Text(2), r.Text(3), r.Text(4), r.Text(5), r.Int(6)})
		return nil
	})
	return rows, err
}

// hourlyTrends are the trends of whole hours, of which those that are over are read once.
func (i *Inspector) hourlyTrends(ctx context.Context, since, now time.Time) ([]holdfast.Trend, error) {
	recent := lately(now)
	if i.past == nil || !since.Before(recent) {
		return i.readTrends(ctx, since, now, hour)
	}
	i.past.mu.Lock()
	defer i.past.mu.Unlock()
	known := i.past.trends
	if !known.serves(since, now) {
		known = &hours[holdfast.Trend]{from: farBack(since, now), to: farBack(since, now), read: now, since: time.Now()}
	}
	if known.to.Before(recent) {
		rows, err := i.readTrends(ctx, known.to, recent.Add(-time.Microsecond), hour)
		if err != nil {
			return nil, err
		}
		known.rows, known.to = append(known.rows, rows...), recent
		i.past.trends = known
	}
	all, err := i.readTrends(ctx, recent, now, hour)
	for _, row := range known.rows {
		if !row.Step.Before(since) && row.Step.Before(recent) {
			all = append(all, row)
		}
	}
	return all, err
}
