package storetest

import (
	"bytes"
	"slices"

	"github.com/holdfastdev/holdfast"
)

// For which members a job waits in the model, and how they must end.

// waitsOf returns for which members a draft waits, and how they must end.
func waitsOf(d holdfast.Draft) (waits []holdfast.Condition) {
	on := holdfast.OnComplete
	if d.AfterAll {
		on = holdfast.OnEnded
	}
	for _, id := range d.After {
		waits = append(waits, holdfast.Condition{Job: id, On: on})
	}
	return append(waits, d.When...)
}

// upstream returns how many of the members that a job waits for are live, and which did not end as they must. Those that show that a success is missing come first.
func (m *model) upstream(r *record) (live int, bad []holdfast.Condition) {
	for _, c := range r.waits {
		switch other := m.jobs[c.Job]; {
		case other.place != finished:
			live++
		case !met(c, other):
			bad = append(bad, c)
		}
	}
	slices.SortStableFunc(bad, func(a, b holdfast.Condition) int { return countIf(m.skips(a)) - countIf(m.skips(b)) })
	return live, bad
}

// met reports whether an ended member has the outcome of a condition.
func met(c holdfast.Condition, other *record) bool {
	switch c.On {
	case holdfast.OnEnded:
		return true
	case holdfast.OnFailed:
		return other.state == holdfast.Failed
	case holdfast.OnCancelled:
		return other.state == holdfast.Cancelled && !other.Skipped
	}
	return other.state == holdfast.Complete
}

// skips reports whether a condition that is not met shows that the waiting member is not needed.
func (m *model) skips(c holdfast.Condition) bool {
	return c.On == holdfast.OnFailed || c.On == holdfast.OnCancelled || m.jobs[c.Job].Skipped
}

// shownWaits returns for what a job waits as a store shows it: sorted by the other members, and without outcomes if all of them must complete.
func (r *record) shownWaits() (after []holdfast.ID, when []holdfast.Condition) {
	waits := slices.Clone(r.waits)
	slices.SortFunc(waits, func(a, b holdfast.Condition) int { return bytes.Compare(a.Job[:], b.Job[:]) })
	for _, c := range waits {
		after = append(after, c.Job)
	}
	if slices.ContainsFunc(waits, func(c holdfast.Condition) bool { return c.On != holdfast.OnComplete }) {
		when = waits
	}
	return after, when
}

// conditional reports whether a job waits for a failure or a cancellation.
func (r *record) conditional() bool {
	return slices.ContainsFunc(r.waits, func(c holdfast.Condition) bool { return c.On == holdfast.OnFailed || c.On == holdfast.OnCancelled })
}
