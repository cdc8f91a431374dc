package sqlite

import (
	"maps"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// serve runs a group of calls in the transaction that is open, and answers them. At first nothing stands between them, for
// they hardly ever fail. If one does, they are run again, each in a savepoint of its own; and if even that is lost as a
// whole, each is tried alone, so that the one that lost it cannot hurt the others.
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

// again serves calls in a new transaction.
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

// attempt runs each call, in a savepoint of its own when they are to be kept apart, and commits. An error means that nothing
// of any of them was written.
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
		if w.session.conn.AutocommitEnabled() { // SQLite rolled everything back by itself
			return c.err
		}
		if c.err != nil && (!apart || broken(c.err)) {
			return c.err
		}
		if c.news = (news{}); c.err == nil {
			c.news = t.news
			maps.Copy(fresh, t.fresh)
			pages, tallies = join(pages, t.pages), append(tallies, t.tallies.All(instant(t.now))...)
		} else if w.ears.unsure { // what it changed was undone
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

// whole runs a call and writes all that it gathers.
func (c *call) whole(t *tx) error {
	if err := c.do(t); err != nil {
		return err
	}
	return t.flush()
}

// part runs a call beside others. What calls gather waits until one comes that might want to read it.
func (c *call) part(t *tx) error {
	if !c.joins {
		if err := t.flush(); err != nil {
			return err
		}
	}
	return c.do(t)
}
