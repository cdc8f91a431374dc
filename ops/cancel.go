package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Cancel ends a queued job at once and returns Cancelled. It asks the worker of a processing job to stop and returns
// Processing: that job ends as cancelled when its worker settles it, whatever its handler returns. An ended job is
// ErrConflict.
func (s *Service) Cancel(ctx context.Context, i store.Intervention) (holdfast.State, error) {
	return s.store.Cancel(ctx, i)
}
