package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespaceShare = "share"
	actorPolicy    = "policy"
)

// follow follows the policy in the store: its limits and time windows become holds, its shares become records. It also publishes and reads failure codes.
func (p *policies) follow(ctx context.Context) error {
	if err := p.syncCodes(); err != nil {
		return err
	}
	records, err := p.records(namespacePolicy)
	if err != nil {
		return err
	}
	changed, bad := p.active.read(records)
	if changed {
		p.cfg.Log.Info("policy changed", "event", "policy", "version", p.active.version)
		signal(p.signals.breakers)
	}
	holds, err := p.holds()
	if err != nil {
		return errors.Join(bad, err)
	}
	p.noteHolds(holds)
	set := p.active.set.Load()
	err = p.placeLimits(set, holds)
	if err == nil && p.placed.CompareAndSwap(false, true) {
		close(p.known)
		signal(p.signals.claim)
	}
	if err == nil && p.adopted != set {
		err = p.keepShares(set)
	}
	if err == nil {
		p.adopted = set
	}
	if changed {
		err = errors.Join(err, p.learn(ctx))
	}
	return errors.Join(bad, err)
}

// noteHolds records which holds let further jobs start without a wake-up, so that the engine claims more often.
func (p *policies) noteHolds(holds []store.Hold) {
	hasCap, hasSmallBurst := false, false
	for i := range holds {
		h := &holds[i]
		hasCap = hasCap || h.AtMost > 0
		hasSmallBurst = hasSmallBurst || h.Rate != nil && h.Rate.Burst < h.Rate.PerSecond*p.cfg.Poll.Seconds()
	}
	p.limited.hasCap.Store(hasCap)
	p.limited.hasSmallBurst.Store(hasSmallBurst)
}

// placeLimits places the holds of the policy that are missing in the store or differ. Holds that the policy no longer contains are lifted when it is adopted, and
// only then: otherwise processes that were started with different policies would keep undoing each other's holds.
func (p *policies) placeLimits(set *policy.Set, holds []store.Hold) error {
	now := p.clock.now()
	wanted := append(set.Holds(), set.WindowHolds(now)...)
	present := make(map[holdKey]*store.Hold, len(holds))
	for i := range holds {
		if h := &holds[i]; h.Until.IsZero() || h.Until.After(now) {
			present[keyOf(h)] = h
		}
	}
	var c store.Change
	for i := range wanted {
		h := &wanted[i]
		if is := present[keyOf(h)]; is == nil || !sameHold(is, h, now) {
			c.Place = append(c.Place, *h)
		}
		delete(present, keyOf(h))
	}
	if p.adopted != set && !p.hasNoPolicy(set) {
		for key, h := range present {
			if h.Actor == actorPolicy && (key.source == store.SourceLimit || key.source == store.SourceWindow) {
				c.Lift = append(c.Lift, *h)
			}
		}
	}
	if len(c.Place)+len(c.Lift) == 0 {
		return nil
	}
	err := p.keepChange(c)
	if err == nil {
		signal(p.signals.claim)
	}
	return err
}

// hasNoPolicy reports whether this process was started without a policy and none was ever applied. Then it leaves the holds and shares of other processes alone.
func (p *policies) hasNoPolicy(set *policy.Set) bool {
	return set == p.active.configured && p.cfg.Policies == nil && p.adopted == nil && p.active.version == 0
}

type holdKey struct{ scope, name, source string }

func keyOf(h *store.Hold) holdKey {
	scope, name := h.Scope()
	return holdKey{scope, name, h.Source}
}

// sameHold reports whether the hold in the store is equal to the wanted one. Two ends that differ by less than 2 s count as equal.
func sameHold(is, want *store.Hold, now time.Time) bool {
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

// A weight is the body of a record of namespace "share".
type weight struct {
	Weight float64 `json:"weight"`
	Actor  string  `json:"actor,omitempty"`
}

// keepShares writes the weights of owners in the policy, and deletes those that an earlier policy gave and this one does not.
func (p *policies) keepShares(set *policy.Set) error {
	if p.hasNoPolicy(set) {
		return nil
	}
	records, err := p.records(namespaceShare)
	if err != nil {
		return err
	}
	shares := set.Shares()
	var c store.Change
	for _, r := range records {
		var was weight
		_ = json.Unmarshal(r.Body, &was)
		want, listed := shares[r.Name]
		delete(shares, r.Name)
		switch {
		case listed && was.Weight != want:
			r.Body, _ = json.Marshal(weight{want, actorPolicy})
		case !listed && was.Actor == actorPolicy:
			r.Body = nil
		default:
			continue
		}
		c.Records = append(c.Records, r)
	}
	for _, owner := range sortedKeys(shares) {
		body, _ := json.Marshal(weight{shares[owner], actorPolicy})
		c.Records = append(c.Records, store.Record{Namespace: namespaceShare, Name: owner, Body: body})
	}
	if len(c.Records) == 0 {
		return nil
	}
	if err := p.keepChange(c); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err // on a conflict another process has written the same policy
	}
	return nil
}
