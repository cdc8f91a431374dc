package sqlite

import (
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

// A tx is one call's part of a transaction.
type tx struct {
	*session
	now    int64                  // the store's clock when the call began, in microseconds
	known  lanes                  // committed
	fresh  lanes                  // made by this call: known to others once it is committed
	leases map[holdfast.ID]*lease // read by this call
	news   news

	sheaves *[]sheaf // not written yet
}

// at is the instant a while from now.
func (t *tx) at(d time.Duration) int64 { return t.now + d.Microseconds() }

// guarded undoes what act did and gathered if it fails, and nothing else.
func (t *tx) guarded(act func() error) error {
	if _, err := t.exec("savepoint"); err != nil {
		return err
	}
	err := act()
	if err != nil {
		*t.sheaves = nil
	}
	if err != nil && !t.conn.AutocommitEnabled() {
		if _, undone := t.exec("savepoint-undo"); undone != nil {
			return errors.Join(err, undone)
		}
	}
	if t.conn.AutocommitEnabled() {
		return err
	}
	if _, released := t.exec("savepoint-release"); released != nil {
		return errors.Join(err, released)
	}
	return err
}

// A lane is one kind in one queue.
type lane struct{ queue, kind string }

// lanes are the ids of lanes. nil: not read yet.
type lanes map[lane]int64

func readLanes(s *session) (lanes, error) {
	all := lanes{}
	err := s.rows("lane-list", nil, func(st *sqlite.Stmt) error {
		all[lane{st.ColumnText(1), st.ColumnText(2)}] = st.ColumnInt64(0)
		return nil
	})
	return all, err
}

// lane finds the lane of a queue and a kind, or makes it.
func (t *tx) lane(queue, kind string) (int64, error) {
	key := lane{queue, kind}
	if id, ok := t.known[key]; ok {
		return id, nil
	}
	if id, ok := t.fresh[key]; ok {
		return id, nil
	}
	id, err := makeLane(t, queue, kind)
	if err == nil {
		if t.fresh == nil {
			t.fresh = lanes{}
		}
		t.fresh[key] = id
	}
	return id, err
}

func makeLane(to sink, queue, kind string) (id int64, err error) {
	if _, err = to.exec("lane-add", queue, kind); err != nil {
		return 0, err
	}
	found, err := to.one("lane-find", []any{queue, kind}, &id)
	if err == nil && !found {
		err = &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "a lane that was just made is not there: run the doctor"}
	}
	return id, err
}
