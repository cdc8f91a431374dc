package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

const (
	roomBreaker = "breaker"
	actorSystem = breaker.System

	breakerInterval     = 250 * time.Millisecond // how often breakers with new calls are updated
	breakerMaxAge       = time.Second            // how old the breaker records known here may be
	breakerIdleInterval = 5 * time.Second        // after at most this time successful calls are saved, too
)

// breakerRecord is the body of a record of room "breaker": the state of the breaker, and what the engines made of it. It is shared by all processes and
// changed by compare-and-set.
type breakerRecord struct {
	breaker.Snapshot
	Flow   *breaker.Flow `json:"flow,omitempty"`   // what the hold of the breaker lets through; nil: not known
	Budget *store.Rate   `json:"budget,omitempty"` // the limit of retries, if they are limited
	Failed time.Time     `json:"failed,omitzero"`  // the time of the last failed call
	Probed []holdfast.ID `json:"probed,omitempty"` // the jobs whose calls have failed since the breaker was last closed, latest last
	By     []string      `json:"by,omitempty"`     // the last writers, each with a number unique to the write: a process finds out by it whether a write without an answer was applied
}

// A localBreaker is what this process knows of the breaker of one dependency. It is guarded by Engine.breakersMu.
type localBreaker struct {
	version int       // of the record; 0 if there is none
	keptAt  time.Time // when the record was written, by the store's clock
	record  breakerRecord
	unsaved calls     // calls that are not in the record yet
	savedAt time.Time // when this process last wrote the record, by its own clock

	unconfirmed *breakerChange // a change that the store may or may not have applied, because the call failed
	probe       healthProbe
	probeResult *probeResult // not passed to the breaker yet
}

// A breakerChange is a change of a record on its way to the store.
type breakerChange struct {
	next    breakerRecord
	unsaved calls
	moved   []breaker.Transition
}

// breakers updates the breakers of all dependencies. It passes each the calls that were made and the time, and places holds in the store for jobs that the
// breaker does not let through. Every process does this; compare-and-set decides which one changes the state of a breaker, so each change is made,
// logged and announced once.
func (e *Engine) breakers(context.Context) error {
	e.breakersMu.Lock()
	defer e.breakersMu.Unlock()
	all := []error{e.placeHandlerHolds()}
	if err := e.readBreakers(e.breakersStale.Swap(false)); err != nil {
		return errors.Join(append(all, err)...)
	}
	recovering := false
	for _, d := range e.deps.known() {
		if err := e.updateBreaker(d); err != nil {
			all = append(all, fmt.Errorf("breaker of %s: %w", d.name, err))
		}
		if s := d.view.Load(); s != nil && s.state == breaker.Recovering {
			recovering = true
		}
	}
	e.limited.recovering.Store(recovering)
	return errors.Join(all...)
}

// readBreakers reads the breaker records if those known here are too old, or if now is true. A process without dependencies of its own reads them too, less
// often: the process that opened a breaker may be gone, and some process must let it recover.
func (e *Engine) readBreakers(now bool) error {
	age := breakerMaxAge
	if len(e.deps.known()) == 0 {
		age = breakerIdleInterval
	}
	if !now && time.Since(e.breakersReadAt) < age && !e.breakersReadAt.IsZero() {
		return nil
	}
	records, err := e.records(roomBreaker)
	if err != nil {
		return err
	}
	e.breakersReadAt = time.Now()
	seen := make(map[string]bool, len(records))
	for i := range records {
		seen[records[i].Name] = true
		if d := e.trackedDependency(&records[i]); d != nil {
			d.breaker.read(&records[i])
		}
	}
	for _, d := range e.deps.known() {
		if !seen[d.name] {
			d.breaker.read(&store.Record{})
		}
	}
	return e.deleteOldBreakers(records)
}

// trackedDependency returns the dependency of a record if this process must update its breaker: because it knows the dependency, or because the breaker is not
// closed or limits retries, and the process that knew the dependency may be gone. Otherwise it returns nil.
func (e *Engine) trackedDependency(r *store.Record) *dependency {
	if d := e.deps.find(r.Name); d != nil {
		return d
	}
	if c := decodeBreaker(r.Body); c.State == breaker.Closed && c.Budget == nil {
		return nil
	}
	return e.deps.add(r.Name, false)
}

// read takes over the record unless it is known already.
func (l *localBreaker) read(r *store.Record) {
	if r.Version == l.version && r.KeptAt.Equal(l.keptAt) {
		return
	}
	l.version, l.keptAt, l.record = r.Version, r.KeptAt, decodeBreaker(r.Body)
}

