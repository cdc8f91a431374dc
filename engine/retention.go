package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
)

const (
	roomRetention  = "retention"
	retentionRules = "rules"
	retentionBeat  = time.Second
	retentionScan  = 1000
	retentionRest  = time.Minute // between two passes, and between two looks at the shelves
)

// DefaultRetention keeps what ended well, or was cancelled, for a week, and dead letters for ever.
var DefaultRetention = []holdfast.Retain{
	{Name: "complete", State: holdfast.Complete, For: 7 * 24 * time.Hour},
	{Name: "cancelled", State: holdfast.Cancelled, For: 7 * 24 * time.Hour},
	{Name: "failed", State: holdfast.Failed, For: holdfast.Forever},
}

// A pass goes once over all ended jobs. It is the retention duty's alone.
type pass struct {
	rules    []holdfast.Retain // as they were when it began
	cursor   holdfast.ID
	deleting bool           // dead letters too, by the rules that have warned
	spared   map[string]int // dead letters that were left, by rule
	rested   time.Time      // when the last one ended, and
	shelved  time.Time      // when the shelves were last looked at, by this process's clock
}

// retain purges ended jobs whose time is up, a step at a time: it goes on at once while there is something to purge, and takes a
// breath when there is not.
func (e *Engine) retain(ctx context.Context) error {
	urged := e.station("retention").urged.Load()
	p := &e.pass
	if urged || p.shelved.IsZero() || time.Since(p.shelved) >= retentionRest {
		p.shelved = time.Now()
		if err := e.forgetShelves(ctx); err != nil {
			return err
		}
	}
	if !urged && !p.rested.IsZero() && time.Since(p.rested) < retentionRest {
		return nil
	}
	records, err := e.records(roomRetention)
	if err != nil {
		return err
	}
	rules, err := e.cfg.retentionRules(records)
	if err != nil {
		return err
	}
	if !slices.Equal(rules, p.rules) {
		e.pass = pass{rules: rules, shelved: p.shelved}
	}
	if !slices.ContainsFunc(rules, func(r holdfast.Retain) bool { return r.For >= 0 }) {
		return nil // all is kept for ever
	}
	for ctx.Err() == nil {
		if purged, ended, err := e.purgeStep(records); err != nil || ended || purged == 0 && !urged {
			return err
		}
	}
	return nil
}

// retentionRules are those a person applied to the store, or else the Config's. Rules nobody can read purge nothing.
func (c *Config) retentionRules(records []holdfast.Record) ([]holdfast.Retain, error) {
	for _, r := range records {
		if r.Name != retentionRules {
			continue
		}
		var rules []holdfast.Retain
		if err := json.Unmarshal(r.Body, &rules); err != nil {
			return nil, fmt.Errorf("the rules of retention in the store cannot be read, nothing is purged until they are applied anew: %w", err)
		}
		return rules, nil
	}
	return c.Retention, nil
}

// Purge is a step of retention as an engine with this Config takes it, whatever rules p names: by the rules that were applied to the store, or else
// the Config's, and without dead letters of a rule that has not warned long enough. The records are those of the room "retention". A server calls it for
// workers far away, which do not choose what is purged.
func (c Config) Purge(p holdfast.Purge, records []holdfast.Record) (holdfast.Purge, error) {
	c.fill()
	rules, err := c.retentionRules(records)
	if err != nil {
		return p, err
	}
	if p.Rules = rules; !p.SpareDeadLetters {
		var now time.Time
		if len(records) > 0 {
			now = records[0].AsOf
		}
		p.Rules = guarded(rules, c.warned(rules, records, now))
	}
	return p, nil
}

// Keep is how long a shelf is kept by this Config; holdfast.Forever: for ever.
func (c Config) Keep(shelf string) time.Duration {
	c.fill()
	switch shelf {
	case holdfast.ShelfFeed:
		return c.KeepFeed
	case holdfast.ShelfTallies:
		return c.KeepTallies
	case holdfast.ShelfTombstones:
		return c.KeepTombstones
	}
	return c.KeepStory
}

// purgeStep takes the pass a step further, and reports whether it came to its end.
func (e *Engine) purgeStep(records []holdfast.Record) (jobs int, ended bool, err error) {
	p := &e.pass
	order := holdfast.Purge{Rules: p.rules, After: p.cursor, Scan: retentionScan, SpareDeadLetters: !p.deleting}
	if p.deleting {
		order.Rules = guarded(p.rules, e.cfg.warned(p.rules, records, e.clock.now()))
	}
	done, err := e.purgeOnce(order)
	if err != nil {
		return 0, false, err
	}
	for rule, n := range done.Spared {
		if p.spared == nil {
			p.spared = make(map[string]int)
		}
		p.spared[rule] += n
	}
	if p.cursor = done.Next; !p.cursor.IsZero() {
		return done.Jobs, false, nil
	}
	spared, deleting := p.spared, p.deleting
	p.spared, p.deleting, p.rested = nil, false, time.Now()
	if deleting || len(spared) == 0 {
		return done.Jobs, true, nil
	}
	if p.deleting, err = e.warn(records, spared); err != nil || p.deleting {
		p.rested = time.Time{}
	}
	return done.Jobs, !p.deleting, err
}

func (e *Engine) purgeOnce(order holdfast.Purge) (holdfast.Purged, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Purge(ctx, order)
}

// guarded has the rules that may not delete dead letters yet keep what failed.
func guarded(rules []holdfast.Retain, ripe map[string]bool) []holdfast.Retain {
	var all []holdfast.Retain
	for _, r := range rules {
		if r.For >= 0 && (r.State == "" || r.State == holdfast.Failed) && !ripe[r.Name] {
			keep := r
			keep.State, keep.For = holdfast.Failed, holdfast.Forever
			all = append(all, keep)
		}
		all = append(all, r)
	}
	return all
}

// forgetShelves deletes what is old on each shelf.
func (e *Engine) forgetShelves(ctx context.Context) error {
	for _, shelf := range []string{holdfast.ShelfFeed, holdfast.ShelfStory, holdfast.ShelfTallies, holdfast.ShelfTombstones} {
		keep := e.cfg.Keep(shelf)
		if keep == holdfast.Forever {
			continue
		}
		_, err := e.repeat(ctx, 1, func(ctx context.Context, _ int) (int, error) {
			return e.store.Forget(ctx, shelf, keep, retentionScan)
		})
		if err != nil {
			return fmt.Errorf("what is old of the %s could not be forgotten: %w", shelf, err)
		}
	}
	return nil
}
