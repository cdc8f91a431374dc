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
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespacePolicy = "policy"
	policyCurrent   = "current"
)

// A Policy is the policy that is applied to a store, with how far workers follow it.
type Policy struct {
	Version int            `json:"version"`
	KeptAt  time.Time      `json:"kept_at,omitzero"`
	Text    string         `json:"text"` // the file as it was applied
	Workers []PolicyWorker `json:"workers,omitempty"`
	InGo    []GoPolicy     `json:"in_go,omitempty"` // policies of live workers in Go
}

// An GoPolicy is a policy that live workers have in Go.
type GoPolicy struct {
	Kind     string   `json:"kind,omitempty"`     // empty: for all their kinds
	Versions []string `json:"versions,omitempty"` // of the programs
	policy.Described
}

// A PolicyWorker is a live worker, and how far it applies the policy.
type PolicyWorker struct {
	Worker  string `json:"worker"`
	Version int    `json:"version"`          // of the applied policy that it uses; 0: none yet
	Misses  string `json:"misses,omitempty"` // parts of the policy that it does not apply or know, and why
}

// A PolicyRequest asks to apply a policy.
type PolicyRequest struct {
	Text     string   // the policy file
	Codes    []string // failure codes that it may name although they are not defined
	Replaces int      // version that it replaces, as the caller saw it; 0: any
}

// appliedPolicy is the body of the policy's record.
type appliedPolicy struct {
	Text    string `json:"text"`
	Removed bool   `json:"removed,omitempty"` // the record stays, so that version numbers continue
}

// decodeApplied reads the record of the policy; ok is false if none is applied.
func decodeApplied(r store.Record) (body appliedPolicy, ok bool) {
	if r.Version == 0 {
		return body, false
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return appliedPolicy{}, true // it cannot be decoded, but it can be replaced
	}
	return body, !body.Removed
}

// Policy returns the policy that is applied to the store, and how far live workers follow it. Without one workers use the
// policies in their code, and it returns ErrNotFound.
func (s *Service) Policy(ctx context.Context) (Policy, error) {
	r, err := s.readRecord(ctx, namespacePolicy, policyCurrent)
	if err != nil {
		return Policy{}, err
	}
	body, is := decodeApplied(r)
	if !is {
		return Policy{}, noPolicy()
	}
	workers, err := s.store.Workers(ctx)
	if err != nil {
		return Policy{}, err
	}
	p := Policy{Version: r.Version, KeptAt: r.KeptAt, Text: body.Text}
	for _, w := range workers {
		p.Workers = append(p.Workers, PolicyWorker{w.Worker, w.Policy, w.Misses})
	}
	records, err := s.store.Records(ctx, catalog.Namespace)
	if err != nil {
		return Policy{}, err
	}
	for _, a := range catalog.Live(records, workers) {
		if !a.InGo.Engine.IsZero() {
			p.InGo = append(p.InGo, GoPolicy{"", a.Versions, a.InGo.Engine})
		}
		for _, kind := range slices.Sorted(maps.Keys(a.InGo.Kinds)) {
			p.InGo = append(p.InGo, GoPolicy{kind, a.Versions, a.InGo.Kinds[kind]})
		}
	}
	return p, nil
}

// ApplyPolicy makes the workers of a store use a policy within seconds. An invalid policy is refused completely, and so is
// one that names a failure code that is not built in, published by a worker, or defined by the policy itself. Applying the
// same text again changes nothing.
func (s *Service) ApplyPolicy(ctx context.Context, o PolicyRequest, by Actor) (Policy, error) {
	if err := by.check(); err != nil {
		return Policy{}, err
	}
	known, err := s.taxonomyWith(ctx, o.Codes)
	if err != nil {
		return Policy{}, err
	}
	set, err := policy.ParseFor([]byte(o.Text), known)
	if err != nil {
		return Policy{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
	}
	body, err := json.Marshal(appliedPolicy{Text: set.Text()})
	if err != nil {
		return Policy{}, err
	}
	err = s.updateRecord(ctx, namespacePolicy, policyCurrent, func(r store.Record) (store.Change, error) {
		if err := checkVersion(r, o.Replaces); err != nil {
			return store.Change{}, err
		}
		if old, is := decodeApplied(r); is && old.Text == set.Text() {
			return store.Change{}, nil
		}
		r.Body = body
		return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event("policy", "applied")}}, nil
	})
	if err != nil {
		return Policy{}, err
	}
	return s.Policy(ctx)
}

// RemovePolicy makes workers return, within seconds, to the policy file they were started with, or to the policies in their code.
// If version is not 0, only that version is removed. Without an applied policy it returns ErrNotFound.
func (s *Service) RemovePolicy(ctx context.Context, version int, by Actor) error {
	if err := by.check(); err != nil {
		return err
	}
	body, err := json.Marshal(appliedPolicy{Removed: true})
	if err != nil {
		return err
	}
	return s.updateRecord(ctx, namespacePolicy, policyCurrent, func(r store.Record) (store.Change, error) {
		if _, is := decodeApplied(r); !is {
			return store.Change{}, noPolicy()
		}
		if err := checkVersion(r, version); err != nil {
			return store.Change{}, err
		}
		r.Body = body
		return store.Change{Records: []store.Record{r}, Events: []store.Event{by.event("policy", "removed")}}, nil
	})
}

func noPolicy() error {
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: "no policy is applied: workers use the policy file they were started with, or the policies in their code; see 'holdfast policy apply --help'"}
}

// checkVersion refuses to replace another version than the caller saw.
func checkVersion(r store.Record, version int) error {
	if version > 0 && r.Version != version {
		return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("version %d of the policy is applied, not %d: read it, then decide again", r.Version, version)}
	}
	return nil
}

// taxonomyWith returns the known codes, and the named ones of which only the name is known.
func (s *Service) taxonomyWith(ctx context.Context, names []string) (*failure.Taxonomy, error) {
	known, err := s.taxonomyWithoutPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return AllowCodes(known, names)
}

// AllowCodes adds codes to a taxonomy of which only the names are known. A failure with such a code is treated as UNKNOWN is.
func AllowCodes(known *failure.Taxonomy, names []string) (*failure.Taxonomy, error) {
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
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
	}
	return all, nil
}

// policies returns the policy in force: the one applied to the store, or else the application's own. An applied policy that
// cannot be parsed is skipped, as workers skip it.
func (s *Service) policies(ctx context.Context) (*policy.Set, error) {
	known, err := s.taxonomyWithoutPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return s.currentPolicy(ctx, known)
}

// currentPolicy reads the policy in force.
func (s *Service) currentPolicy(ctx context.Context, known *failure.Taxonomy) (*policy.Set, error) {
	r, err := s.readRecord(ctx, namespacePolicy, policyCurrent)
	if err != nil {
		return nil, err
	}
	current, is := decodeApplied(r)
	if !is {
		return s.cfg.Policies, nil
	}
	set, _, err := policy.ParseLenient([]byte(current.Text), known)
	if err != nil {
		return s.cfg.Policies, nil
	}
	return set, nil
}

// breakerConfig returns the breaker settings of a dependency.
func (s *Service) breakerConfig(ctx context.Context, dependency string) (breaker.Config, error) {
	set, err := s.policies(ctx)
	return set.BreakerOver(s.cfg.Breakers[dependency], dependency), err
}

// costs returns the cost of an attempt by kind; 0 if the policy does not set it.
func (s *Service) costs(ctx context.Context) (func(kind string) float64, error) {
	set, err := s.policies(ctx)
	return set.Cost, err
}
