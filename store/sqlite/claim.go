package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Claim gives due jobs to the caller, in order of priority and age, within the holds and in fair turns between owners.
//
// A claim has two steps. First the planner plans on a reading connection beside the writer: it chooses the jobs and
// reads their facts, in the caller's own time. Then the writer takes exactly the planned jobs, after it has verified in
// its own transaction that nothing that the plan depends on has changed (see claimPlan.unchanged). If something has
// changed, the planner plans again inside the transaction, where no other claim can interfere. A claim that finds no job
// does not use the writer at all.
//
// Claims of one process plan one at a time: two that planned at the same moment would choose the same jobs. Claims of
// several processes are kept apart by the verification, and no job is given out twice, because only the write
// transaction removes rows from holdfast_ready.
func (s *Store) Claim(ctx context.Context, c store.Claim) (leases []store.Lease, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	scope, err := lane.NewScope(c)
	if err != nil {
		return nil, err
	}
	rings := s.waker.round()
	err = s.claims.with(ctx, func(beside *session) error { // one claim plans at a time; see above
		e := claimRequest{c, scope, s.planner.turns.Guard()}
		plan, err := s.planner.planOnReader(beside, e, s.now().UnixMicro())
		if err != nil || plan.empty() {
			return err
		}
		err = s.writer.write(ctx, func(t *tx) (err error) {
			leases, err = s.planner.take(t, e, plan)
			return err
		})
		if err != nil {
			s.planner.memory.drop(scope)
		}
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	if len(leases) < c.Limit && len(c.Kinds) == 0 { // with kinds, jobs of other kinds may still wait in these queues
		s.waker.drained(c.Queues, rings)
	}
	return leases, nil
}

// A claimRequest is a claim with what is decided before it is planned.
type claimRequest struct {
	store.Claim
	scope *lane.Scope
	even  bool // this claim shares evenly between priorities, so that none starves
}
