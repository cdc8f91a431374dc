package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Groups in the model. There are no counters: everything follows from the members.

// A groupRecord is a group with what will become of it.
type groupRecord struct {
	holdfast.Group
	ending  holdfast.GroupState          // its remaining members are being cancelled
	may     map[holdfast.GroupState]bool // other endings at the same time
	settled map[int]int                  // how often it was settled, by generation
}

func (m *model) gather(g holdfast.Group) error {
	if g.Prepare() != nil {
		return holdfast.ErrInvalid
	}
	if !g.Parent.IsZero() {
		parent := m.groups[g.Parent]
		if parent == nil {
			return refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoGroup, g.Parent)
		}
		if parent.State != holdfast.GroupOpen {
			return refuse(holdfast.ErrConflict, holdfast.ID{}, textSealed, g.Parent)
		}
	}
	if m.groups[g.ID] != nil {
		return refuse(holdfast.ErrConflict, holdfast.ID{}, textGroupExists, g.ID)
	}
	if g.ExpireIn > 0 {
		g.ExpireAt, g.ExpireIn = m.now.Add(g.ExpireIn), 0
	}
	g.State, g.Generation, g.CreatedAt = holdfast.GroupOpen, 1, m.now
	m.groups[g.ID] = &groupRecord{Group: g, settled: map[int]int{}}
	return nil
}

// join returns an error if a draft cannot become a member of its group.
func (m *model) join(d holdfast.Draft) error {
	if d.Group.IsZero() {
		return nil
	}
	g := m.groups[d.Group]
	if g == nil {
		return refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoGroup, d.Group)
	}
	if g.State != holdfast.GroupOpen {
		return refuse(holdfast.ErrConflict, holdfast.ID{}, textSealed, d.Group)
	}
	for _, id := range d.After {
		if r := m.jobs[id]; r == nil || r.Group != d.Group {
			return refuse(holdfast.ErrInvalid, holdfast.ID{}, textNotMember, id)
		}
	}
	return nil
}

func (m *model) seal(id holdfast.ID) error {
	g := m.groups[id]
	if g == nil {
		return refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoGroup, id)
	}
	m.close(g)
	return nil
}

func (m *model) close(g *groupRecord) {
	if g.State == holdfast.GroupOpen {
		g.State, g.SealedAt = holdfast.GroupProcessing, m.now
	}
}

// members counts the members of a group by state.
func (m *model) members(id holdfast.ID) (n holdfast.Members) {
	for _, r := range m.jobs {
		if r.Group != id {
			continue
		}
		n.Total++
		switch {
		case r.place == waiting:
			n.Waiting++
		case r.place == leased:
			n.Processing++
		case r.place != finished:
			n.Queued++
		case r.state == holdfast.Complete:
			n.Complete++
		case r.state == holdfast.Failed:
			n.Failed++
		default:
			n.Cancelled++
		}
	}
	for _, child := range m.groups {
		if child.Parent != id {
			continue
		}
		n.Total++
		switch {
		case !child.State.Settled():
			n.Processing++
		case child.State == holdfast.GroupReady:
			n.Complete++
		default:
			n.Failed++
		}
	}
	return n
}

// sortIDs returns the ids sorted.
func sortIDs(all []holdfast.ID) []holdfast.ID {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b holdfast.ID) int { return bytes.Compare(a[:], b[:]) })
	return all
}

// advanceGroups applies what follows from ended members, until nothing changes.
func (m *model) advanceGroups() {
	for _, g := range m.groups {
		g.may = nil
	}
	for m.releaseWaiters() || m.cancelEnding() || m.settleGroups() {
	}
}

