package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Edit changes a job that is queued: its arguments, and when and where it waits. ErrConflict when it is not queued any more, or not as the editor
// saw it.
func (s *Service) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	return s.store.Edit(ctx, e)
}
