package rule

import (
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// An Edge is one member for which a draft waits, and how that must end.
type Edge struct {
	Upstream holdfast.ID
	Step     string // when not empty, the store looks up Upstream by it
	On       holdfast.Outcome
}

// Edges returns the members for which a draft waits.
func Edges(d *holdfast.Draft) []Edge {
	if len(d.After)+len(d.When) == 0 {
		return nil
	}
	edges := make([]Edge, 0, len(d.After)+len(d.When))
	on := holdfast.OnComplete
	if d.AfterAll {
		on = holdfast.OnEnded
	}
	for _, id := range d.After {
		edges = append(edges, Edge{Upstream: id, On: on})
	}
	for _, c := range d.When {
		if c.On == "" {
			c.On = holdfast.OnComplete
		}
		edges = append(edges, Edge{c.Job, c.Step, c.On})
	}
	return edges
}

// Regardless and Outcome are the columns of an edge in holdfast_after. Regardless is also true for a condition on a failure or a
// cancellation, so that a program that does not know conditions does not cancel the member.
func (e Edge) Regardless() bool { return e.On != holdfast.OnComplete }

// Outcome is empty unless the condition is on a failure or a cancellation.
func (e Edge) Outcome() string {
	if e.On == holdfast.OnFailed || e.On == holdfast.OnCancelled {
		return string(e.On)
	}
	return ""
}

// OutcomeOf returns the outcome for which a row of holdfast_after waits.
func OutcomeOf(regardless bool, outcome string) holdfast.Outcome {
	switch {
	case outcome != "":
		return holdfast.Outcome(outcome)
	case regardless:
		return holdfast.OnEnded
	}
	return holdfast.OnComplete
}

// MergeEdges returns the edges of one draft with each upstream once. It refuses two conditions on one member that differ, and returns how many are on a failure
// or a cancellation.
func MergeEdges(all []Edge) (edges []Edge, conditions int, err error) {
	seen := make(map[holdfast.ID]holdfast.Outcome, len(all))
	for _, e := range all {
		if on, twice := seen[e.Upstream]; twice {
			if on != e.On {
				return nil, 0, invalid("the job waits for member %v in two ways, on %s and on %s: give one of them", e.Upstream, on, e.On)
			}
			continue
		}
		seen[e.Upstream] = e.On
		if edges = append(edges, e); e.Outcome() != "" {
			conditions++
		}
	}
	return edges, conditions, nil
}

// NoStep refuses a draft that waits for a step that its group does not have.
func NoStep(step string) error {
	return invalid("the group has no step %q: enqueue that member first, or earlier in the same call", step)
}

// An Upstream is what a store has read of a member for which another waits.
type Upstream struct {
	ID      holdfast.ID // zero: retention deleted it
	On      holdfast.Outcome
	State   holdfast.State // empty: it has not ended
	Skipped bool           // it ended as cancelled and was not needed
}

// holds reports whether the condition on an ended member holds.
func (u *Upstream) holds() bool {
	switch u.On {
	case holdfast.OnEnded:
		return true
	case holdfast.OnCancelled:
		return u.State == holdfast.Cancelled && !u.Skipped
	}
	return string(u.On) == string(u.State)
}

// skips reports whether a condition that does not hold shows that the waiting member is not needed. Otherwise the waiting member needed a success that did not
// come.
func (u *Upstream) skips() bool {
	return u.On == holdfast.OnFailed || u.On == holdfast.OnCancelled || u.Skipped
}

// A Follower is the decision about a member that waits for others. It has to continue waiting unless Start or End is set.
type Follower struct {
	Start   bool
	End     bool     // it never runs
	Skipped bool     // it ends because it is not needed
	Cause   Upstream // the first member whose end decided that
}

// Follow decides about a member that waits for others. conditions is how many of its conditions are on a failure or a cancellation: if the members of some of
// them were deleted by retention, the member is not needed.
func Follow(upstreams []Upstream, conditions int) (f Follower) {
	f.Start = true
	for _, u := range upstreams {
		if u.On == holdfast.OnFailed || u.On == holdfast.OnCancelled {
			conditions--
		}
		switch {
		case u.State == "":
			f.Start = false
		case u.holds():
		case !f.End, f.Skipped && !u.skips():
			f.End, f.Skipped, f.Cause = true, u.skips(), u
		}
	}
	if conditions > 0 && !f.End {
		f.End, f.Skipped = true, true
	}
	f.Start = f.Start && !f.End
	return f
}

// Reason says why a member never runs.
func (f *Follower) Reason() string {
	how := map[holdfast.State]string{holdfast.Complete: "completed", holdfast.Failed: "failed", holdfast.Cancelled: "was cancelled"}[f.Cause.State]
	if f.Cause.Skipped {
		how = "was skipped"
	}
	switch {
	case f.Cause.ID.IsZero():
		return "it is not needed: a member for which it waited was deleted by retention"
	case f.Skipped:
		return fmt.Sprintf("it is not needed: member %s, for which it waited, %s", f.Cause.ID, how)
	}
	return fmt.Sprintf("member %s, for which it waited, %s", f.Cause.ID, how)
}

// A Retryable is a member that a manual retry of its group may retry: it failed, or never ran because of another member.
type Retryable struct {
	Job         holdfast.ID
	Cause       holdfast.ID // the member because of which it never ran; zero: none
	Skipped     bool        // it was not needed
	Conditional bool        // it failed, and has a condition on a failure or a cancellation
}

// Waits reports whether the member waits for others again when it is retried: it never ran, or it was to run only because of how another member had ended, which may
// be retried too.
func (r *Retryable) Waits() bool { return !r.Cause.IsZero() || r.Conditional }

// Retried returns which of these members a manual retry of their group retries: all but those that were skipped because of a member that is not retried.
func Retried(all []Retryable) []bool {
	retried, followers := make([]bool, len(all)), map[holdfast.ID][]int{}
	var queue []int
	for i := range all {
		if all[i].Skipped {
			followers[all[i].Cause] = append(followers[all[i].Cause], i)
		} else {
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		retried[i] = true
		queue = append(queue[1:], followers[all[i].Job]...)
	}
	return retried
}
