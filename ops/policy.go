package ops

import (
	"context"
	"encoding/json"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
)

// policies is what holds for the workers too: the policy that was applied to the store, or else the application's own. One that
// cannot be read is passed over, as the workers pass over it.
func (s *Service) policies(ctx context.Context) (*policy.Set, error) {
	r, err := s.record(ctx, "policy", "current")
	if err != nil {
		return nil, err
	}
	var applied struct {
		Text string `json:"text"`
	}
	if r.Version == 0 || json.Unmarshal(r.Body, &applied) != nil {
		return s.cfg.Policies, nil
	}
	set, err := policy.ParseFor([]byte(applied.Text), s.cfg.Taxonomy)
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
