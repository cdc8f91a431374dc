package sqlite

import (
	"context"

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