// decodeBreaker decodes a record. A body that cannot be decoded counts as a closed breaker without calls, so that jobs are not held by it for ever.
func decodeBreaker(body json.RawMessage) (c breakerRecord) {
	if len(body) == 0 || json.Unmarshal(body, &c) != nil {
		return breakerRecord{}
	}
	return c
}

// deleteOldBreakers deletes the records that were written longest ago if there are too many. Breakers that are not closed, that limit retries, or that this
// process declares are kept.
func (e *Engine) deleteOldBreakers(records []store.Record) error {
	over := len(records) - maxDependencies
	if over <= 0 {
		return nil
	}
	var c store.Change
	for _, r := range sortedBy(records, func(r store.Record) int64 { return r.KeptAt.UnixNano() }) {
		known := e.deps.find(r.Name)
		if was := decodeBreaker(r.Body); len(c.Records) < over && was.State == breaker.Closed && was.Budget == nil && (known == nil || !known.declared) {
			r.Body = nil
			c.Records = append(c.Records, r)
		}
	}
	if len(c.Records) == 0 {
		return nil
	}
	if err := e.keepChange(c); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err
	}
	return nil
}

// updateBreaker updates one breaker with the calls since the last update, and saves it if necessary. On a version conflict it re-reads the record and
// computes the update again from there. No call is lost and none is counted twice:
//
//   - Calls stay in l.unsaved until the store has confirmed the record that includes them.
//   - If the store call fails otherwise, it may have been applied. The change is kept as l.unconfirmed, and the next update first reads the record and looks
//     for this write in its By list; see resolveUnconfirmed.
//
// After 8 conflicts the calls wait for the next run.
func (e *Engine) updateBreaker(d *dependency) error {
	l := &d.breaker
	l.unsaved.addAll(d.takeCalls())
	l.takeProbed()
	defer e.startProbe(d)
	if l.unconfirmed != nil {
		if err := e.resolveUnconfirmed(d); err != nil {
			return err
		}
	}
	for range 8 {
		next, moved, change := e.nextBreaker(d)
		if change == nil {
			e.publishBreaker(d, l.record)
			return nil
		}
		done := breakerChange{next: next, unsaved: l.unsaved, moved: moved}
		switch err := e.keepChange(*change); {
		case err == nil:
			l.version, l.unsaved, l.probeResult = l.version+1, calls{}, nil
			e.breakerSaved(d, done)
			return nil
		case !errors.Is(err, holdfast.ErrConflict):
			l.unconfirmed, l.unsaved, l.probeResult = &done, calls{}, nil
			return err
		}
		if err := e.readBreakers(true); err != nil {
			return err
		}
	}
	return nil
}

// resolveUnconfirmed finds out whether the store applied a change whose call failed. If it did, the change is treated as saved. If not, its calls are put
// before the newer unsaved ones, to be saved with them.
func (e *Engine) resolveUnconfirmed(d *dependency) error {
	if err := e.readBreakers(true); err != nil {
		return err
	}
	l := &d.breaker
	change := l.unconfirmed
	l.unconfirmed = nil
	if writes := change.next.By; slices.Contains(l.record.By, writes[len(writes)-1]) {
		e.breakerSaved(d, breakerChange{next: l.record, moved: change.moved})
		return nil
	}
	change.unsaved.addAll(l.unsaved)
	l.unsaved = change.unsaved
	return nil
}

// breakerSaved takes over a saved record, logs its state changes and calls Config.OnBreakerChange.
func (e *Engine) breakerSaved(d *dependency, done breakerChange) {
	l := &d.breaker
	l.record, l.savedAt = done.next, time.Now()
	e.publishBreaker(d, l.record)
	for _, t := range done.moved {
		e.cfg.Log.Warn("breaker changed state", "event", "breaker", "dependency", d.name, "from", string(t.From), "to", string(t.To), "why", t.Why)
		if e.cfg.OnBreakerChange != nil {
			e.announcer.queue("moved", func(ctx context.Context) { e.cfg.OnBreakerChange(ctx, d.name, t) })
		}
	}
}

