package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Edit changes a job that is queued: its arguments, and when and where it waits; of a failed one the arguments, the priority and the attempts.
// ErrConflict when it is neither, or not as the editor saw it.
func (s *Service) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	return s.store.Edit(ctx, e)
}
