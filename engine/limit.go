package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const (
	roomShare   = "share"
	actorPolicy = "policy"
	trickleBeat = 100 * time.Millisecond
)

// control is what this process does about policies.
type control struct {
	adopted *policy.Set // whose limits and shares have been set in the store; the policy duty's alone
	capped  atomic.Bool // some hold lets only so many through at once
	drips   atomic.Bool // some hold lets through a few at a time and more all the time
}

// policies follows the policy that is in force: its limits and windows become holds, its shares become records.
func (e *Engine) policies(ctx context.Context) error {
	if err := e.codes(); err != nil {
		return err
	}
	records, err := e.records(roomPolicy)
	if err != nil {
		return err
	}
	changed, bad := e.rulings.read(records)
	if changed {
		e.cfg.Log.Info("another policy is in force", "event", "policy", "version", e.rulings.version)
		nudge(e.called)
	}
	holds, err := e.holds()
	if err != nil {
		return errors.Join(bad, err)
	}
	e.seeHolds(holds)
	set := e.rulings.set.Load()
	err = e.placeLimits(set, holds)
	if err == nil && e.governed.CompareAndSwap(false, true) {
		close(e.ruled)
		nudge(e.wakes)
	}
	if err == nil && e.control.adopted != set {
		err = e.keepShares(set)
	}
	if err == nil {
		e.control.adopted = set
	}
	if changed {
		err = errors.Join(err, e.learn(ctx))
	}
	return errors.Join(bad, err)
}

// seeHolds notes what makes it worth while to claim more often than new jobs come.
func (e *Engine) seeHolds(holds []holdfast.Hold) {
	capped, drips := false, false
	for i := range holds {
		h := &holds[i]
		capped = capped || h.AtMost > 0
		drips = drips || h.Rate != nil && h.Rate.Burst < h.Rate.PerSecond*e.cfg.Poll.Seconds()
	}
	e.control.capped.Store(capped)
	e.control.drips.Store(drips)
}

// trickle claims often while some hold lets through a few at a time: what it lets through is not saved up for long.
func (e *Engine) trickle(context.Context) error {
	if e.control.drips.Load() || e.recovering.Load() {
		nudge(e.wakes)
	}
	return nil
}

// placeLimits places what the policy wants held and is not, or is held otherwise. What a policy does not say any more is lifted
// when the policy is adopted, and only then: processes that were given different policies must not undo each other's all day.
func (e *Engine) placeLimits(set *policy.Set, holds []holdfast.Hold) error {
	now := e.clock.now()
	wanted := append(set.Holds(), set.WindowHolds(now)...)
	present := make(map[holdKey]*holdfast.Hold, len(holds))
	for i := range holds {
		if h := &holds[i]; h.Until.IsZero() || h.Until.After(now) {
			present[keyOf(h)] = h
		}
	}
	var c holdfast.Change
	for i := range wanted {
		h := &wanted[i]
		if is := present[keyOf(h)]; is == nil || !sameHold(is, h, now) {
			c.Place = append(c.Place, *h)
		}
		delete(present, keyOf(h))
	}
	if e.control.adopted != set && !e.saysNothing(set) {
		for key, h := range present {
			if h.Actor == actorPolicy && (key.source == holdfast.SourceLimit || key.source == holdfast.SourceWindow) {
				c.Lift = append(c.Lift, *h)
			}
		}
	}
	if len(c.Place)+len(c.Lift) == 0 {
		return nil
	}
	err := e.keepChange(c)
	if err == nil {
		nudge(e.wakes)
	}
	return err
}

// saysNothing reports whether this process was never given a policy, and none was ever applied. It leaves alone what others were told.
func (e *Engine) saysNothing(set *policy.Set) bool {
	return set == e.rulings.own && e.cfg.Policies == nil && e.control.adopted == nil && e.rulings.version == 0
}

type holdKey struct{ scope, name, source string }

func keyOf(h *holdfast.Hold) holdKey {
	scope, name := h.On()
	return holdKey{scope, name, h.Source}
}

// sameHold reports whether a hold is in place as it is wanted.
func sameHold(is, want *holdfast.Hold, now time.Time) bool {
	if is.AtMost != want.AtMost || is.Retries != want.Retries || (is.Rate == nil) != (want.Rate == nil) {
		return false
	}
	if is.Rate != nil && (is.Rate.PerSecond != want.Rate.PerSecond || is.Rate.Burst != want.Rate.Burst) {
		return false
	}
	if want.For == 0 {
		return is.Until.IsZero()
	}
	off := is.Until.Sub(now.Add(want.For))
	return !is.Until.IsZero() && off > -2*time.Second && off < 2*time.Second
}

// A weight is the body of a record of room "share".
type weight struct {
	Weight float64 `json:"weight"`
	Actor  string  `json:"actor,omitempty"`
}

// keepShares writes the weights of owners that the policy gives, and forgets those that a policy gave and this one does not.
func (e *Engine) keepShares(set *policy.Set) error {
	if e.saysNothing(set) {
		return nil
	}
	records, err := e.records(roomShare)
	if err != nil {
		return err
	}
	shares := set.Shares()
	var c holdfast.Change
	for _, r := range records {
		var was weight
		_ = json.Unmarshal(r.Body, &was)
		want, said := shares[r.Name]
		delete(shares, r.Name)
		switch {
		case said && was.Weight != want:
			r.Body, _ = json.Marshal(weight{want, actorPolicy})
		case !said && was.Actor == actorPolicy:
			r.Body = nil
		default:
			continue
		}
		c.Records = append(c.Records, r)
	}
	for _, owner := range sortedKeys(shares) {
		body, _ := json.Marshal(weight{shares[owner], actorPolicy})
		c.Records = append(c.Records, holdfast.Record{Room: roomShare, Name: owner, Body: body})
	}
	if len(c.Records) == 0 {
		return nil
	}
	if err := e.keepChange(c); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err // a conflict: another process was faster, with the same policy
	}
	return nil
}
