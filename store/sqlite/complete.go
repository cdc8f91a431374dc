package sqlite

import (
	"context"
	"database/sql"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Complete completes jobs in the application's transaction. After a refusal the transaction can still be used.
func (b *txStore) Complete(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	answers := make([]error, len(settlements))
	err := b.inSavepoint(ctx, func(to *callerTx) (err error) {
		for i := range settlements {
			if answers[i] = rule.CheckCompletion(&settlements[i]); answers[i] != nil {
				continue
			}
			c := &completion{callerTx: to, Settlement: &settlements[i], now: b.store.now().UnixMicro(), end: holdfast.Complete}
			if len(c.Enqueue) > 0 {
				if answers[i], err = b.completeWithDrafts(ctx, c); err != nil {
					return err
				}
				continue
			}
			if answers[i], err = c.apply(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// completeWithDrafts completes one job and enqueues the jobs of its settlement, in a savepoint: if one of them is refused, nothing is changed.
func (b *txStore) completeWithDrafts(ctx context.Context, c *completion) (answer, err error) {
	drafts, refusal := prepareAll(c.Enqueue, rule.Drafts)
	if refusal != nil {
		return rule.RefusedDrafts(c.Job, refusal), nil
	}
	err = b.inSavepoint(ctx, func(to *callerTx) (err error) {
		if answer, err = c.apply(); err != nil || answer != nil || c.member == nil || c.end != holdfast.Complete {
			return err
		}
		_, err = (&enqueuer{executor: to, now: c.now, member: c.Job}).enqueue(drafts)
		return err
	})
	if rule.IsRefusal(err) {
		return rule.RefusedDrafts(c.Job, err), nil
	}
	return answer, err
}

// A completion is one settlement in the application's transaction. It writes what a settler writes when a job is complete,
// one row at a time.
type completion struct {
	*callerTx
	*store.Settlement
	now    int64
	end    holdfast.State // cancelled if a cancel request overrules the settlement
	batch  *batch
	member *member
	began  int64
}

// apply completes the job if the lease is held. The application's transaction has the write lock, so the batch row that it
// reads is the fence until it ends.
func (c *completion) apply() (answer, err error) {
	if err := c.readBatch(); err != nil {
		return nil, err
	}
	if c.member == nil {
		applied, err := c.one("find_settled", []any{c.Job, c.Token, string(c.To)}, new(int))
		if applied || err != nil {
			return nil, err
		}
		return rule.LeaseLost(c.Job), nil
	}
	c.member.removed = true
	if c.began = c.now; c.Took > 0 {
		c.began = max(c.now-c.Took.Microseconds(), c.batch.claimed)
	}
	asked, err := c.exec("cancel_drop", c.Job)
	if err != nil {
		return nil, err
	}
	if asked > 0 {
		c.end = holdfast.Cancelled
	}
	for _, write := range []func() error{c.finish, c.recordAttempt, c.shrinkBatch, c.countTrend, c.emitEnd} {
		if err := write(); err != nil {
			return nil, err
		}
	}
	_, err = c.exec("unique_free", c.Job, c.end == holdfast.Complete)
	return nil, err
}

// readBatch reads the batch, and finds the member for the job if the lease is held.
func (c *completion) readBatch() error {
	var jobs []byte
	var lost sql.NullString
	var members string
	l := &batch{}
	_, err := c.one("batch_find", []any{c.Batch}, &l.id, &l.worker, &lost, &l.claimed, &l.expires, &jobs, &members)
	l.lost, l.members = lost.String, readMembers(jobs, members)
	c.batch, c.member = l, l.held(c.Job, c.Token)
	return err
}

// finish ends the generation of the job.
func (c *completion) finish() error {
	m := c.member
	var started, result any
	if c.Took > 0 || m.started {
		started = c.began
	}
	row := []any{c.Job, c.Token, m.failures, m.crashes, m.releases, m.generation, started, c.now}
	if c.end != holdfast.Complete {
		_, err := c.exec("finish", append(row, string(c.end), c.batch.worker, nil, nil, nil, false)...)
		return err
	}
	if len(c.Result) > 0 {
		result = c.Result
	}
	_, err := c.exec("finish_complete", append(row, c.batch.worker, result)...)
	return err
}

// recordAttempt writes the attempt of a job that was cancelled. A completed attempt has no row.
func (c *completion) recordAttempt() error {
	if c.end == holdfast.Complete {
		return nil
	}
	row := []any{c.Job, c.Token, c.member.generation, c.batch.attemptWorker(), c.began, c.now, string(c.end), nil, 0, c.Limit, nil}
	_, err := c.exec("attempt_add", append(append(row, failureColumns(nil)...), nil, string(c.To))...)
	return err
}

// shrinkBatch writes the remaining members of the batch. The row is deleted with the last member.
func (c *completion) shrinkBatch() (err error) {
	if jobs, members := c.batch.columns(); len(jobs) > 0 {
		_, err = c.exec("batch_update", c.batch.id, jobs, members)
	} else {
		_, err = c.exec("batch_drop", c.batch.id)
	}
	return err
}

func (c *completion) countTrend() error {
	var counts sqltext.TrendCounts
	counts.Add(c.Settlement, c.end)
	for _, t := range counts.All(instant(c.now)) {
		if _, err := c.exec("add_trend_counts", t.Step.UnixMicro(), t.Queue, t.Complete, t.Failed, t.Retried, t.Cancelled); err != nil {
			return err
		}
	}
	return nil
}

// emitEnd writes the page of the event, if it has a listener.
func (c *completion) emitEnd() error {
	if heard, err := c.one("check_end_listener", []any{string(c.end)}, new(int)); err != nil || !heard {
		return err
	}
	return writePages(c.callerTx, []page{{name: string(c.end), at: c.now, jobs: c.Job[:], tokens: []int{c.Token}}})
}
