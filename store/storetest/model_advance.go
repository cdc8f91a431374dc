package storetest

import (
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// What follows from ended members in the model: others start, or are cancelled or skipped, and groups settle.

// advanceGroups applies what follows from ended members, until nothing changes.
func (m *model) advanceGroups() {
	for _, g := range m.groups {
		g.may = nil
	}
	for m.releaseWaiters() || m.cancelEnding() || m.settleGroups() {
	}
}

// releaseWaiters releases or cancels members whose wait is over. A decision can depend on the order in which members are decided, and a store may choose any order. So
// the members for which the cause that the store names is known are decided first.
func (m *model) releaseWaiters() bool {
	return m.decideWaiters(true) || m.decideWaiters(false)
}

// decideWaiters decides about members that wait. If asNamed is set, it only cancels those for which the cause that the store names is known.
func (m *model) decideWaiters(asNamed bool) (did bool) {
	for _, r := range m.jobs {
		if r.place != waiting || r.Order != "" {
			continue
		}
		live, bad := m.upstream(r)
		switch {
		case len(bad) > 0:
			at := slices.IndexFunc(bad, func(c holdfast.Condition) bool { return c.Job == m.storeCauses[r.ID] })
			if asNamed && at < 0 {
				continue
			}
			m.cancelByStore(r, loose) // a store may name any of those that did not end as they must, or the end of the group
			cause := bad[max(0, at)]
			r.Upstream, r.Skipped = cause.Job, m.skips(cause)
		case live == 0:
			r.place = ready
			if r.due.After(m.now) && !r.due.Equal(r.CreatedAt) { // due at its creation: it has no due time of its own, whatever the clock
				r.place = later
			}
		default:
			continue
		}
		did = true
	}
	return did
}

// cancelEnding cancels the remaining members of groups that were cancelled or have expired.
func (m *model) cancelEnding() (did bool) {
	for _, g := range m.groups {
		if (g.ending == "" || g.may != nil) && !g.State.Settled() && g.Generation == 1 && !g.ExpireAt.IsZero() && !g.ExpireAt.After(m.now) {
			did = m.endGroup(g, holdfast.GroupExpired) || did
		}
		if g.ending == "" || g.State.Settled() {
			continue
		}
		for _, r := range m.jobs {
			if r.Group == g.ID && r.place != finished && !r.cancel {
				m.cancelByStore(r, loose)
				did = true
			}
		}
		for _, child := range m.groups {
			if child.Parent == g.ID && (child.ending == "" || child.may != nil) && !child.State.Settled() {
				did = m.endGroup(child, g.ending) || did
			}
		}
	}
	return did
}

// endGroup marks a group as ending. If it has ended anyway, or if two endings coincide, the store may choose.
func (m *model) endGroup(g *groupRecord, as holdfast.GroupState) (did bool) {
	if g.may == nil {
		g.may = map[holdfast.GroupState]bool{"": m.allEnded(g)}
		g.ending = as
	}
	did = !g.may[as]
	g.may[as] = true
	m.close(g)
	return did
}

// allEnded reports whether a sealed group has no live member, including nested groups.
func (m *model) allEnded(g *groupRecord) bool {
	for _, r := range m.jobs {
		if r.Group == g.ID && r.place != finished {
			return false
		}
	}
	for _, child := range m.groups {
		if child.Parent == g.ID && !child.State.Settled() && !m.allEnded(child) {
			return false
		}
	}
	return g.State != holdfast.GroupOpen
}

// outcome is the outcome of a group: the store's, where it may choose.
func (m *model) outcome(g *groupRecord, members holdfast.Members) holdfast.GroupState {
	own, seen := members.Outcome(g.Quorum), m.storeStates[g.ID]
	switch {
	case g.ending == "" || seen == own && g.may[""]:
		return own
	case seen != "" && g.may[seen]:
		return seen
	}
	return g.ending
}

// settleGroups settles every sealed group without a live member.
func (m *model) settleGroups() (did bool) {
	for _, g := range m.groups {
		members := m.members(g.ID)
		if g.State != holdfast.GroupProcessing || members.Live() > 0 {
			continue
		}
		g.State, g.SettledAt = m.outcome(g, members), m.now
		g.settled[g.Generation]++
		m.announce(g, string(g.State), "holdfast", outcomeOf(members))
		m.continuations = append(m.continuations, g.Continuations()...)
		did = true
	}
	return did
}

// outcomeOf describes how the members ended.
func outcomeOf(n holdfast.Members) string {
	text := fmt.Sprintf("%d of %d complete", n.Complete, n.Total)
	if n.Failed > 0 {
		text += fmt.Sprintf(", %d failed", n.Failed)
	}
	if n.Cancelled > 0 {
		text += fmt.Sprintf(", %d cancelled", n.Cancelled)
	}
	if n.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", n.Skipped)
	}
	return text
}

// cancelByStore cancels a job that is not processing, with the store as actor.
func (m *model) cancelByStore(r *record, reason string) {
	if _, err := m.cancel(store.Intervention{Job: r.ID, Actor: "holdfast", Reason: reason}); err != nil {
		panic("the model cannot cancel what is live: " + err.Error())
	}
}
