package inspect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Upstreams returns the members for which a leased job waited. It does not lock the lease: what an ended member left does not depend on it.
func (i *Inspector) Upstreams(ctx context.Context, f store.UpstreamFilter) (found []store.Upstream, cursor string, err error) {
	if !utf8.ValidString(f.Step) || strings.ContainsRune(f.Step, 0) {
		return nil, "", invalid("the step %.40q is not valid text: use a step name", f.Step)
	}
	var after holdfast.ID
	if f.Cursor != "" {
		if after, err = cursorID(f.Cursor); err != nil {
			return nil, "", err
		}
	}
	held := false
	if f.Token >= 0 && f.Token <= math.MaxInt32 {
		err = i.q.Query(ctx, i.statements["inspect_lease"], []any{f.Batch, f.Job, f.Token}, func(Row) error { held = true; return nil })
	}
	if err != nil {
		return nil, "", err
	}
	if !held {
		return nil, "", rule.LeaseLost(f.Job)
	}
	bytes := 0
	err = i.q.Query(ctx, i.statements["inspect_upstream_results"], []any{f.Job, after, f.Step}, func(r Row) error {
		one := store.Upstream{Job: r.ID(0), Kind: r.Text(1), Step: r.Text(2), State: holdfast.State(r.Text(3)), Code: r.Text(4), Skipped: r.Bool(6)}
		if one.State == holdfast.Complete && !r.Null(5) {
			one.Result = readable(r.Text(5))
		}
		if bytes += len(one.Result) + 200; bytes > largestBytes && len(found) > 0 {
			cursor = idCursor(found[len(found)-1].Job)
			return errFull
		}
		found = append(found, one)
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	if err == nil && f.Step != "" && len(found) == 0 && f.Cursor == "" {
		err = i.noUpstream(ctx, f)
	}
	return found, cursor, err
}

// noUpstream returns why there is no member with a step name for which a job waited: retention has deleted it, or there never was one.
func (i *Inspector) noUpstream(ctx context.Context, f store.UpstreamFilter) error {
	missing := rule.NoUpstream(f.Job, f.Step)
	err := i.q.Query(ctx, i.statements["inspect_purged_step"], []any{f.Job, f.Step}, func(r Row) error {
		missing = &holdfast.Error{Err: holdfast.ErrPurged, Job: r.ID(0), Message: fmt.Sprintf(
			"step %q, job %v, was purged at %s by rule %s: its result is gone; enqueue the group again, or keep such jobs longer", f.Step, r.ID(0), r.Time(1).UTC().Format("2006-01-02 15:04:05"), r.Text(2))}
		return nil
	})
	if err != nil {
		return err
	}
	return missing
}
