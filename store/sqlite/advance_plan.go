package sqlite

import (
	"errors"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// An advancePlan is what one step of AdvanceGroups has to do.
type advancePlan struct {
	limit int
	now   int64
	from  holdfast.ID // flagged groups up to this one were read by earlier steps

	advanced, until int64         // the feed number up to which ends were handled before, and after this step
	more            bool          // there is more than this step handles
	followers       []holdfast.ID // members whose upstreams decide that they start or are cancelled
	groups          []groupPlan
	seenGroups      map[holdfast.ID]bool // groups that were added
	seenFollowers   map[holdfast.ID]bool // followers that were added
}

// A groupPlan is a group with what was found out about it.
type groupPlan struct {
	groupRow
	cursor   []byte        // the highest member that has not ended; nil: none, or not searched for
	toCancel []holdfast.ID // members to cancel
	allEnded bool          // all members have ended, and are counted
}

func (a *advancePlan) empty() bool {
	return a.until == a.advanced && len(a.followers) == 0 && len(a.groups) == 0
}

// find plans everything that is to be done at one moment. The session is in a read transaction.
func (a *advancePlan) find(s *session) error {
	a.seenGroups, a.seenFollowers = map[holdfast.ID]bool{}, map[holdfast.ID]bool{}
	ended, err := a.readEnded(s)
	if err != nil {
		return err
	}
	var groups []holdfast.ID
	err = s.rowsByID("find_ended_members", ended, func(st *sqlite.Stmt) error {
		groups = append(groups, columnID(st, 1))
		return nil
	})
	if err != nil {
		return err
	}
	if len(groups) > 0 { // only members of groups have followers
		err = s.rowsByID("find_followers", ended, a.addFollower)
	}
	if err == nil {
		groups, err = s.appendIDs(groups, "find_expired_groups", a.now, a.limit)
	}
	if err != nil {
		return err
	}
	flagged, err := s.appendIDs(nil, "find_flagged_groups", a.from, a.limit)
	if a.from = (holdfast.ID{}); len(flagged) == a.limit {
		a.from = flagged[len(flagged)-1]
	}
	for _, id := range flagged {
		if err == nil {
			err = s.rows("find_waiting_members", []any{id}, a.addFollower)
		}
	}
	if err == nil {
		err = a.keepDecided(s)
	}
	for _, id := range append(groups, flagged...) {
		if err == nil {
			err = a.addGroup(s, id)
		}
	}
	return err
}

// errStop ends a read early, when there is enough for one step.
var errStop = errors.New("enough for one step")

// readEnded returns the jobs that have ended since the last step, from the pages of the feed.
func (a *advancePlan) readEnded(s *session) (ended []holdfast.ID, err error) {
	var head, purged, link int64
	if _, err := s.one("read_feed", nil, &head, &purged, &a.advanced, &link); err != nil {
		return nil, err
	}
	if a.until = a.advanced; head == a.advanced {
		return nil, nil
	}
	err = s.rows("advance_pages", []any{a.advanced}, func(st *sqlite.Stmt) error {
		if len(ended) >= a.limit {
			return errStop
		}
		jobs := make([]byte, st.ColumnLen(2))
		st.ColumnBytes(2, jobs)
		for ; len(jobs) >= len(holdfast.ID{}); jobs = jobs[len(holdfast.ID{}):] {
			ended = append(ended, holdfast.ID(jobs[:len(holdfast.ID{})]))
		}
		a.until = st.ColumnInt64(0) + st.ColumnInt64(1) - 1
		return nil
	})
	if errors.Is(err, errStop) {
		a.more = true
		return ended, nil
	}
	a.until = head
	return ended, err
}

// addFollower adds a follower, once.
func (a *advancePlan) addFollower(st *sqlite.Stmt) error {
	if id := columnID(st, 0); !a.seenFollowers[id] {
		a.seenFollowers[id] = true
		a.followers = append(a.followers, id)
	}
	return nil
}

// keepDecided keeps the followers that can be started or must be cancelled.
func (a *advancePlan) keepDecided(s *session) error {
	due := a.followers[:0]
	for _, id := range a.followers {
		f, err := s.readUpstreams(id)
		if err != nil {
			return err
		}
		if !f.Start && !f.End {
			delete(a.seenFollowers, id)
			continue
		}
		due = append(due, id)
	}
	a.followers = due
	return nil
}

// addGroup reads a group and adds it to the plan. It searches for a live member from the cursor down: every member with
// a higher id has ended, so a large group is searched once and not at every step.
func (a *advancePlan) addGroup(s *session, id holdfast.ID) (err error) {
	if a.seenGroups[id] {
		return nil
	}
	a.seenGroups[id] = true
	m := groupPlan{}
	found := false
	if m.groupRow, found, err = s.group(id); err != nil || !found {
		return err
	}
	sealed := m.State == holdfast.GroupProcessing
	if sealed {
		var live holdfast.ID
		some, err := s.one("find_last_live_member", []any{id, m.liveCursor}, &live)
		if err != nil {
			return err
		}
		if m.cursor = nil; some {
			m.cursor = live[:]
		}
		if !some {
			some, err = s.one("find_live_child_group", []any{id})
		}
		if err == nil && m.ending != "" && m.cursor != nil {
			m.toCancel, err = s.appendIDs(nil, "find_uncancelled_members", id, m.cursor, a.limit)
		}
		if m.allEnded = !some; err == nil && m.allEnded {
			err = m.countMembers(s)
		}
		if err != nil {
			return err
		}
	}
	a.groups = append(a.groups, m)
	return nil
}

// overdue reports whether a group has reached its expiry. A group that a person has reopened does not expire.
func (g *groupRow) overdue(now int64) bool {
	return g.expire != 0 && g.expire <= now && g.Generation == 1 && g.ending == "" && !g.State.Settled()
}

// countMembers counts how the members have ended.
func (m *groupPlan) countMembers(s *session) error {
	return s.rows("group_count", []any{m.ID}, func(st *sqlite.Stmt) error {
		m.Members.Total += st.ColumnInt(0)
		m.Members.Complete += st.ColumnInt(1)
		m.Members.Failed += st.ColumnInt(2)
		m.Members.Cancelled += st.ColumnInt(3)
		m.Members.Skipped += st.ColumnInt(4)
		return nil
	})
}
