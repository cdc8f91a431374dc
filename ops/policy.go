package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const (
	policyRoom    = "policy"
	policyCurrent = "current"
)

// A Policy is the one that is applied to a store.
type Policy struct {
	Version int        `json:"version"`
	KeptAt  time.Time  `json:"kept_at,omitzero"`
	Text    string     `json:"text"` // as it was written
	Workers []Follower `json:"workers,omitempty"`
	InGo    []InGo     `json:"in_go,omitempty"` // what live workers say in Go besides
}

// InGo is a policy that live workers have in Go.
type InGo struct {
	Kind     string   `json:"kind,omitempty"`     // empty: of all their kinds
	Versions []string `json:"versions,omitempty"` // of the programs
	policy.Said
}

// A Follower is a live worker, and how far it follows the applied policy.
type Follower struct {
	Worker  string `json:"worker"`
	Version int    `json:"version"`          // of the applied policy that is in force there; 0: none yet
	Misses  string `json:"misses,omitempty"` // what of it is not followed or not known there, and why
}

// A PolicyOrder asks for a policy to be applied.
type PolicyOrder struct {
	Text     string   // the policy file
	Codes    []string // failure codes that it may name although nothing defines them
	Replaces int      // the version that it replaces, as the caller saw it; 0: whatever is applied
}

// applied is a policy as it is recorded.
type applied struct {
	Text    string `json:"text"`
	Removed bool   `json:"removed,omitempty"` // the record stays, so that versions go on
}

// appliedIn reads the record of the policy; ok is false when none is applied.
func appliedIn(r holdfast.Record) (body applied, ok bool) {
	if r.Version == 0 {
		return body, false
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return applied{}, true // whatever it is, it can be replaced
	}
	return body, !body.Removed
}

// Policy tells which policy was applied to the store, and how far live workers follow it. Without one workers follow what is in
// their code, and the answer is ErrNotFound.
func (s *Service) Policy(ctx context.Context) (Policy, error) {
	r, err := s.record(ctx, policyRoom, policyCurrent)
	if err != nil {
		return Policy{}, err
	}
	body, is := appliedIn(r)
	if !is {
		return Policy{}, noPolicy()
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Policy{}, err
	}
	p := Policy{Version: r.Version, KeptAt: r.KeptAt, Text: body.Text}
	for _, w := range workers {
		p.Workers = append(p.Workers, Follower{w.Worker, w.Policy, w.Misses})
	}
	records, err := s.store.Records(ctx, catalog.Room)
	if err != nil {
		return Policy{}, err
	}
	for _, a := range catalog.Live(records, workers) {
		if !a.InGo.Engine.IsZero() {
			p.InGo = append(p.InGo, InGo{"", a.Versions, a.InGo.Engine})
		}
		for _, kind := range slices.Sorted(maps.Keys(a.InGo.Kinds)) {
			p.InGo = append(p.InGo, InGo{kind, a.Versions, a.InGo.Kinds[kind]})
		}
	}
	return p, nil
}

// ApplyPolicy has the workers of a store follow a policy within seconds. One that makes no sense is refused whole, and so is one that
// names a failure code that is neither built in, nor published by a worker, nor defined by the policy itself. The one that is applied
// already is left as it is.
func (s *Service) ApplyPolicy(ctx context.Context, o PolicyOrder, by By) (Policy, error) {
	if err := by.check(); err != nil {
		return Policy{}, err
	}
	known, err := s.accepting(ctx, o.Codes)
	if err != nil {
		return Policy{}, err
	}
	set, err := policy.ParseFor([]byte(o.Text), known)
	if err != nil {
		return Policy{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
	}
	body, err := json.Marshal(applied{Text: set.Text()})
	if err != nil {
		return Policy{}, err
	}
	err = s.keep(ctx, policyRoom, policyCurrent, func(r holdfast.Record) (holdfast.Change, error) {
		if err := replaces(r, o.Replaces); err != nil {
			return holdfast.Change{}, err
		}
		if old, is := appliedIn(r); is && old.Text == set.Text() {
			return holdfast.Change{}, nil
		}
		r.Body = body
		return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.says("policy", "applied")}}, nil
	})
	if err != nil {
		return Policy{}, err
	}
	return s.Policy(ctx)
}

