package ops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Record of the retention rules, and subject of their events.
const (
	namespaceRetention = "retention"
	retentionRules     = "rules"
)

// Retention is the rules for ended jobs, and what they have purged.
type Retention struct {
	Rules   []store.RetentionRule `json:"rules"`   // the first rule that matches a job applies
	Applied bool                  `json:"applied"` // by a person; otherwise workers use the rules in their code
	Version int                   `json:"version,omitempty"`
	Since   time.Time             `json:"since,omitzero"`
	Counts  []store.PurgeCount    `json:"counts"` // purged in total
	Story   []store.Event         `json:"story"`  // rules that were applied, and warnings before dead letters are deleted; the newest first
}

// Retention returns the rules in force and what they have purged.
func (s *Service) Retention(ctx context.Context) (Retention, error) {
	r, err := s.readRecord(ctx, namespaceRetention, retentionRules)
	if err != nil {
		return Retention{}, err
	}
	answer := Retention{Rules: s.cfg.Retention}
	if r.Version > 0 {
		answer.Applied, answer.Version, answer.Since = true, r.Version, r.KeptAt
		if answer.Rules = nil; json.Unmarshal(r.Body, &answer.Rules) != nil {
			return Retention{}, &holdfast.Error{Err: holdfast.ErrConflict, Message: "the applied retention rules cannot be read: apply them again"}
		}
	}
	if answer.Counts, err = s.store.PurgeCounts(ctx); err != nil {
		return Retention{}, err
	}
	answer.Story, err = s.store.Events(ctx, namespaceRetention, 50)
	return answer, err
}

// ApplyRetention makes the workers of a store use these rules instead of their own. An empty list purges nothing; nil
// returns to the workers' own rules.
func (s *Service) ApplyRetention(ctx context.Context, rules []store.RetentionRule, by Actor) error {
	if err := by.check(); err != nil {
		return err
	}
	purge := store.Purge{Rules: rules, Scan: 1}
	if err := purge.Check(); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, rule := range rules {
		if names[rule.Name] {
			return invalid("two rules have the name %s: rename one, because tombstones record the name", rule.Name)
		}
		names[rule.Name] = true
	}
	return s.updateRecord(ctx, namespaceRetention, retentionRules, func(r store.Record) (c store.Change, err error) {
		if rules == nil {
			if r.Version == 0 {
				return c, &holdfast.Error{Err: holdfast.ErrConflict, Message: "no rules are applied: workers already use their own"}
			}
			r.Body = nil
			return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event(namespaceRetention, "reset")}}, nil
		}
		var was []store.RetentionRule
		if r.Version > 0 && json.Unmarshal(r.Body, &was) == nil && sameJSON(was, rules) {
			return c, nil
		}
		if r.Body, err = json.Marshal(rules); err != nil {
			return c, err
		}
		return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event(namespaceRetention, "applied")}}, nil
	})
}

// Tombstones returns tombstones, the last purged first. The cursor is for the next page and empty on the last.
func (s *Service) Tombstones(ctx context.Context, f store.TombstoneFilter) (stones []store.Tombstone, cursor string, err error) {
	return s.store.Tombstones(ctx, f)
}

// Artifacts returns the artifacts of a job, with their expiry.
func (s *Service) Artifacts(ctx context.Context, job holdfast.ID) ([]store.Artifact, error) {
	return s.store.Artifacts(ctx, store.ArtifactFilter{Job: job})
}
