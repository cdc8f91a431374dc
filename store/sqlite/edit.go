package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Edit changes a queued job.
func (s *Store) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	return holdfast.Job{}, &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "not built yet"}
}
