package sqlite

import (
	"maps"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// commitGroup runs a group of calls in the open transaction, commits it and answers the calls.
//
// Calls rarely fail, so the first run has no savepoints. If a call fails, the transaction is rolled back and the group
// runs again in a new transaction, each call in its own savepoint: a call that fails there is undone alone and the
// others are committed. If even this transaction is lost as a whole (for example because SQLite rolls it back after an
// I/O error), each call runs alone in its own transaction, so that a call can lose only its own.
//
// No call is answered before the commit that contains it, and a call that is answered with nil has run to its end
// exactly once in a committed transaction. This is why a call's function may run more than once.
func (w *writer) commitGroup(group []*call, isolated bool) {
	err := w.runAndCommit(group, isolated)
	if err == nil {
		w.waker.notifyGroup(group, w.lanes)
		for _, c := range group {
			c.answer(c.err)
		}
		return
	}
	w.resetConnection(err)
	switch {
	case len(group) <= 1:
		for _, c := range group {
			c.answer(err)
		}
	case !isolated:
		w.commitAgain(group)
	default:
		for i := range group {
			w.commitAgain(group[i : i+1])
		}
	}
}

// commitAgain runs calls in a new transaction, with savepoints.
func (w *writer) commitAgain(group []*call) {
	young := func(error) bool { return time.Since(group[0].queuedAt) < callLockWait }
	if err := w.begin(young); err != nil {
		w.resetConnection(err)
		for _, c := range group {
			c.answer(err)
		}
		return
	}
	w.commitGroup(group, true)
}

// runAndCommit runs each call and commits the transaction. If isolated, and if there is more than one call, each has
// its own savepoint. If runAndCommit returns an error, nothing of any call was written, and the caller must reset the
// connection.
//
// Rows, feed pages and trend counts of all calls are written at the end, immediately before the commit, so that they
// belong to the same transaction as the changes that they describe. Wake-ups and new lanes become visible to others
// only after the commit.
func (w *writer) runAndCommit(group []*call, isolated bool) error {
	newLanes, rowBatches, pages, trends := map[laneKey]int64{}, []rowBatch{}, []page{}, []store.Trend{}
	isolated = isolated && len(group) > 1
	for _, c := range group {
		t := &tx{session: w.session, now: w.cfg.Clock().UnixMicro(), lanes: w.lanes, rowBatches: &rowBatches, listened: &w.listened}
		if isolated {
			c.err = t.inSavepoint(func() error { return c.runIsolated(t) })
		} else {
			c.err = c.runShared(t)
		}
		if w.session.conn.AutocommitEnabled() { // SQLite has rolled back the transaction
			return c.err
		}
		if c.err != nil && (!isolated || broken(c.err)) {
			return c.err
		}
		if c.wakeup = (wakeup{}); c.err == nil {
			c.wakeup = t.wakeup
			maps.Copy(newLanes, t.newLanes)
			pages, trends = appendPages(pages, t.pages), append(trends, t.trends.All(instant(t.now))...)
		} else if w.listened.uncommitted { // the savepoint's changes to the listeners were undone
			if err := w.listened.read(w.session); err != nil {
				return err
			}
		}
	}
	last := &tx{session: w.session, rowBatches: &rowBatches}
	if err := last.flushRows(); err != nil {
		return err
	}
	if err := writeTrends(last, trends); err != nil {
		return err
	}
	if err := writePages(last, pages); err != nil {
		return err
	}
	if _, err := w.session.exec("commit"); err != nil {
		return err
	}
	w.listened.uncommitted = false
	for at, id := range newLanes {
		w.lanes.add(lane.Lane{ID: id, Queue: at.queue, Kind: at.kind, Owner: at.owner, Dependency: at.dependency})
	}
	return nil
}

// runIsolated runs a call in its savepoint and writes all rows that it adds to row batches, so that a constraint error
// is this call's.
func (c *call) runIsolated(t *tx) error {
	if err := c.do(t); err != nil {
		return err
	}
	return t.flushRows()
}

// runShared runs a call without a savepoint. Rows that earlier calls have added to row batches are written first,
// unless the call is known not to read them.
func (c *call) runShared(t *tx) error {
	if !c.canJoin {
		if err := t.flushRows(); err != nil {
			return err
		}
	}
	return c.do(t)
}
