package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Claim moves due jobs from queued to processing. They are in one batch, or in two if the planner tries twice (see claimPlanner.claim).
//
// There are several ways to claim; docs/design/claiming.md lists them. With one owner and no hold that counts or limits, a claim is one statement and
// one round trip. Otherwise it is planned (see claimPlan).
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	scope, err := lane.NewScope(c)
	if err != nil {
		return nil, err
	}
	leases, excess, err := s.planner.claim(ctx, claimRequest{Claim: c, scope: scope, even: s.planner.turns.Guard()})
	s.releaseExcess(ctx, excess)
	return leases, err
}

// releaseExcess returns jobs to their queues that exceed the byte limit of a claim: their size is known only when the answer is read. If this fails,
// the jobs return when their leases expire.
func (s *Store) releaseExcess(ctx context.Context, excess []store.Settlement) {
	if len(excess) > 0 {
		_, _ = s.Settle(context.WithoutCancel(ctx), excess)
	}
}

// A claimRequest is a claim with what is decided before it is planned.
type claimRequest struct {
	store.Claim
	scope *lane.Scope
	even  bool        // this claim shares evenly between priorities, so that none starves
	batch holdfast.ID // the id of the batch that the claim creates; set for each try
}

// clampLimit bounds a limit to what one statement should move.
func clampLimit(n int) int { return min(n, 100_000) }
