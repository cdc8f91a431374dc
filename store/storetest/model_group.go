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
	for _, c := range waitsOf(d) {
		if r := m.jobs[c.Job]; r == nil || r.Group != d.Group {
			return refuse(holdfast.ErrInvalid, holdfast.ID{}, textNotMember, c.Job)
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
		case r.Skipped:
			n.Skipped++
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
	if n.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", n.Skipped)
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

// isRetried reports whether a manual retry of the group retries an ended member: it failed, or never ran because of another, and if it was skipped, that one is
// retried too.
func (m *model) isRetried(r *record) bool {
	switch {
	case r.place != finished:
		return false
	case r.Skipped:
		return m.isRetried(m.jobs[r.Upstream])
	}
	return r.state == holdfast.Failed && !r.discarded || !r.Upstream.IsZero()
}

// retryMembers starts a new generation of all failed members of a group, and of all that never ran because of them.
func (m *model) retryMembers(group holdfast.ID, i store.Intervention) (sent int) {
	var retried []*record
	for _, r := range m.jobs {
		if r.Group == group && m.isRetried(r) {
			retried = append(retried, r)
		}
	}
	for _, r := range retried {
		waits := !r.Upstream.IsZero() || r.conditional()
		m.startGeneration(r, i)
		if waits {
			r.place, r.Upstream, r.Skipped = waiting, holdfast.ID{}, false
			if r.RunAt.After(m.now) { // its own due time still counts
				r.due = r.RunAt
			}
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
