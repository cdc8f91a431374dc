package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// AdvanceGroups does what follows from the end of group members: it starts or cancels the members that waited for them,
// cancels members of groups that are ending, and settles groups whose members have all ended. It returns how much it
// did; zero means that nothing is left.
//
// What is to be done is read beside the writer. The writer does it only if it is still to be done: the position in the
// feed must be unchanged (set_advanced), a waiting member is examined again, and a group must have the flags that
// were read. A step that finds nothing does not use the writer.
func (s *Store) AdvanceGroups(ctx context.Context, limit int) (done int, err error) {
	if err := rule.Batch("advance groups", limit); err != nil {
		return 0, err
	}
	s.advanceMu.Lock()
	defer s.advanceMu.Unlock()
	plan := advancePlan{limit: limit, now: s.now().UnixMicro(), from: s.advanceCursor}
	err = s.reader.with(ctx, func(beside *session) error {
		if _, err := beside.exec("begin_read"); err != nil {
			return err
		}
		err := plan.find(beside)
		if _, ended := beside.exec("rollback"); err == nil {
			err = ended
		}
		return err
	})
	if err == nil && !plan.empty() {
		err = s.writer.write(ctx, func(t *tx) (err error) {
			done, err = plan.apply(t)
			return err
		})
	}
	if err != nil {
		return 0, explain(err)
	}
	s.advanceCursor = plan.from
	moved, err := s.sweepLines(ctx, limit)
	return done + moved, err
}

// apply does what was planned, and returns how much it did.
func (a *advancePlan) apply(t *tx) (done int, err error) {
	if a.until != a.advanced {
		moved, err := t.exec("set_advanced", a.advanced, a.until)
		if err != nil || moved == 0 { // another process was faster, with the same plan
			return 0, err
		}
	}
	if done, err = a.resolveFollowers(t); err != nil {
		return 0, err
	}
	for i := range a.groups {
		n, err := a.groups[i].apply(t)
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

// resolveFollowers starts or cancels the members that waited for ended ones, and then those that waited for the
// cancelled. If there are more than the limit, their groups are flagged, so that a later step continues.
func (a *advancePlan) resolveFollowers(t *tx) (done int, err error) {
	for i := 0; i < len(a.followers); i++ {
		id := a.followers[i]
		if done >= a.limit {
			return done, t.flagGroupsOf(a.followers[i:])
		}
		acted, cancelled, err := t.resolveFollower(id)
		if err != nil {
			return 0, err
		}
		if acted {
			done++
		}
		if cancelled {
			if err := t.rowsByID("find_followers", []holdfast.ID{id}, a.addFollower); err != nil {
				return 0, err
			}
		}
	}
	return done, nil
}

// flagGroupsOf flags the groups of some members for evaluation.
func (t *tx) flagGroupsOf(members []holdfast.ID) error {
	groups := map[holdfast.ID]bool{}
	err := t.rowsByID("find_ended_members", members, func(st *sqlite.Stmt) error {
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
