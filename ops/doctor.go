package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// A Report is the state of a store's health.
type Report struct {
	Healthy  bool                   `json:"healthy"`
	Findings []holdfast.Finding     `json:"findings"`
	Jobs     map[holdfast.State]int `json:"jobs"`
}

// Doctor puts every promise to the test and names the rows that break one.
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
