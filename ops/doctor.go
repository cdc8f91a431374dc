package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// A Report is the result of the integrity check.
type Report struct {
	Healthy  bool                   `json:"healthy"`
	Findings []holdfast.Finding     `json:"findings"`
	Jobs     map[holdfast.State]int `json:"jobs"`
}

// Doctor runs the integrity check: it verifies every invariant of the store and returns the rows that violate one.
func (s *Service) Doctor(ctx context.Context) (Report, error) {
	findings, err := s.store.Audit(ctx)
	if err != nil {
		return Report{}, err
	}
	counts, err := s.store.Counts(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Healthy: len(findings) == 0, Findings: findings, Jobs: map[holdfast.State]int{}}
	for _, count := range counts {
		report.Jobs[count.State] += count.Jobs
	}
	return report, nil
}
