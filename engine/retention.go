package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespaceRetention = "retention"
	retentionRules     = "rules"
	retentionInterval  = time.Second
	retentionScan      = 1000
	retentionRest      = time.Minute // between two passes, and between two deletions of old history
)

// DefaultRetention keeps complete and cancelled jobs for a week, and dead letters for ever.
var DefaultRetention = []store.RetentionRule{
	{Name: "complete", State: holdfast.Complete, For: 7 * 24 * time.Hour},
	{Name: "cancelled", State: holdfast.Cancelled, For: 7 * 24 * time.Hour},
	{Name: "failed", State: holdfast.Failed, For: store.Forever},
}

// A retentionPass scans all ended jobs once, in id order. Only the duty "retention" uses it. Times are by this process's clock.
type retentionPass struct {
	rules            []store.RetentionRule // as they were when the pass began
	cursor           holdfast.ID
	deleting         bool           // this pass also deletes dead letters, by the rules that have warned
	spared           map[string]int // how many dead letters were spared, by rule
	lastEnd          time.Time      // when the last pass ended
	historyCleanedAt time.Time      // when old history was last deleted
}

// retention purges ended jobs and old history. Only its duty uses it.
type retention struct {
	*core
	duties *dutyRunner
	pass   retentionPass
}

// run purges ended jobs that the rules no longer keep, step by step. While a step purges something the next one follows at once; otherwise it follows at the
// next interval. A run that an operator requested scans to the end of the pass.
func (t *retention) run(ctx context.Context) error {
	requested := t.duties.control("retention").requested.Load()
	p := &t.pass
	if requested || p.historyCleanedAt.IsZero() || time.Since(p.historyCleanedAt) >= retentionRest {
		p.historyCleanedAt = time.Now()
		if err := t.deleteOldHistory(ctx); err != nil {
			return err
		}
	}
	if !requested && !p.lastEnd.IsZero() && time.Since(p.lastEnd) < retentionRest {
		return nil
	}
	records, err := t.records(namespaceRetention)
	if err != nil {
		return err
	}
	rules, err := t.cfg.retentionRules(records)
	if err != nil {
		return err
	}
	if !slices.Equal(rules, p.rules) {
		t.pass = retentionPass{rules: rules, historyCleanedAt: p.historyCleanedAt}
	}
	if !slices.ContainsFunc(rules, func(r store.RetentionRule) bool { return r.For >= 0 }) {
		return nil // every rule keeps for ever
	}
	for ctx.Err() == nil {
		if purged, ended, err := t.purgeStep(records); err != nil || ended || purged == 0 && !requested {
			return err
		}
	}
	return nil
}

// retentionRules returns the rules that an operator applied to the store, or else those of the Config. If the applied rules cannot be decoded, it returns an error
// and nothing is purged.
func (c *Config) retentionRules(records []store.Record) ([]store.RetentionRule, error) {
	for _, r := range records {
		if r.Name != retentionRules {
			continue
		}
		var rules []store.RetentionRule
		if err := json.Unmarshal(r.Body, &rules); err != nil {
			return nil, fmt.Errorf("the retention rules in the store cannot be read; nothing is purged until they are applied again: %w", err)
		}
		return rules, nil
	}
	return c.Retention, nil
}

// Purge returns p with the rules by which an engine with this Config purges: those applied to the store, or else those of the Config, without dead letters of rules
// that have not warned long enough. The rules in p are ignored. records are those of the namespace "retention". A server calls it for remote workers, so that they
// cannot choose what is purged.
func (c Config) Purge(p store.Purge, records []store.Record) (store.Purge, error) {
	c.setDefaults()
	rules, err := c.retentionRules(records)
	if err != nil {
		return p, err
	}
	if p.Rules = rules; !p.SpareDeadLetters {
		var now time.Time
		if len(records) > 0 {
			now = records[0].AsOf
		}
		p.Rules = protectUnwarned(rules, c.warned(rules, records, now))
	}
	return p, nil
}

// HistoryAge returns how long this Config keeps a history (store.HistoryFeed and so on); store.Forever means for ever.
func (c Config) HistoryAge(history string) time.Duration {
	c.setDefaults()
	switch history {
	case store.HistoryFeed:
		return c.KeepFeed
	case store.HistoryCounts:
		return c.KeepCounts
	case store.HistoryTombstones:
		return c.KeepTombstones
	}
	return c.KeepStories
}

// purgeStep scans the next jobs of the pass. ended reports whether the pass is complete. A pass spares dead letters first and counts them by rule; then rules that
// have not warned yet warn, and if some rule has warned long enough, a second pass deletes its dead letters.
func (t *retention) purgeStep(records []store.Record) (jobs int, ended bool, err error) {
	p := &t.pass
	request := store.Purge{Rules: p.rules, After: p.cursor, Scan: retentionScan, SpareDeadLetters: !p.deleting}
	if p.deleting {
		request.Rules = protectUnwarned(p.rules, t.cfg.warned(p.rules, records, t.clock.now()))
	}
	done, err := t.purgeOnce(request)
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
	p.spared, p.deleting, p.lastEnd = nil, false, time.Now()
	if deleting || len(spared) == 0 {
		return done.Jobs, true, nil
	}
	if p.deleting, err = t.warnOnce(records, spared); err != nil || p.deleting {
		p.lastEnd = time.Time{}
	}
	return done.Jobs, !p.deleting, err
}

func (t *retention) purgeOnce(request store.Purge) (store.PurgeResult, error) {
	ctx, done := t.storeContext(t.cfg.Lease)
	defer done()
	return t.store.Purge(ctx, request)
}

// protectUnwarned returns the rules such that those that may not delete dead letters yet keep failed jobs.
func protectUnwarned(rules []store.RetentionRule, mayDelete map[string]bool) []store.RetentionRule {
	var all []store.RetentionRule
	for _, r := range rules {
		if r.For >= 0 && (r.State == "" || r.State == holdfast.Failed) && !mayDelete[r.Name] {
			keep := r
			keep.State, keep.For = holdfast.Failed, store.Forever
			all = append(all, keep)
		}
		all = append(all, r)
	}
	return all
}

// deleteOldHistory deletes old history: the feed, stories, counts and tombstones.
func (t *retention) deleteOldHistory(ctx context.Context) error {
	for _, history := range []string{store.HistoryFeed, store.HistoryStories, store.HistoryCounts, store.HistoryTombstones} {
		keep := t.cfg.HistoryAge(history)
		if keep == store.Forever {
			continue
		}
		_, err := t.repeat(ctx, 1, func(ctx context.Context, _ int) (int, error) {
			return t.store.DeleteHistory(ctx, history, keep, retentionScan)
		})
		if err != nil {
			return fmt.Errorf("old entries of the %s could not be deleted: %w", history, err)
		}
	}
	return nil
}
