package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// explainLine says which job a job waits for because both have one order key.
func (s *Service) explainLine(ctx context.Context, job holdfast.Job) ([]Reason, error) {
	moment := Reason{Name: "line", Text: fmt.Sprintf("it is the first in the line of the order key %q and starts within a moment", job.Order), Remedy: "wait a moment and check again"}
	if len(job.After) == 0 {
		return []Reason{moment}, nil
	}
	first, err := s.store.Job(ctx, job.After[0])
	if errors.Is(err, holdfast.ErrPurged) || errors.Is(err, holdfast.ErrNotFound) {
		return []Reason{moment}, nil
	}
	if err != nil {
		return nil, err
	}
	if first.State.Terminal() && (first.State != holdfast.Failed || first.Discarded) {
		return []Reason{moment}, nil
	}
	return []Reason{lineReason(job, first)}, nil
}

// lineReason says why the first job of a line keeps another one waiting.
func lineReason(job, first holdfast.Job) Reason {
	if first.State == holdfast.Failed {
		return Reason{
			Name:   "line",
			Text:   fmt.Sprintf("the dead letter %s (%s) holds the line of the order key %q: the jobs behind it wait until it completes after a retry, or is discarded", first.ID, first.Kind, job.Order),
			Remedy: fmt.Sprintf("retry it: holdfast retry %s; or discard it: holdfast discard %s --reason TEXT", first.ID, first.ID),
		}
	}
	return Reason{
		Name:   "line",
		Text:   fmt.Sprintf("jobs with the order key %q run one at a time, and it waits behind %s (%s, %s), which is the first in line", job.Order, first.ID, first.Kind, first.State),
		Remedy: fmt.Sprintf("see why that one has not ended: holdfast explain %s", first.ID),
	}
}
