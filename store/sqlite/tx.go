package sqlite

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A tx is one call's part of a transaction.
type tx struct {
	*session
	now    int64                  // the store's clock when the call began, in microseconds
	known  *lanes                 // committed
	fresh  map[where]int64        // made by this call: known to others once it is committed
	leases map[holdfast.ID]*lease // read by this call
	news   news

	sheaves *[]sheaf // not written yet
	ears    *ears
	pages   []page          // what this call did, as far as somebody listens
	tallies sqltext.Tallies // what became of the attempts that it settled
}

// at is the instant a while from now.
func (t *tx) at(d time.Duration) int64 { return t.now + d.Microseconds() }

// guarded undoes what act did and gathered if it fails, and nothing else.
func (t *tx) guarded(act func() error) error {
	if _, err := t.exec("savepoint"); err != nil {
		return err
	}
	pages := slices.Clone(t.pages) // what is added to them is added behind what these see
	err := act()
	if err != nil {
		*t.sheaves, t.pages = nil, pages
	}
	if err != nil && !t.conn.AutocommitEnabled() {
		if _, undone := t.exec("savepoint_rollback"); undone != nil {
			return errors.Join(err, undone)
		}
	}
	if t.conn.AutocommitEnabled() {
		return err
	}
	if _, released := t.exec("savepoint_release"); released != nil {
		return errors.Join(err, released)
	}
	return err
}
