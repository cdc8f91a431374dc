package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

const warnedPrefix = "warned/"

// A warning is a record: that a rule will delete dead letters, and from when on.
type warning struct {
	Rule  holdfast.Retain `json:"rule"` // as it was then: a rule that was changed warns again
	Count int             `json:"count"`
	At    time.Time       `json:"at"`
	Until time.Time       `json:"until"` // none is deleted before
}

// readWarnings are those on record, by rule, with their records.
func readWarnings(records []holdfast.Record) (map[string]warning, map[string]holdfast.Record) {
	all, kept := make(map[string]warning), make(map[string]holdfast.Record)
	for _, r := range records {
		rule, ok := strings.CutPrefix(r.Name, warnedPrefix)
		if !ok {
			continue
		}
		var w warning
		_ = json.Unmarshal(r.Body, &w) // one that cannot be read is of another rule: it warns again
		all[rule], kept[rule] = w, r
	}
	return all, kept
}

// warned are the rules that have warned long enough ago. When a warning was kept is the store's word: a worker far away that keeps one with an earlier
// time gains nothing.
func (c *Config) warned(rules []holdfast.Retain, records []holdfast.Record, now time.Time) map[string]bool {
	warnings, kept := readWarnings(records)
	ripe := make(map[string]bool)
	for _, rule := range rules {
		if w, ok := warnings[rule.Name]; ok && w.Rule == rule && !now.Before(w.Until) && now.Sub(kept[rule.Name].KeptAt) >= c.RetentionWarning-time.Millisecond {
			ripe[rule.Name] = true
		}
	}
	return ripe
}

// warn says of each rule that would delete dead letters for the first time that it will, and reports whether one may do so by now.
func (e *Engine) warn(records []holdfast.Record, spared map[string]int) (ripe bool, err error) {
	warnings, kept := readWarnings(records)
	may := e.cfg.warned(e.pass.rules, records, e.clock.now())
	for _, name := range sortedKeys(spared) {
		i := slices.IndexFunc(e.pass.rules, func(r holdfast.Retain) bool { return r.Name == name })
		if i < 0 {
			continue
		}
		rule := e.pass.rules[i]
		if w, ok := warnings[name]; ok && w.Rule == rule {
			ripe = ripe || may[name]
			continue
		}
		if err := e.keepWarning(kept[name], rule, spared[name]); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return false, err
		}
	}
	return ripe, nil
}

// keepWarning says it once in all processes: in the story of retention, and in the log.
func (e *Engine) keepWarning(r holdfast.Record, rule holdfast.Retain, count int) error {
	now := e.clock.now().UTC().Truncate(time.Millisecond)
	w := warning{Rule: rule, Count: count, At: now, Until: now.Add(max(0, e.cfg.RetentionWarning))}
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	r.Room, r.Name, r.Body = roomRetention, warnedPrefix+rule.Name, body
	reason := fmt.Sprintf("rule %s will delete dead letters from %s on, %d of them by now: redrive or discard them before, or change the rule",
		rule.Name, w.Until.Format(time.RFC3339), count)
	err = e.keepChange(holdfast.Change{
		Records: []holdfast.Record{r},
		Events:  []holdfast.Event{{Subject: roomRetention, Name: "warning", Actor: actorSystem, Reason: reason}},
	})
	if err != nil {
		return err
	}
	e.cfg.Log.Warn("retention will delete dead letters", "event", "retention", "rule", rule.Name, "dead_letters", count, "from", w.Until.Format(time.RFC3339))
	nudge(e.happened)
	return nil
}
