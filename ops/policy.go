package ops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const (
	policyRoom    = "policy"
	policyCurrent = "current"
)

// A Policy is the one that workers follow.
type Policy struct {
	Version int       `json:"version"`
	KeptAt  time.Time `json:"kept_at,omitzero"`
	Text    string    `json:"text"` // as it was written
}

// applied is a policy as it is recorded.
type applied struct {
	Text string `json:"text"`
}

// Policy tells which policy was applied to the store. Without one workers follow what is in their code, and the answer is ErrNotFound.
func (s *Service) Policy(ctx context.Context) (Policy, error) {
	r, err := s.record(ctx, policyRoom, policyCurrent)
	if err != nil {
		return Policy{}, err
	}
	if r.Version == 0 {
		return Policy{}, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "no policy is applied: workers follow what is written in their code; see 'holdfast policy apply --help'"}
	}
	var body applied
	if err := json.Unmarshal(r.Body, &body); err != nil {
		body.Text = "" // whatever it is, it can be replaced
	}
	return Policy{r.Version, r.KeptAt, body.Text}, nil
}

// ApplyPolicy has the workers of a store follow a policy within seconds. One that makes no sense is refused whole. The one that is applied already
// is left as it is.
func (s *Service) ApplyPolicy(ctx context.Context, text string, by By) (Policy, error) {
	if err := by.check(); err != nil {
		return Policy{}, err
	}
	set, err := policy.ParseFor([]byte(text), s.cfg.Taxonomy)
	if err != nil {
		return Policy{}, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
	}
	body, err := json.Marshal(applied{set.Text()})
	if err != nil {
		return Policy{}, err
	}
	err = s.keep(ctx, policyRoom, policyCurrent, func(r holdfast.Record) (holdfast.Change, error) {
		var old applied
		if r.Version > 0 && json.Unmarshal(r.Body, &old) == nil && old.Text == set.Text() {
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

// policies is what holds for the workers too: the policy that was applied to the store, or else the application's own. One that
// cannot be read is passed over, as the workers pass over it.
func (s *Service) policies(ctx context.Context) (*policy.Set, error) {
	r, err := s.record(ctx, policyRoom, policyCurrent)
	if err != nil {
		return nil, err
	}
	var current applied
	if r.Version == 0 || json.Unmarshal(r.Body, &current) != nil {
		return s.cfg.Policies, nil
	}
	set, err := policy.ParseFor([]byte(current.Text), s.cfg.Taxonomy)
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
