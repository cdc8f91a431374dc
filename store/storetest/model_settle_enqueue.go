package storetest

import (
	"maps"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Jobs that settlements enqueue, in the model.

// settleHeld settles an attempt whose lease is held, and enqueues the jobs of the settlement if it completes its job. If one of them is refused, nothing changes.
func (m *model) settleHeld(r *record, s store.Settlement) error {
	if len(s.Enqueue) == 0 || r.cancel {
		m.apply(r, s)
		return nil
	}
	after := m.copy()
	after.apply(after.jobs[r.ID], s)
	after.completing = r.Group
	if _, err := after.enqueue(s.Enqueue); err != nil {
		return refuse(holdfast.ErrInvalid, s.Job, textRefusedDraft, s.Job, err)
	}
	after.completing = holdfast.ID{}
	*m = *after
	return nil
}

// copy returns a copy of the model in which a completion and an enqueue change nothing of the original.
func (m *model) copy() *model {
	c := *m
	c.jobs, c.leases, c.unique, c.once, c.trends = make(map[holdfast.ID]*record, len(m.jobs)), maps.Clone(m.leases), maps.Clone(m.unique), maps.Clone(m.once), make(map[trendOf]*store.Trend, len(m.trends))
	for id := range m.jobs {
		c.jobs[id] = m.jobs[id]
		c.change(id)
	}
	for of, counts := range m.trends {
		c.trends[of] = new(*counts)
	}
	return &c
}

// takes reports whether a group takes new members: it is open, or a member of it is being completed and enqueues them.
func (m *model) takes(g *groupRecord) bool {
	return g.State == holdfast.GroupOpen || g.State == holdfast.GroupProcessing && g.ID == m.completing
}
