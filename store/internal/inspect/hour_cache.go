package inspect

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

const (
	hour = time.Hour
	// growthTime is how long after its end an hour may still grow: a settlement that was counted in it may commit
	// later.
	growthTime = hour
	// maxCacheAge is how long past hours are used without being read again: retention may have deleted some.
	maxCacheAge = hour
	// maxCachedGroups is for how many error groups hours are remembered.
	maxCachedGroups = 1_000
)

// An hourCache remembers past hours, so that a week of counts is not added up for every page. It contains only what was
// read, and an hour that ended an hour ago no longer changes. If one did change, because a clock was set back, the
// change is shown within the next hour. It is safe for concurrent use.
type hourCache struct {
	mu     sync.Mutex
	errors map[string]*cachedHours[errorHour] // by fingerprint
	trends *cachedHours[store.Trend]
}

// A cachedHours is the rows of whole hours, from one instant to another.
type cachedHours[row any] struct {
	from, to  time.Time
	read      time.Time // when it was first read, by the store's clock
	readAt    time.Time // the same by this process's monotonic clock
	firstSeen time.Time // the first failure of the error group: another value means another group
	rows      []row
}

// An errorHour is how often an error group failed in one hour, at one place.
type errorHour struct {
	fingerprint                      string
	hour                             time.Time
	kind, queue, dependency, version string
	failures                         int
}

// validFor reports whether the cached hours can be used for a read since then.
func (h *cachedHours[row]) validFor(since, now time.Time) bool {
	return h != nil && !since.Before(h.from) && !now.Before(h.read) && now.Sub(h.read) < maxCacheAge && time.Since(h.readAt) < maxCacheAge
}

// firstHour returns the first hour that begins at an instant or after it.
func firstHour(at time.Time) time.Time { return sqltext.StepOf(at.Add(hour-time.Microsecond), hour) }

// growingFrom returns where the hours begin that may still grow.
func growingFrom(now time.Time) time.Time { return sqltext.StepOf(now.Add(-growthTime-step), hour) }

// cacheFrom returns how far back hours are remembered: as far as callers usually ask, or as far as this one does.
func cacheFrom(since, now time.Time) time.Time {
	if usual := sqltext.StepOf(now.Add(-trendsBack), hour); usual.Before(since) {
		return usual
	}
	return since
}

// errorHours returns the failures of error groups in each hour since one began. Past hours are read once.
func (i *Inspector) errorHours(ctx context.Context, groups []store.ErrorGroup, since, now time.Time) ([]errorHour, error) {
	recent := growingFrom(now)
	names := make([]string, len(groups))
	for n := range groups {
		names[n] = groups[n].Fingerprint
	}
	if i.hourCache == nil || !since.Before(recent) {
		return i.readErrorHours(ctx, names, since, endOfTime)
	}
	i.hourCache.mu.Lock()
	defer i.hourCache.mu.Unlock()
	if len(i.hourCache.errors) > maxCachedGroups || i.hourCache.errors == nil {
		i.hourCache.errors = map[string]*cachedHours[errorHour]{}
	}
	missing := map[time.Time][]string{} // fingerprints by where to begin
	for _, g := range groups {
		cached := i.hourCache.errors[g.Fingerprint]
		if !cached.validFor(since, now) || !cached.firstSeen.Equal(g.FirstSeen) {
			cached = &cachedHours[errorHour]{from: cacheFrom(since, now), to: cacheFrom(since, now), read: now, readAt: time.Now(), firstSeen: g.FirstSeen}
			i.hourCache.errors[g.Fingerprint] = cached
		}
		if cached.to.Before(recent) {
			missing[cached.to] = append(missing[cached.to], g.Fingerprint)
		}
	}
	for from, fingerprints := range missing {
		rows, err := i.readErrorHours(ctx, fingerprints, from, recent.Add(-time.Microsecond))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			cached := i.hourCache.errors[row.fingerprint]
			cached.rows = append(cached.rows, row)
		}
		for _, name := range fingerprints {
			i.hourCache.errors[name].to = recent
		}
	}
	all, err := i.readErrorHours(ctx, names, recent, endOfTime)
	for _, name := range names {
		for _, row := range i.hourCache.errors[name].rows {
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
func (i *Inspector) hourlyTrends(ctx context.Context, since, now time.Time) ([]store.Trend, error) {
	recent := growingFrom(now)
	if i.hourCache == nil || !since.Before(recent) {
		return i.readTrends(ctx, since, now, hour)
	}
	i.hourCache.mu.Lock()
	defer i.hourCache.mu.Unlock()
	cached := i.hourCache.trends
	if !cached.validFor(since, now) {
		cached = &cachedHours[store.Trend]{from: cacheFrom(since, now), to: cacheFrom(since, now), read: now, readAt: time.Now()}
	}
	if cached.to.Before(recent) {
		rows, err := i.readTrends(ctx, cached.to, recent.Add(-time.Microsecond), hour)
		if err != nil {
			return nil, err
		}
		cached.rows, cached.to = append(cached.rows, rows...), recent
		i.hourCache.trends = cached
	}
	all, err := i.readTrends(ctx, recent, now, hour)
	for _, row := range cached.rows {
		if !row.Step.Before(since) && row.Step.Before(recent) {
			all = append(all, row)
		}
	}
	return all, err
}