// RemovePolicy has workers go back, within seconds, to the policy they were given at their start, or to what is written in their code.
// When a version is given, only that one is removed. Without an applied policy the answer is ErrNotFound.
func (s *Service) RemovePolicy(ctx context.Context, version int, by By) error {
	if err := by.check(); err != nil {
		return err
	}
	body, err := json.Marshal(applied{Removed: true})
	if err != nil {
		return err
	}
	return s.keep(ctx, policyRoom, policyCurrent, func(r holdfast.Record) (holdfast.Change, error) {
		if _, is := appliedIn(r); !is {
			return holdfast.Change{}, noPolicy()
		}
		if err := replaces(r, version); err != nil {
			return holdfast.Change{}, err
		}
		r.Body = body
		return holdfast.Change{Records: []holdfast.Record{r}, Events: []holdfast.Event{by.says("policy", "removed")}}, nil
	})
}

func noPolicy() error {
	return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "no policy is applied: workers follow the policy file they were given, or what is written in their code; see 'holdfast policy apply --help'"}
}

// replaces refuses to replace another version than the caller saw.
func replaces(r holdfast.Record, version int) error {
	if version > 0 && r.Version != version {
		return &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("version %d of the policy is applied, not %d: look at it, then decide again", r.Version, version)}
	}
	return nil
}

// accepting knows the codes of the catalog, and those that a caller vouches for: only their names are known, and that waiting may
// cure them.
func (s *Service) accepting(ctx context.Context, names []string) (*failure.Taxonomy, error) {
	known, err := s.published(ctx)
	if err != nil {
		return nil, err
	}
	return Accepting(known, names)
}

// Accepting adds codes of which only the names are known to a taxonomy. A failure with such a code is treated as UNKNOWN is.
func Accepting(known *failure.Taxonomy, names []string) (*failure.Taxonomy, error) {
	codes, unknown := known.Own(), failure.Code{}
	unknown, _ = known.Code("UNKNOWN")
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if _, is := known.Code(name); is {
			continue
		}
		unknown.Name = name
		codes = append(codes, unknown)
	}
	all, err := failure.NewTaxonomy(codes...)
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
	}
	return all, nil
}

// policies is what holds for the workers too: the policy that was applied to the store, or else the application's own. One that
// cannot be read is passed over, as the workers pass over it.
func (s *Service) policies(ctx context.Context) (*policy.Set, error) {
	known, err := s.published(ctx)
	if err != nil {
		return nil, err
	}
	return s.inForce(ctx, known)
}

// inForce reads the policy in force.
func (s *Service) inForce(ctx context.Context, known *failure.Taxonomy) (*policy.Set, error) {
	r, err := s.record(ctx, policyRoom, policyCurrent)
	if err != nil {
		return nil, err
	}
	current, is := appliedIn(r)
	if !is {
		return s.cfg.Policies, nil
	}
	set, _, err := policy.ParseLenient([]byte(current.Text), known)
	if err != nil {
		return s.cfg.Policies, nil
	}
	return set, nil
}

// breakerConfig is how a dependency's breaker is judged.
func (s *Service) breakerConfig(ctx context.Context, dependency string) (breaker.Config, error) {
	set, err := s.policies(ctx)
	return set.BreakerOver(s.cfg.Breakers[dependency], dependency), err
}

// costs tells what an attempt of a kind costs; 0 where the policy does not say.
func (s *Service) costs(ctx context.Context) (func(kind string) float64, error) {
	set, err := s.policies(ctx)
	return set.Cost, err
}