// nextBreaker computes the record after the unsaved calls, a probe result and the time that has passed, and the change that saves it together with its
// holds and events. The change is nil if nothing needs to be saved now. It changes no state but breakerWrites.
func (e *Engine) nextBreaker(d *dependency) (breakerRecord, []breaker.Transition, *store.Change) {
	l, now := &d.breaker, e.clock.now()
	cfg := e.policies.dependencyConfig(d)
	next := l.record
	lease := e.leaseProbe(d, &next, cfg, now)
	var moved, more []breaker.Transition
	if lease.ended {
		next.Snapshot, moved = cfg.Breaker.Probed(next.Snapshot, lease.ok, now)
	}
	next.Snapshot, more = cfg.Breaker.Tick(next.Snapshot, now)
	moved = append(moved, more...)
	if len(l.unsaved.all) > 0 {
		next.Snapshot, more = cfg.Breaker.Observe(next.Snapshot, l.unsaved.observation(next.Since, cfg.Breaker.SlowCall), now)
		moved = append(moved, more...)
	}
	if l.unsaved.bad > 0 {
		next.Failed = now
	}
	next.Probed = probedBy(&next, l.unsaved.all)
	change := store.Change{}
	e.holdFlow(d, &next, cfg, &change)
	e.holdRetries(d, &next, cfg, &change)
	if !l.needsSave(len(moved) > 0 || len(change.Place)+len(change.Lift) > 0 || lease.ended || lease.acquired) {
		return next, nil, nil
	}
	e.breakerWrites++
	next.By = append(slices.Clone(next.By[max(0, len(next.By)-7):]), fmt.Sprintf("%s#%d", e.worker, e.breakerWrites))
	for _, t := range moved {
		change.Events = append(change.Events, store.Event{Subject: "breaker/" + d.name, Name: string(t.To), Actor: t.Actor, Reason: clip(t.Why, 1000)})
	}
	body, _ := json.Marshal(next) // this cannot fail: all numbers are finite
	change.Records = []store.Record{{Namespace: roomBreaker, Name: d.name, Version: l.version, Body: body}}
	return next, moved, &change
}

// needsSave reports whether the record must be saved now. A changed state is saved at once, failed calls and calls of a breaker that is not closed after
// breakerInterval, and successful calls of a closed breaker after breakerIdleInterval, so that healthy dependencies cost few writes.
func (l *localBreaker) needsSave(moved bool) bool {
	if moved || l.unsaved.since.IsZero() {
		return moved
	}
	age := time.Since(l.savedAt)
	if l.unsaved.bad > 0 || l.record.State != breaker.Closed && l.record.State != "" {
		return age >= breakerInterval
	}
	return age >= breakerIdleInterval && time.Since(l.unsaved.since) >= breakerIdleInterval
}

// holdFlow adds to the change the hold that admits what the breaker admits, or lifts it if the breaker admits everything.
func (e *Engine) holdFlow(d *dependency, next *breakerRecord, cfg dependencyConfig, c *store.Change) {
	flow := cfg.Breaker.Flow(next.Snapshot, e.clock.now())
	if next.Flow != nil && *next.Flow == flow || next.Flow == nil && flow.Free && d.breaker.version == 0 {
		return
	}
	next.Flow = &flow
	h := store.Hold{Dependency: d.name, Source: store.SourceBreaker, Actor: actorSystem}
	if flow.Free {
		c.Lift = append(c.Lift, h)
		return
	}
	h.AtMost, h.Expected, h.Reason = flow.AtMost, next.Until, clip(reasonOf(next), 1000)
	if flow.PerSecond > 0 {
		burst := max(1, flow.Burst)
		h.Rate = &store.Rate{PerSecond: flow.PerSecond, Burst: burst, Level: 1}
	}
	c.Place = append(c.Place, h)
}

// reasonOf returns, for people, the state of a breaker and why it is in it.
func reasonOf(c *breakerRecord) string {
	reason := "breaker " + string(c.State)
	if n := len(c.History); n > 0 && c.History[n-1].Why != "" {
		reason += ": " + c.History[n-1].Why
	}
	return reason
}

// publishBreaker makes a breaker visible to checkStart. If it has just opened, the jobs of the dependency that wait for a slot are released.
func (e *Engine) publishBreaker(d *dependency, c breakerRecord) {
	was := d.view.Load()
	e.publishProbes(d, &c)
	if c.State == breaker.Closed || c.State == breaker.ForcedClosed || c.State == "" {
		if was != nil {
			d.view.Store(nil)
			signal(e.signals.claim)
		}
		return
	}
	cfg := e.policies.dependencyConfig(d)
	now := &breakerView{
		state: c.State, since: c.Since, until: c.Until, fast: cfg.Breaker.FailFast && !cfg.Breaker.Disabled, code: cfg.Breaker.Code,
		text: fmt.Sprintf("%s is not called: %s", d.name, reasonOf(&c)),
	}
	if was != nil && *was == *now {
		return
	}
	if was == nil || !was.open() {
		d.opened = time.Now()
	}
	d.view.Store(now)
	if now.open() {
		e.withdraw(d)
		return
	}
	e.limited.hasCap.Store(true)
	signal(e.signals.claim)
}

// withdraw refuses the attempts that wait for a slot and would call a dependency whose breaker is open.
func (e *Engine) withdraw(d *dependency) {
	for _, a := range e.leases.withdraw(d) {
		e.outcomes.add(a, d.view.Load().refusal())
	}
}
