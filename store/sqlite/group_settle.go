package sqlite

import (
	"encoding/json"
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// apply does what is to be done for a group if it is as it was read. Each statement repeats the condition on which it
// depends, such as the number of flags: if a member has restarted, or another call has flagged the group since, nothing
// is changed and a later step evaluates the group again.
func (m *groupPlan) apply(t *tx) (done int, err error) {
	switch {
	case m.allEnded:
		return m.settle(t)
	case m.overdue(t.now):
		return t.exec("group_end", m.ID, string(holdfast.GroupExpired), t.now)
	case m.State == holdfast.GroupProcessing && m.ending != "":
		return m.cancelMembers(t)
	}
	if m.flags > 0 {
		if _, err := t.exec("clear_group_flag", m.ID, m.flags); err != nil {
			return 0, err
		}
		m.flags = 0
	}
	if m.cursor != nil && string(m.cursor) != string(m.liveCursor) {
		_, err = t.exec("save_group_cursor", m.ID, m.cursor, m.flags)
	}
	return 0, err
}

// cancelMembers cancels what is left of a group that is ending, a limited number of members per step, and ends the
// groups inside it. The group stays flagged until no member is live.
func (m *groupPlan) cancelMembers(t *tx) (done int, err error) {
	if done, err = t.exec("end_child_groups", m.ID, m.ending, t.now); err != nil {
		return 0, err
	}
	if m.flags == 0 {
		if _, err := t.exec("flag_group", m.ID); err != nil {
			return 0, err
		}
	}
	for _, id := range m.toCancel {
		i := store.Intervention{Job: id, Actor: rule.Machine, Reason: rule.EndedWith(holdfast.GroupState(m.ending))}
		job, err := t.findJob(i)
		if refusal := (*holdfast.Error)(nil); errors.As(err, &refusal) {
			continue // the rows of the job contradict each other: left for the integrity check
		}
		if err != nil {
			return 0, err
		}
		switch job.place {
		case "finished":
			continue
		case "leased":
			err = t.requestCancel(i, job)
		default:
			err = t.cancelQueued(i, job)
		}
		if err != nil {
			return 0, err
		}
		done++
	}
	return done, nil
}

// settle gives a group its outcome, once per generation, and enqueues its continuations in the same transaction.
func (m *groupPlan) settle(t *tx) (done int, err error) {
	var refused error
	g := &m.Group
	if g.State = g.Members.Outcome(g.Quorum); m.ending != "" {
		g.State = holdfast.GroupState(m.ending)
	}
	done, err = t.exec("group_settle", g.ID, string(g.State), t.now, g.Members.Complete, g.Members.Failed, g.Members.Cancelled, m.flags, g.Members.Skipped)
	if err != nil || done == 0 {
		return 0, err
	}
	if m.then != "" && json.Unmarshal([]byte(m.then), &g.Then) != nil {
		g.Then = nil
		refused = rule.ErrThenUnreadable
	}
	drafts, problems := rule.Continuations(g)
	if err := t.addGroupEvent(store.Intervention{Actor: rule.Machine, Reason: rule.Outcome(g.Members, errors.Join(refused, problems))}, g.ID, string(g.State), g.Generation); err != nil {
		return 0, err
	}
	if len(drafts) > 0 {
		if err := t.enqueueAll(drafts); err != nil {
			return 0, err
		}
	}
	if !g.Parent.IsZero() {
		_, err = t.exec("flag_group", g.Parent)
	}
	return done, err
}
