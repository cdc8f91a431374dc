package ops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Where the rules of retention are kept, and what is said of them.
const (
	retentionRoom  = "retention"
	retentionRules = "rules"
)

// Retention is how long ended jobs are kept, and what has been purged.
type Retention struct {
	Rules   []holdfast.Retain     `json:"rules"`   // the first that matches a job decides about it
	Applied bool                  `json:"applied"` // by a person; else the workers follow what is written in their code
	Version int                   `json:"version,omitempty"`
	Since   time.Time             `json:"since,omitzero"`
	Counts  []holdfast.PurgeCount `json:"counts"` // purged ever
	Story   []holdfast.Event      `json:"story"`  // rules applied, and warnings before dead letters are deleted; the newest first
}

// Retention tells the rules that hold and what they have done so far.
func (s *Service) Retention(ctx context.Context) (Retention, error) {
	r, err := s.record(ctx, retentionRoom, retentionRules)
	if err != nil {
		return Retention{}, err
	}
	answer := Retention{Rules: s.cfg.Retention}
	if r.Version > 0 {
		answer.Applied, answer.Version, answer.Since = true, r.Version, r.KeptAt
		if answer.Rules = nil; json.Unmarshal(r.Body, &answer.Rules) != nil {
			return Retention{}, &holdfast.Error{Kind: holdfast.ErrConflict, Message: "the rules of retention that were applied cannot be read: apply them again"}
		}
	}
	if answer.Counts, err = s.store.PurgeCounts(ctx); err != nil {
		return Retention{}, err
	}
	answer.Story, err = s.store.Events(ctx, retentionRoom, 50)
	return answer, err
}

// ApplyRetention has the workers of a store keep ended jobs by these rules instead of their own. No rules at all purge nothing; nil
// goes back to the workers' own.
func (s *Service) ApplyRetention(ctx context.Context, rules []holdfast.Retain, by By) error {
	if err := by.check(); err != nil {
		return err
	}
	purge := holdfast.Purge{Rules: rules, Scan: 1}
	if err := purge.Check(); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, rule := range rules {
		if names[rule.Name] {
			return invalid("two rules are called %s: tombstones could not tell them apart; rename one", rule.Name)
		}
		names[rule.Name] = true
	}
	return s.keep(ctx, retentionRoom, retentionRules, func(r holdfast.Record) (c holdfast.Change, err error) {
		if rules == nil {
			if r.Version == 0 {
				return c, &holdfast.Error{Kind: holdfast.ErrConflict, Message: "no rules were applied: the workers follow their own already"}
			}
			r.Body = nil
			return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.says(retentionRoom, "reset")}}, nil
		}
		var was []holdfast.Retain
		if r.Version > 0 && json.Unmarshal(r.Body, &was) == nil && same(was, rules) {
			return c, nil
		}
		if r.Body, err = json.Marshal(rules); err != nil {
			return c, err
		}
		return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.says(retentionRoom, "applied")}}, nil
	})
}

// Tombstones lists what remains of purged jobs, the last purged first. The cursor leads to the next page and is empty on the last.
func (s *Service) Tombstones(ctx context.Context, f holdfast.TombstoneFilter) (stones []holdfast.Tombstone, cursor string, err error) {
	return s.store.Tombstones(ctx, f)
}

// Artifacts lists what a job needs or has made that lies elsewhere, and when it expires.
func (s *Service) Artifacts(ctx context.Context, job holdfast.ID) ([]holdfast.Artifact, error) {
	return s.store.Artifacts(ctx, holdfast.ArtifactFilter{Job: job})
}
