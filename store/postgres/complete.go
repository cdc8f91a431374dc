package postgres

import (
	"context"
	"math"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Complete completes jobs in the caller's transaction. There is no savepoint, because no refusal comes from a statement that fails: a lease that was
// lost is one that is not found. Only a settlement that enqueues jobs has one.
func (g txStore) Complete(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	q, err := g.session(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	answers := make([]error, len(settlements))
	for i := range settlements {
		if answers[i] = rule.CheckCompletion(&settlements[i]); answers[i] != nil {
			continue
		}
		complete := g.s.completeIn
		if len(settlements[i].Enqueue) > 0 {
			complete = g.completeWithDrafts
		}
		if answers[i], _, err = complete(ctx, q, &settlements[i]); err != nil {
			return nil, explain("complete the job", err)
		}
	}
	return answers, nil
}

// completeWithDrafts completes one job and enqueues the jobs of its settlement, in a savepoint: if one of them is refused, nothing is changed.
func (g txStore) completeWithDrafts(ctx context.Context, q session, n *store.Settlement) (answer error, complete bool, err error) {
	entries, err := g.s.prepare(ctx, g.s.beside, n.Enqueue, rule.Drafts)
	if rule.IsRefusal(err) {
		return rule.RefusedDrafts(n.Job, err), false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := q.exec(ctx, "SAVEPOINT holdfast_complete"); err != nil {
		return nil, false, err
	}
	var fresh []entry
	if answer, complete, err = g.s.completeIn(ctx, q, n); err == nil && complete {
		fresh, err = g.s.enqueueOf(ctx, q, n.Job, entries)
	}
	if err == nil {
		g.s.planner.noteCallerTx(fresh)
		err = g.notify(ctx, q, fresh)
	}
	if err == nil {
		return answer, complete, q.exec(ctx, "RELEASE SAVEPOINT holdfast_complete")
	}
	if back := q.exec(ctx, "ROLLBACK TO SAVEPOINT holdfast_complete"); back == nil {
		_ = q.exec(ctx, "RELEASE SAVEPOINT holdfast_complete")
	}
	if err = g.s.explainDuplicate(ctx, q, fresh, err); rule.IsRefusal(err) {
		return rule.RefusedDrafts(n.Job, err), false, nil
	}
	return nil, false, err
}

// completeIn completes one job: it locks the batch, which is the fence until the transaction ends, and then writes in one statement what Settle writes
// in several. complete is false if the lease is not held, or if a cancel request overrules the settlement.
func (s *Store) completeIn(ctx context.Context, q session, n *store.Settlement) (answer error, complete bool, err error) {
	if n.Token < 0 || n.Token > math.MaxInt32 { // no job can have this token
		return rule.LeaseLost(n.Job), false, nil
	}
	ignore := func(func(...any) error) error { return nil }
	if err := q.query(ctx, s.sql["complete_lock"], []any{n.Batch.String()}, ignore); err != nil {
		return nil, false, err
	}
	var result any
	if len(n.Result) > 0 {
		result = string(n.Result)
	}
	var trend sqltext.TrendCounts
	trend.Add(n, holdfast.Complete)
	args := []any{n.Batch.String(), n.Job.String(), n.Token, micros(n.Took), result, trend.Queue(), n.Limit}
	held := false
	err = q.query(ctx, s.sql["complete"], args, func(scan func(...any) error) error {
		var limit string
		held = true
		return scan(&limit, &complete)
	})
	if err != nil || held {
		return nil, complete, err
	}
	answer, err = s.answerNotHeld(ctx, q, n)
	return answer, false, err
}

// answerNotHeld decides about a completion without a lease: applied by an earlier transaction, or late.
func (s *Store) answerNotHeld(ctx context.Context, q session, n *store.Settlement) (answer, err error) {
	answer = rule.LeaseLost(n.Job)
	var index, job, token column
	index.int(0)
	job.id(n.Job)
	token.int(n.Token)
	err = q.query(ctx, s.sql["find_settled"], []any{index.String(), job.String(), token.String()}, func(scan func(...any) error) error {
		var i int
		var attempted, ended string
		var there bool
		err := scan(&i, &attempted, &ended, &there)
		if to := string(n.To); to == attempted || to == ended {
			answer = nil
		}
		return err
	})
	return answer, err
}
