package sqlite

import (
	"maps"
	"time"

	"github.com/holdfastdev/holdfast"
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
func (w *writer) serve(group []*call, apart bool) {
	err := w.attempt(group, apart)
	if err == nil {
		w.bell.strike(group, w.lanes)
		for _, c := range group {
			c.answer(c.err)
		}
		return
	}
	w.mend(err)
	switch {
	case len(group) <= 1:
		for _, c := range group {
			c.answer(err)
		}
	case !apart:
		w.again(group)
	default:
		for i := range group {
			w.again(group[i : i+1])
		}
	}
}

// commitAgain runs calls in a new transaction, with savepoints.
func (w *writer) again(group []*call) {
	young := func(error) bool { return time.Since(group[0].since) < longest }
	if err := w.begin(young); err != nil {
		w.mend(err)
		for _, c := range group {
			c.answer(err)
		}
		return
	}
	w.serve(group, true)
}

// runAndCommit runs each call and commits the transaction. If isolated, and if there is more than one call, each has
// its own savepoint. If runAndCommit returns an error, nothing of any call was written, and the caller must reset the
// connection.
//
// Rows, feed pages and trend counts of all calls are written at the end, immediately before the commit, so that they
// belong to the same transaction as the changes that they describe. Wake-ups and new lanes become visible to others
// only after the commit.
func (w *writer) attempt(group []*call, apart bool) error {
	fresh, gathered, pages, tallies := map[where]int64{}, []sheaf{}, []page{}, []holdfast.Trend{}
	apart = apart && len(group) > 1
	for _, c := range group {
		t := &tx{session: w.session, now: w.cfg.Clock().UnixMicro(), known: w.lanes, sheaves: &gathered, ears: &w.ears}
		if apart {
			c.err = t.guarded(func() error { return c.whole(t) })
		} else {
			c.err = c.part(t)
		}
		if w.session.conn.AutocommitEnabled() { // SQLite has rolled back the transaction
			return c.err
		}
		if c.err != nil && (!apart || broken(c.err)) {
			return c.err
		}
		if c.news = (news{}); c.err == nil {
			c.news = t.news
			maps.Copy(fresh, t.fresh)
			pages, tallies = join(pages, t.pages), append(tallies, t.tallies.All(instant(t.now))...)
		} else if w.ears.unsure { // the savepoint's changes to the listeners were undone
			if err := w.ears.read(w.session); err != nil {
				return err
			}
		}
	}
	last := &tx{session: w.session, sheaves: &gathered}
	if err := last.flush(); err != nil {
		return err
	}
	if err := tally(last, tallies); err != nil {
		return err
	}
	if err := publish(last, pages); err != nil {
		return err
	}
	if _, err := w.session.exec("commit"); err != nil {
		return err
	}
	w.ears.unsure = false
	for at, id := range fresh {
		w.lanes.add(lane.Lane{ID: id, Queue: at.queue, Kind: at.kind, Owner: at.owner, Dependency: at.dependency})
	}
	return nil
}

// runIsolated runs a call in its savepoint and writes all rows that it adds to row batches, so that a constraint error
// is this call's.
func (c *call) whole(t *tx) error {
	if err := c.do(t); err != nil {
		return err
	}
	return t.flush()
}

// runShared runs a call without a savepoint. Rows that earlier calls have added to row batches are written first,
// unless the call is known not to read them.
func (c *call) part(t *tx) error {
	if !c.joins {
		if err := t.flush(); err != nil {
			return err
		}
	}
	return c.do(t)
}
