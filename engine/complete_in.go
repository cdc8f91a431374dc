package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// CompleteIn completes the job in a transaction of the handler: a pgx.Tx, or an *sql.Tx on PostgreSQL or SQLite, of the database that has the jobs. What the
// handler writes in that transaction and the end of its job, with the value passed to Result, are stored together when it commits, or not at all. If the
// process dies right after the commit, the job is complete; if it dies before, nothing has happened and the job runs again.
//
// Call it last, right before the commit, and return the error of the commit:
//
//	if err := job.CompleteIn(ctx, tx); err != nil {
//		return err // the deferred tx.Rollback undoes everything
//	}
//	return tx.Commit()
//
// ErrLeaseLost means that another worker has the job: nothing was written for the job, and the handler should roll back. ErrInvalid means that the
// transaction is not one of the store's database, for example because the store is a server. Until the transaction ends, other jobs that were claimed
// together with this one cannot be settled, nor their leases renewed; on SQLite nothing else can be written.
//
// The engine does not complete a job for which CompleteIn was called: it asks the store whether the transaction was committed. If it was not, and the
// handler returned nil, the attempt has failed with the code HANDLER_UNCOMMITTED. If it was, the job stays complete, also if the handler returns an error,
// which is logged. CompleteIn may be called again in another transaction, after the first was rolled back. Progress and Checkpoint are refused
// after CompleteIn.
func (j *Job[A]) CompleteIn(ctx context.Context, tx any) error {
	if j.attempt == nil {
		return nil
	}
	return j.attempt.maker.completeIn(ctx, j.attempt, tx)
}

// completeIn completes the job of an attempt in a transaction.
func (m *attemptMaker) completeIn(ctx context.Context, shown *attempt, tx any) error {
	if shown.resultErr != nil {
		return shown.resultErr
	}
	a := shown.own()
	if !m.leases.beginCompletion(a) {
		return &holdfast.Error{Err: holdfast.ErrLeaseLost, Job: a.lease.ID, Message: "the attempt has ended: its handler ignored the end of its context"}
	}
	o := failure.Outcome{Event: failure.Returned, Result: shown.result, Enqueue: shown.drafts, Took: time.Since(a.began)}
	done := failure.Decide(failure.Rules{}, *a.lease, o).Settlement(*a.lease, o)
	done.Version = m.cfg.Version
	answers, err := m.store.In(tx).Complete(ctx, []store.Settlement{done})
	if err == nil && len(answers) == 1 {
		err = answers[0]
	}
	if errors.Is(err, holdfast.ErrLeaseLost) {
		a.completion.Store(nil) // nothing was written
		m.leases.stop(a, holdfast.ErrLeaseLost)
	}
	return err
}

// A completion says that the handler of an attempt has completed the job in a transaction, which may or may not have been committed.
type completion struct {
	despite error // set by the settler: how the attempt ended although the job is complete
}

// beginCompletion marks an attempt before its handler completes the job in a transaction. From then on the store may answer a renewal that the lease is
// lost because the job is complete. It returns false if the attempt has ended.
func (t *leaseTable) beginCompletion(a *attempt) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.phase == phaseEnded {
		return false
	}
	a.completion.Store(&completion{})
	return true
}

// errCompleting refuses notes of a handler that has completed its job in a transaction: the store would let them wait for that transaction.
var errCompleting = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "the job is completed in a transaction of its handler: report progress and save checkpoints before CompleteIn"}

// decideAgain returns the settlement to write instead of one that the store refused, if the refusal says more about how the attempt ended:
//
//   - The lease is still held although the job was completed in a transaction: that transaction was not committed.
//   - The lease is lost although the handler returned an error: the transaction may have been committed before. This asks for confirmation.
//   - The store rejects the settlement as invalid. The rejection is the outcome now, so that its job does not stay leased for ever.
//
// Each is decided once, like any other outcome.
func (s *settler) decideAgain(o *outcome, answer error) (instead store.Settlement, again bool) {
	done, lost := o.attempt.completion.Load(), errors.Is(answer, holdfast.ErrLeaseLost)
	switch {
	case answer == nil || o.Event == failure.Unsettleable:
		return instead, false
	case o.confirms() && errors.Is(answer, holdfast.ErrConflict):
		o.Outcome = failure.Outcome{Event: failure.Uncommitted, Err: answer, Took: o.Took, Age: o.Age}
		instead = s.prepareSettlement(o)
		if o.verdict.StartWithin > 0 {
			s.deadlines.extend(o.verdict.StartWithin)
		}
		return instead, true
	case lost && done != nil && !o.confirms() && o.Event != failure.Uncommitted:
		done.despite = cmp.Or(o.Err, errors.New(o.verdict.Why))
		o.Outcome = failure.Outcome{Event: failure.Returned, Took: o.Took, Age: o.Age}
		return s.prepareSettlement(o), true
	case lost:
		return instead, false
	}
	return s.settleRejection(o, answer), true
}

// confirms reports whether the settlement of the outcome only asks whether the job was completed in a transaction.
func (o *outcome) confirms() bool {
	return o.verdict.To == holdfast.Complete && o.attempt.completion.Load() != nil
}
