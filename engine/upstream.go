package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Upstream reads the result of a member of the job's group for which this job waited, named by its step, into result. It asks the store each time.
//
// ErrNotFound means that the job did not wait for a member with this name, or that the member has no result: it did not pass one to Result, or it did not
// complete. ErrPurged means that retention has deleted the member. ErrLeaseLost means that another worker has the job: the handler should stop.
func (j *Job[A]) Upstream(ctx context.Context, step string, result any) error {
	if step == "" {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a result of no step: name the step, or use Upstreams for all"}
	}
	for one, err := range j.upstreams(ctx, step) {
		if err != nil {
			return err
		}
		if len(one.Result) == 0 {
			return &holdfast.Error{Err: holdfast.ErrNotFound, Job: one.Job, Message: fmt.Sprintf("step %q, job %v, has no result: it is %s", step, one.Job, stateOf(one))}
		}
		if err := json.Unmarshal(one.Result, result); err != nil {
			return fmt.Errorf("the result of step %q cannot be decoded into %T: %w", step, result, err)
		}
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("the job did not wait for a step %q", step)}
}

func stateOf(u store.Upstream) string {
	switch {
	case u.State == "":
		return "running again"
	case u.Skipped:
		return "skipped"
	case u.Code != "":
		return string(u.State) + " with " + u.Code
	}
	return string(u.State)
}

// Upstreams returns the members of the job's group for which this job waited, sorted by id, and how they ended. It reads them from the store in pages while it is
// ranged over. After an error it ends.
func (j *Job[A]) Upstreams(ctx context.Context) iter.Seq2[store.Upstream, error] {
	return j.upstreams(ctx, "")
}

func (j *Job[A]) upstreams(ctx context.Context, step string) iter.Seq2[store.Upstream, error] {
	return func(yield func(store.Upstream, error) bool) {
		if j.attempt == nil {
			return
		}
		j.attempt.maker.upstreams(ctx, j.attempt, step, yield)
	}
}

// upstreams reads the members for which an attempt's job waited, page by page. If the answer is ErrLeaseLost, the handler's context ends at once.
func (m *attemptMaker) upstreams(ctx context.Context, a *attempt, step string, yield func(store.Upstream, error) bool) {
	f := store.UpstreamFilter{Batch: a.lease.Batch, Job: a.lease.ID, Token: a.lease.Token, Step: step}
	for {
		page, cursor, err := m.store.Upstreams(ctx, f)
		if errors.Is(err, holdfast.ErrLeaseLost) {
			m.leases.stop(a.own(), holdfast.ErrLeaseLost)
		}
		if err != nil {
			yield(store.Upstream{}, err)
			return
		}
		for _, one := range page {
			if !yield(one, nil) {
				return
			}
		}
		if f.Cursor = cursor; cursor == "" {
			return
		}
	}
}
