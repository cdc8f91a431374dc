package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// An IntegrityReport is the result of the integrity check.
type IntegrityReport struct {
	Healthy  bool                   `json:"healthy"`
	Findings []store.Finding        `json:"findings"`
	Jobs     map[holdfast.State]int `json:"jobs"`
}

// CheckIntegrity runs the integrity check: it verifies every invariant of the store and returns the rows that violate one.
func (s *Service) CheckIntegrity(ctx context.Context) (IntegrityReport, error) {
	findings, err := s.store.CheckIntegrity(ctx)
	if err != nil {
		return IntegrityReport{}, err
	}
	counts, err := s.store.Counts(ctx)
	if err != nil {
		return IntegrityReport{}, err
	}
	report := IntegrityReport{Healthy: len(findings) == 0, Findings: findings, Jobs: map[holdfast.State]int{}}
	for _, count := range counts {
		report.Jobs[count.State] += count.Jobs
	}
	return report, nil
}
