package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const warnedPrefix = "warned/"

// A warning is the body of a record which says that a rule will delete dead letters, and from when on.
type warning struct {
	Rule  store.RetentionRule `json:"rule"` // as it was then; a changed rule warns again
	Count int                 `json:"count"`
	At    time.Time           `json:"at"`
	Until time.Time           `json:"until"` // no dead letter is deleted before this time
}

// readWarnings returns the recorded warnings and their records, by rule.
func readWarnings(records []store.Record) (map[string]warning, map[string]store.Record) {
	all, kept := make(map[string]warning), make(map[string]store.Record)
	for _, r := range records {
		rule, ok := strings.CutPrefix(r.Name, warnedPrefix)
		if !ok {
			continue
		}
		var w warning
		_ = json.Unmarshal(r.Body, &w) // a warning that cannot be decoded matches no rule, so the rule warns again
		all[rule], kept[rule] = w, r
	}
	return all, kept
}

// warned returns the rules that warned long enough ago to delete dead letters. The time of a warning is also checked against when the store wrote its record, so a
// remote worker cannot shorten it by writing a warning with an earlier time.
func (c *Config) warned(rules []store.RetentionRule, records []store.Record, now time.Time) map[string]bool {
	warnings, kept := readWarnings(records)
	mayDelete := make(map[string]bool)
	for _, rule := range rules {
		if w, ok := warnings[rule.Name]; ok && w.Rule == rule && !now.Before(w.Until) && now.Sub(kept[rule.Name].KeptAt) >= c.RetentionWarning-time.Millisecond {
			mayDelete[rule.Name] = true
		}
	}
	return mayDelete
}

// warnOnce records a warning for each rule that would delete dead letters and has not warned yet. It reports whether some rule may delete them now.
func (t *retention) warnOnce(records []store.Record, spared map[string]int) (mayDelete bool, err error) {
	warnings, kept := readWarnings(records)
	may := t.cfg.warned(t.pass.rules, records, t.clock.now())
	for _, name := range sortedKeys(spared) {
		i := slices.IndexFunc(t.pass.rules, func(r store.RetentionRule) bool { return r.Name == name })
		if i < 0 {
			continue
		}
		rule := t.pass.rules[i]
		if w, ok := warnings[name]; ok && w.Rule == rule {
			mayDelete = mayDelete || may[name]
			continue
		}
		if err := t.keepWarning(kept[name], rule, spared[name]); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return false, err
		}
	}
	return mayDelete, nil
}

// keepWarning records a warning, with an event in the story of retention, and logs it. The record is written by compare-and-set, so this happens once across all
// processes.
func (t *retention) keepWarning(r store.Record, rule store.RetentionRule, count int) error {
	now := t.clock.now().UTC().Truncate(time.Millisecond)
	w := warning{Rule: rule, Count: count, At: now, Until: now.Add(max(0, t.cfg.RetentionWarning))}
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	r.Namespace, r.Name, r.Body = namespaceRetention, warnedPrefix+rule.Name, body
	reason := fmt.Sprintf("rule %s will delete dead letters from %s on, %d so far: redrive or discard them before, or change the rule",
		rule.Name, w.Until.Format(time.RFC3339), count)
	err = t.keepChange(store.Change{
		Records: []store.Record{r},
		Events:  []store.Event{{Subject: namespaceRetention, Name: "warning", Actor: actorSystem, Reason: reason}},
	})
	if err != nil {
		return err
	}
	t.cfg.Log.Warn("retention will delete dead letters", "event", "retention", "rule", rule.Name, "dead_letters", count, "from", w.Until.Format(time.RFC3339))
	signal(t.signals.feed)
	return nil
}
