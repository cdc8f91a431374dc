package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Cancel ends a queued job at once and answers Cancelled. A processing job is asked to stop and the answer is Processing: it
// ends cancelled as soon as its worker has let go, whatever its handler returns. An ended job is ErrConflict.
func (s *Service) Cancel(ctx context.Context, i holdfast.Intervention) (holdfast.State, error) {
	return s.store.Cancel(ctx, i)
}
