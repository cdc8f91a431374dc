package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// Conclude does what the end of members brings with it. What is to be done is found beside the writer, which only does it, if it is
// still to be done. A step that finds nothing does not trouble the writer at all.
func (s *Store) Conclude(ctx context.Context, limit int) (done int, err error) {
	if err := rule.Batch("conclude", limit); err != nil {
		return 0, err
	}
	s.concluding.Lock()
	defer s.concluding.Unlock()
	agenda := agenda{limit: limit, now: s.now().UnixMicro(), from: s.attended}
	err = s.reader.with(ctx, func(beside *session) error {
		if _, err := beside.exec("begin_read"); err != nil {
			return err
		}
		err := agenda.find(beside)
		if _, ended := beside.exec("rollback"); err == nil {
			err = ended
		}
		return err
	})
	if err == nil && !agenda.empty() {
		err = s.writer.write(ctx, func(t *tx) (err error) {
			done, err = agenda.carryOut(t)
			return err
		})
	}
	if err != nil {
		return 0, explain(err)
	}
	s.attended = agenda.from
	return done, nil
}

// carryOut does what is on the agenda, and reports how much it was.
func (a *agenda) carryOut(t *tx) (done int, err error) {
	if a.until != a.concluded {
		moved, err := t.exec("advance_concluded", a.concluded, a.until)
		if err != nil || moved == 0 { // another process was faster: it has the same agenda
			return 0, err
		}
	}
	if done, err = a.follow(t); err != nil {
		return 0, err
	}
	for i := range a.groups {
		n, err := a.groups[i].conclude(t)
		if err != nil {
			return 0, err
		}
		done += n
	}
	if a.more {
		done = max(done, 1)
	}
	return done, nil
}

// follow starts or cancels those who waited, and those who waited for the cancelled. What is too much for one step is left to a look
// at their group.
func (a *agenda) follow(t *tx) (done int, err error) {
	for i := 0; i < len(a.followers); i++ {
		id := a.followers[i]
		if done >= a.limit {
			return done, t.attendOf(a.followers[i:])
		}
		acted, cancelled, err := t.follow(id)
		if err != nil {
			return 0, err
		}
		if acted {
			done++
		}
		if cancelled {
			if err := t.some("find_followers", []holdfast.ID{id}, a.waiting); err != nil {
				return 0, err
			}
		}
	}
	return done, nil
}

// attendOf has the groups of some members looked at.
func (t *tx) attendOf(members []holdfast.ID) error {
	groups := map[holdfast.ID]bool{}
	err := t.some("find_ended_members", members, func(st *sqlite.Stmt) error {
		groups[columnID(st, 1)] = true
		return nil
	})
	for id := range groups {
		if err == nil {
			_, err = t.exec("flag_group", id)
		}
	}
	return err
}

// conclude does for a group what is to be done, if it still stands as it was seen. Otherwise somebody has asked for another look.
func (m *matter) conclude(t *tx) (done int, err error) {
	switch {
	case m.ended:
		return m.settle(t)
	case m.overdue(t.now):
		return t.exec("group_end", m.ID, string(holdfast.GroupExpired), t.now)
	case m.State == holdfast.GroupProcessing && m.ending != "":
		return m.end(t)
	}
	if m.attend > 0 {
		if _, err := t.exec("clear_group_flag", m.ID, m.attend); err != nil {
			return 0, err
		}
		m.attend = 0
	}
	if m.cursor != nil && string(m.cursor) != string(m.live) {
		_, err = t.exec("save_group_cursor", m.ID, m.cursor, m.attend)
	}
	return 0, err
}

// end cancels what is left of a group, a step at a time, and has the groups inside it ended. It is attended until nothing is live.
func (m *matter) end(t *tx) (done int, err error) {
	if done, err = t.exec("end_child_groups", m.ID, m.ending, t.now); err != nil {
		return 0, err
	}
	if m.attend == 0 {
		if _, err := t.exec("flag_group", m.ID); err != nil {
			return 0, err
		}
	}
	for _, id := range m.leftover {
		i := holdfast.Intervention{Job: id, Actor: rule.Machine, Reason: rule.EndedWith(holdfast.GroupState(m.ending))}
		job, err := t.standing(i)
		if said := (*holdfast.Error)(nil); errors.As(err, &said) {
			continue // it is the audit's
		}
		if err != nil {
			return 0, err
		}
		switch job.place {
		case "finished":
			continue
		case "leased":
			err = t.askToStop(i, job)
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

// settle gives a group its outcome, once per generation, and enqueues what follows.
func (m *matter) settle(t *tx) (done int, err error) {
	var refused error
	g := &m.Group
	if g.State = g.Members.Outcome(g.Quorum); m.ending != "" {
		g.State = holdfast.GroupState(m.ending)
	}
	done, err = t.exec("group_settle", g.ID, string(g.State), t.now, g.Members.Complete, g.Members.Failed, g.Members.Cancelled, m.attend)
	if err != nil || done == 0 {
		return 0, err
	}
	if m.then != "" && json.Unmarshal([]byte(m.then), &g.Then) != nil {
		g.Then = nil
		refused = rule.ErrThenUnreadable
	}
	drafts, problems := rule.Continuations(g)
	if err := t.tellGroup(holdfast.Intervention{Actor: rule.Machine, Reason: rule.Outcome(g.Members, errors.Join(refused, problems))}, g.ID, string(g.State), g.Generation); err != nil {
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
