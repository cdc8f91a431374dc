package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Pause places a hold.
func (s *Store) Pause(ctx context.Context, h store.Hold) error {
	if err := rule.Hold(&h); err != nil {
		return err
	}
	return s.writer.write(ctx, func(t *tx) error {
		if err := t.placeHold(h); err != nil {
			return err
		}
		name := "paused"
		if !h.Closed() {
			name = "limited"
		}
		return t.addSubjectEvent(holdSubject(h), name, h.Actor, h.Reason)
	})
}

// Resume lifts a hold.
func (s *Store) Resume(ctx context.Context, h store.Hold) error {
	if err := rule.Hold(&h); err != nil {
		return err
	}
	return s.writer.write(ctx, func(t *tx) error {
		there, err := t.liftHold(h)
		if err != nil || !there {
			return err
		}
		return t.addSubjectEvent(holdSubject(h), "resumed", h.Actor, h.Reason)
	})
}

func holdSubject(h store.Hold) string {
	scope, name := h.Scope()
	return "hold/" + scope + "/" + name
}

// placeHold writes a hold, and replaces the hold of the same source on the same thing. A rate limit that was in force
// keeps its level, up to the new burst. All waiters are woken, because the new hold may let more through than the old
// one.
func (t *tx) placeHold(h store.Hold) error {
	scope, name := h.Scope()
	var until, expected, perSecond, burst, level, levelAt any
	if h.For > 0 {
		until = t.at(h.For)
	}
	if !h.Expected.IsZero() {
		expected = h.Expected
	}
	if h.Rate != nil {
		before, there, err := t.findHold(h)
		if err != nil {
			return err
		}
		now := h.Rate.Level
		if there && before.rated && before.inForce(t.now) {
			now = min(h.Rate.Burst, before.levelNow(t.now))
		}
		perSecond, burst, level, levelAt = h.Rate.PerSecond, h.Rate.Burst, now, t.now
	}
	t.wakeup.allQueues = true
	_, err := t.exec("hold_place", scope, name, h.Source, h.Retries, h.AtMost, perSecond, burst, level, levelAt, t.now, until, expected, h.Actor, nullIfEmpty(clean(h.Reason)))
	return err
}

// liftHold removes a hold, and reports whether it was in force.
func (t *tx) liftHold(h store.Hold) (there bool, err error) {
	scope, name := h.Scope()
	before, there, err := t.findHold(h)
	if err != nil || !there {
		return false, err
	}
	t.wakeup.allQueues = true
	_, err = t.exec("hold_lift", scope, name, h.Source)
	return before.inForce(t.now), err
}

// deposit adds tokens to a rate limit, up to its burst. Claims spend tokens with a negative deposit.
func (t *tx) deposit(d store.Deposit) error {
	bucket, there, err := t.findHold(d.Hold)
	if err != nil || !there || !bucket.rated {
		return err
	}
	scope, name := d.Hold.Scope()
	level := min(bucket.burst, max(0, bucket.levelNow(t.now)+d.Tokens))
	t.wakeup.allQueues = t.wakeup.allQueues || d.Tokens > 0
	_, err = t.exec("hold_set_level", scope, name, d.Hold.Source, level, t.now)
	return err
}

// A holdRow is a hold as its row describes it. Two equal rows let the same jobs through.
type holdRow struct {
	scope, name, source string
	retries             bool
	atMost              int

	rated                   bool
	perSecond, burst, level float64
	levelAt                 int64

	until int64 // 0: until it is lifted
}

// findHold reads the hold of the same source on the same thing.
func (t *tx) findHold(h store.Hold) (before holdRow, there bool, err error) {
	scope, name := h.Scope()
	err = t.rows("hold_find", []any{scope, name, h.Source}, func(st *sqlite.Stmt) error {
		before, there = holdRow{perSecond: st.ColumnFloat(0), burst: st.ColumnFloat(1), level: st.ColumnFloat(2), levelAt: st.ColumnInt64(3), until: st.ColumnInt64(4),
			rated: st.ColumnInt(5) != 0}, true
		return nil
	})
	return before, there, err
}

func (h *holdRow) inForce(now int64) bool { return h.until == 0 || h.until > now }

func (h *holdRow) levelNow(now int64) float64 {
	return lane.Level(store.Rate{PerSecond: h.perSecond, Burst: h.burst, Level: h.level}, time.Duration(now-h.levelAt)*time.Microsecond)
}

// toHold returns the row as a store.Hold, with the level of its rate limit at this moment.
func (h *holdRow) toHold(now int64) store.Hold {
	out := store.Hold{}.WithScope(h.scope, h.name)
	out.Source, out.Retries, out.AtMost = h.source, h.retries, h.atMost
	if h.rated {
		out.Rate = &store.Rate{PerSecond: h.perSecond, Burst: h.burst, Level: h.levelNow(now)}
	}
	return out
}
