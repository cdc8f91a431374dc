package sqlite

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A tx is one call's part of a write transaction.
type tx struct {
	*session
	now      int64                  // the store's clock when the call began, in microseconds
	lanes    *laneCache             // committed lanes
	newLanes map[laneKey]int64      // lanes that this call made; other calls see them after the commit
	batches  map[holdfast.ID]*batch // batches that this call has read
	wakeup   wakeup

	rowBatches *[]rowBatch // rows that are not inserted yet; shared by all calls of the transaction
	listened   *listenedEvents
	pages      []page              // events of this call that have a listener
	trends     sqltext.TrendCounts // results of the attempts that this call settled, for the trends
}

// at returns the instant d after the call began, in microseconds.
func (t *tx) at(d time.Duration) int64 { return t.now + d.Microseconds() }

// inSavepoint runs act in a savepoint. If act fails, its changes are undone, including the rows and events that it
// added, and nothing else. Row batches must be empty when the savepoint opens, because a failure empties them; act
// flushes what it adds.
func (t *tx) inSavepoint(act func() error) error {
	if _, err := t.exec("savepoint"); err != nil {
		return err
	}
	lanes := maps.Clone(t.newLanes)
	pages := slices.Clone(t.pages) // act may append to t.pages, but does not change these elements
	err := act()
	if err != nil {
		*t.rowBatches, t.pages, t.newLanes = nil, pages, lanes
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
