package storetest

import (
	"bytes"
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
	if !m.takes(g) {
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

func (m *model) announce(g *groupRecord, name, actor, reason string) {
	subject := "group/" + g.ID.String()
	m.stories[subject] = append(m.stories[subject], store.Event{Subject: subject, At: m.now, Name: name, Actor: actor, Reason: reason, Generation: g.Generation})
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
