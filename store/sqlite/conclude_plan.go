package sqlite

import (
	"errors"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// An agenda is what one step of concluding has to do.
type agenda struct {
	limit int
	now   int64
	from  holdfast.ID // attended groups up to this one were looked at before

	concluded, until int64 // how far groups had followed, and how far they will have
	more             bool  // there is more than this step takes
	followers        []holdfast.ID
	groups           []matter
	met              map[holdfast.ID]bool // groups that are on it
	waits            map[holdfast.ID]bool // followers that are on it
}

// A matter is a group on the agenda, with what was found out about it.
type matter struct {
	grouped
	cursor   []byte        // the first member that has not ended, when some was looked for
	leftover []holdfast.ID // members to cancel
	ended    bool          // all have, and they are counted
}

func (a *agenda) empty() bool {
	return a.until == a.concluded && len(a.followers) == 0 && len(a.groups) == 0
}

// find puts everything on the agenda that is there at one moment.
func (a *agenda) find(s *session) error {
	a.met, a.waits = map[holdfast.ID]bool{}, map[holdfast.ID]bool{}
	ended, err := a.read(s)
	if err != nil {
		return err
	}
	var groups []holdfast.ID
	err = s.some("find_ended_members", ended, func(st *sqlite.Stmt) error {
		groups = append(groups, columnID(st, 1))
		return nil
	})
	if err != nil {
		return err
	}
	if len(groups) > 0 { // who is no member has no followers
		err = s.some("find_followers", ended, a.waiting)
	}
	if err == nil {
		groups, err = s.ids(groups, "find_expired_groups", a.now, a.limit)
	}
	if err != nil {
		return err
	}
	attended, err := s.ids(nil, "find_flagged_groups", a.from, a.limit)
	if a.from = (holdfast.ID{}); len(attended) == a.limit {
		a.from = attended[len(attended)-1]
	}
	for _, id := range attended {
		if err == nil {
			err = s.rows("find_waiting_members", []any{id}, a.waiting)
		}
	}
	if err == nil {
		err = a.weigh(s)
	}
	for _, id := range append(groups, attended...) {
		if err == nil {
			err = a.look(s, id)
		}
	}
	return err
}

var errEnough = errors.New("enough for one step")

// read finds who has ended since groups were last concluded.
func (a *agenda) read(s *session) (ended []holdfast.ID, err error) {
	var head, purged, link int64
	if _, err := s.one("read_feed", nil, &head, &purged, &a.concluded, &link); err != nil {
		return nil, err
	}
	if a.until = a.concluded; head == a.concluded {
		return nil, nil
	}
	err = s.rows("conclude_pages", []any{a.concluded}, func(st *sqlite.Stmt) error {
		if len(ended) >= a.limit {
			return errEnough
		}
		jobs := make([]byte, st.ColumnLen(2))
		st.ColumnBytes(2, jobs)
		for ; len(jobs) >= len(holdfast.ID{}); jobs = jobs[len(holdfast.ID{}):] {
			ended = append(ended, holdfast.ID(jobs[:len(holdfast.ID{})]))
		}
		a.until = st.ColumnInt64(0) + st.ColumnInt64(1) - 1
		return nil
	})
	if errors.Is(err, errEnough) {
		a.more = true
		return ended, nil
	}
	a.until = head
	return ended, err
}

// waiting notes a follower, once.
func (a *agenda) waiting(st *sqlite.Stmt) error {
	if id := columnID(st, 0); !a.waits[id] {
		a.waits[id] = true
		a.followers = append(a.followers, id)
	}
	return nil
}

// weigh leaves those followers on the agenda for which something is to be done.
func (a *agenda) weigh(s *session) error {
	due := a.followers[:0]
	for _, id := range a.followers {
		j, err := s.judge(id)
		if err != nil {
			return err
		}
		if j.nothing() {
			delete(a.waits, id)
			continue
		}
		due = append(due, id)
	}
	a.followers = due
	return nil
}

// look finds out how a group stands, and puts it on the agenda if something is to be done about it.
func (a *agenda) look(s *session, id holdfast.ID) (err error) {
	if a.met[id] {
		return nil
	}
	a.met[id] = true
	m := matter{}
	found := false
	if m.grouped, found, err = s.group(id); err != nil || !found {
		return err
	}
	sealed := m.State == holdfast.GroupProcessing
	if sealed {
		var live holdfast.ID
		some, err := s.one("find_last_live_member", []any{id, m.live}, &live)
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
			m.leftover, err = s.ids(nil, "find_uncancelled_members", id, m.cursor, a.limit)
		}
		if m.ended = !some; err == nil && m.ended {
			err = m.count(s)
		}
		if err != nil {
			return err
		}
	}
	a.groups = append(a.groups, m)
	return nil
}

func (g *grouped) overdue(now int64) bool {
	return g.expire != 0 && g.expire <= now && g.Generation == 1 && g.ending == "" && !g.State.Settled()
}

// count counts how the members have ended.
func (m *matter) count(s *session) error {
	return s.rows("group_count", []any{m.ID}, func(st *sqlite.Stmt) error {
		m.Members.Total += st.ColumnInt(0)
		m.Members.Complete += st.ColumnInt(1)
		m.Members.Failed += st.ColumnInt(2)
		m.Members.Cancelled += st.ColumnInt(3)
		return nil
	})
}
