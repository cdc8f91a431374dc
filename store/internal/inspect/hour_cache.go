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
	// growthTime is how long after its end an hour may still grow: a settlement that was counted in it may commit
	// later.
	settled = hour
	// maxCacheAge is how long past hours are used without being read again: retention may have deleted some.
	remembered = hour
	// maxCachedGroups is for how many error groups hours are remembered.
	mostPast = 1_000
)

// An hourCache remembers past hours, so that a week of counts is not added up for every page. It contains only what was
// read, and an hour that ended an hour ago no longer changes. If one did change, because a clock was set back, the
// change is shown within the next hour. It is safe for concurrent use.
type past struct {
	mu     sync.Mutex
	errors map[string]*hours[errorHour] // by fingerprint
	trends *hours[holdfast.Trend]
}

// A cachedHours is the rows of whole hours, from one instant to another.
type hours[row any] struct {
	from, to time.Time
	read     time.Time // when it was first read, by the store's clock
	since    time.Time // the same by this process's monotonic clock
	seen     time.Time // the first failure of the error group: another value means another group
	rows     []row
}

// An errorHour is how often an error group failed in one hour, at one place.
type errorHour struct {
	fingerprint                      string
	hour                             time.Time
	kind, queue, dependency, version string
	failures                         int
}

// validFor reports whether the cached hours can be used for a read since then.
func (h *hours[row]) serves(since, now time.Time) bool {
	return h != nil && !since.Before(h.from) && !now.Before(h.read) && now.Sub(h.read) < remembered && time.Since(h.since) < remembered
}

// firstHour returns the first hour that begins at an instant or after it.
func firstHour(at time.Time) time.Time { return sqltext.StepOf(at.Add(hour-time.Microsecond), hour) }

// growingFrom returns where the hours begin that may still grow.
func lately(now time.Time) time.Time { return sqltext.StepOf(now.Add(-settled-step), hour) }

// cacheFrom returns how far back hours are remembered: as far as callers usually ask, or as far as this one does.
func farBack(since, now time.Time) time.Time {
	if usual := sqltext.StepOf(now.Add(-trendsBack), hour); usual.Before(since) {
		return usual
	}
	return since
}

// errorHours returns the failures of error groups in each hour since one began. Past hours are read once.
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
	missing := map[time.Time][]string{} // fingerprints by where to begin
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

// readErrorHours reads failures between two instants, by hour. An hour that lies partly between them is counted only
// within them.
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

// hourlyTrends returns the trends of whole hours. Past hours are read once.
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