// releaseWaiters releases or cancels members whose wait is over.
func (m *model) releaseWaiters() (did bool) {
	for _, r := range m.jobs {
		if r.place != waiting || r.Order != "" {
			continue
		}
		live, bad := m.upstream(r)
		switch {
		case len(bad) > 0 && !r.regardless:
			m.cancelByStore(r, loose) // a store may name any of those that did not complete, or the end of the group
			r.Upstream = bad[0]
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

// upstream returns how many of the members that a job waits for are live, and which did not complete.
func (m *model) upstream(r *record) (live int, bad []holdfast.ID) {
	for _, id := range r.after {
		switch other := m.jobs[id]; {
		case other.place != finished:
			live++
		case other.state != holdfast.Complete:
			bad = append(bad, id)
		}
	}
	return live, bad
}

// cancelByStore cancels a job that is not processing, with the store as actor.
func (m *model) cancelByStore(r *record, reason string) {
	if _, err := m.cancel(store.Intervention{Job: r.ID, Actor: "holdfast", Reason: reason}); err != nil {
		panic("the model cannot cancel what is live: " + err.Error())
	}
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

func (m *model) announce(g *groupRecord, name, actor, reason string) {
	subject := "group/" + g.ID.String()
	m.stories[subject] = append(m.stories[subject], store.Event{Subject: subject, At: m.now, Name: name, Actor: actor, Reason: reason, Generation: g.Generation})
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
	return text
}

// reopen starts a new generation of a settled group, and of the groups around it.
func (m *model) reopen(id holdfast.ID, i store.Intervention) {
	g := m.groups[id]
	if g == nil || !g.State.Settled() {
		return
	}
	g.State, g.SettledAt, g.ending, g.may = holdfast.GroupProcessing, time.Time{}, "", nil
	g.Generation++
	m.announce(g, "reopened", i.Actor, i.Reason)
	m.reopen(g.Parent, i)
}

// findGroup returns the group of an intervention, if it exists and belongs to the caller.
func (m *model) findGroup(i store.Intervention) (*groupRecord, error) {
	if err := i.Check(); err != nil {
		return nil, err
	}
	g := m.groups[i.Group]
	if g == nil || i.Owner != "" && g.Owner != i.Owner {
		return nil, refuse(holdfast.ErrNotFound, holdfast.ID{}, textNoGroup, i.Group)
	}
	return g, nil
}

func (m *model) retryGroup(i store.Intervention) (int, error) {
	g, err := m.findGroup(i)
	if err != nil {
		return 0, err
	}
	sent := m.retryMembers(g.ID, i)
	if sent == 0 {
		return 0, refuse(holdfast.ErrConflict, holdfast.ID{}, textNoFailed, i.Group)
	}
	return sent, nil
}

// retryMembers starts a new generation of all failed members of a group, and of all that were cancelled because of them.
func (m *model) retryMembers(group holdfast.ID, i store.Intervention) (sent int) {
	for _, r := range m.jobs {
		if r.Group != group || r.place != finished {
			continue
		}
		switch {
		case r.state == holdfast.Failed && !r.discarded:
			m.startGeneration(r, i)
		case !r.Upstream.IsZero():
			m.startGeneration(r, i)
			r.place, r.Upstream = waiting, holdfast.ID{}
			if r.RunAt.After(m.now) { // it never ran, so its own due time still counts
				r.due = r.RunAt
			}
		default:
			continue
		}
		m.tell(r, "manual retry", i)
		sent++
	}
	for _, child := range m.groups {
		if child.Parent == group {
			sent += m.retryMembers(child.ID, i)
		}
	}
	return sent
}

func (m *model) cancelGroup(i store.Intervention) error {
	g, err := m.findGroup(i)
	if err != nil {
		return err
	}
	if g.State.Settled() {
		return refuse(holdfast.ErrConflict, holdfast.ID{}, textGroupSettled, g.ID, g.State)
	}
	g.ending = holdfast.GroupCancelled
	m.close(g)
	return nil
}

// expiring reports whether some group can still expire.
func (m *model) expiring() bool {
	for _, g := range m.groups {
		if !g.ExpireAt.IsZero() && !g.State.Settled() {
			return true
		}
	}
	return false
}

// show is the group as the store shows it.
func (m *model) show(g *groupRecord) holdfast.Group {
	shown := g.Group
	shown.Members, shown.AsOf = m.members(g.ID), m.now
	return shown
}
