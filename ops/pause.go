package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Pause holds a queue or a kind, for a while or until it is resumed. Its jobs stay queued and spend nothing; what is being
// processed goes on. Pausing again replaces the hold.
func (s *Service) Pause(ctx context.Context, h holdfast.Hold) error { return s.store.Pause(ctx, h) }

// Resume lifts a hold. Lifting one that is not there is no error.
func (s *Service) Resume(ctx context.Context, h holdfast.Hold) error { return s.store.Resume(ctx, h) }

// Holds lists the holds in force.
func (s *Service) Holds(ctx context.Context) ([]holdfast.Hold, error) { return s.store.Holds(ctx) }
