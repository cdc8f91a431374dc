package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespaceBreaker = "breaker"
	actorSystem      = breaker.System

	breakerInterval     = 250 * time.Millisecond // how often breakers with new calls are updated
	breakerMaxAge       = time.Second            // how old the breaker records known here may be
	breakerIdleInterval = 5 * time.Second        // after at most this time successful calls are saved, too
)

// breakerRecord is the body of a record of namespace "breaker": the state of the breaker, and what the engines made of it. It is shared by all processes and
// changed by compare-and-set.
type breakerRecord struct {
	breaker.Snapshot
	Flow   *breaker.Flow `json:"flow,omitempty"`   // what the hold of the breaker lets through; nil: not known
	Budget *store.Rate   `json:"budget,omitempty"` // the limit of retries, if they are limited
	Failed time.Time     `json:"failed,omitzero"`  // the time of the last failed call
	Probed []holdfast.ID `json:"probed,omitempty"` // the jobs whose calls have failed since the breaker was last closed, latest last
	By     []string      `json:"by,omitempty"`     // the last writers, each with a number unique to the write: a process finds out by it whether a write without an answer was applied
}

// A localBreaker is what this process knows of the breaker of one dependency. It is guarded by breakers.updating.
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

// breakers is the controller of the breakers of all dependencies that this process knows. Attempts do not wait for it: they ask the breakerGate, which
// reads what the controller last published.
type breakers struct {
	*core
	policies  *policies
	deps      *dependencies
	gate      *breakerGate
	holds     *handlerHolds
	prober    *prober
	announcer *announcer
	leases    *leaseTable
	outcomes  *outcomeQueue

	// updating has an element while the breakers are updated. It is not a mutex, because an update waits for the store, and the time of a synctest bubble
	// stands still while a goroutine waits for a mutex.
	updating chan struct{}
	readAt   time.Time // when the breaker records were last read
	writes   int       // how many breaker records this engine has written
}

// update updates the breakers of all dependencies. It passes each the calls that were made and the time, and places holds in the store for jobs that the
// breaker does not let through. Every process does this; compare-and-set decides which one changes the state of a breaker, so each change is made,
// logged and announced once.
func (b *breakers) update(context.Context) error {
	b.updating <- struct{}{}
	defer func() { <-b.updating }()
	all := []error{b.holds.place()}
	if err := b.read(b.gate.stale.Swap(false)); err != nil {
		return errors.Join(append(all, err)...)
	}
	recovering := false
	for _, d := range b.deps.known() {
		if err := b.updateOne(d); err != nil {
			all = append(all, fmt.Errorf("breaker of %s: %w", d.name, err))
		}
		if s := d.view.Load(); s != nil && s.state == breaker.Recovering {
			recovering = true
		}
	}
	b.limited.recovering.Store(recovering)
	return errors.Join(all...)
}

// updateNow updates the breakers now, instead of at the next interval.
func (b *breakers) updateNow() {
	if err := callSafely(b.storeCtx, b.update); err != nil {
		b.logRetry("breakers", err)
	}
}

// read reads the breaker records if those known here are too old, or if now is true. A process without dependencies of its own reads them too, less
// often: the process that opened a breaker may be gone, and some process must let it recover.
func (b *breakers) read(now bool) error {
	age := breakerMaxAge
	if len(b.deps.known()) == 0 {
		age = breakerIdleInterval
	}
	if !now && time.Since(b.readAt) < age && !b.readAt.IsZero() {
		return nil
	}
	records, err := b.records(namespaceBreaker)
	if err != nil {
		return err
	}
	b.readAt = time.Now()
	seen := make(map[string]bool, len(records))
	for i := range records {
		seen[records[i].Name] = true
		if d := b.tracked(&records[i]); d != nil {
			d.breaker.read(&records[i])
		}
	}
	for _, d := range b.deps.known() {
		if !seen[d.name] {
			d.breaker.read(&store.Record{})
		}
	}
	return b.deleteOld(records)
}

// tracked returns the dependency of a record if this process must update its breaker: because it knows the dependency, or because the breaker is not
// closed or limits retries, and the process that knew the dependency may be gone. Otherwise it returns nil.
func (b *breakers) tracked(r *store.Record) *dependency {
	if d := b.deps.find(r.Name); d != nil {
		return d
	}
	if c := decodeBreaker(r.Body); c.State == breaker.Closed && c.Budget == nil {
		return nil
	}
	return b.deps.add(r.Name, false)
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

// deleteOld deletes the records that were written longest ago if there are too many. Breakers that are not closed, that limit retries, or that this
// process declares are kept.
func (b *breakers) deleteOld(records []store.Record) error {
	over := len(records) - maxDependencies
	if over <= 0 {
		return nil
	}
	var c store.Change
	for _, r := range sortedBy(records, func(r store.Record) int64 { return r.KeptAt.UnixNano() }) {
		known := b.deps.find(r.Name)
		if was := decodeBreaker(r.Body); len(c.Records) < over && was.State == breaker.Closed && was.Budget == nil && (known == nil || !known.declared) {
			r.Body = nil
			c.Records = append(c.Records, r)
		}
	}
	if len(c.Records) == 0 {
		return nil
	}
	if err := b.keepChange(c); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err
	}
	return nil
}

// updateOne updates one breaker with the calls since the last update, and saves it if necessary. On a version conflict it re-reads the record and
// computes the update again from there. No call is lost and none is counted twice:
//
//   - Calls stay in l.unsaved until the store has confirmed the record that includes them.
//   - If the store call fails otherwise, it may have been applied. The change is kept as l.unconfirmed, and the next update first reads the record and looks
//     for this write in its By list; see resolveUnconfirmed.
//
// After 8 conflicts the calls wait for the next run.
func (b *breakers) updateOne(d *dependency) error {
	l := &d.breaker
	l.unsaved.addAll(d.takeCalls())
	l.takeProbed()
	defer b.prober.start(d)
	if l.unconfirmed != nil {
		if err := b.resolveUnconfirmed(d); err != nil {
			return err
		}
	}
	for range 8 {
		next, moved, change := b.next(d)
		if change == nil {
			b.publish(d, l.record)
			return nil
		}
		done := breakerChange{next: next, unsaved: l.unsaved, moved: moved}
		switch err := b.keepChange(*change); {
		case err == nil:
			l.version, l.unsaved, l.probeResult = l.version+1, calls{}, nil
			b.saved(d, done)
			return nil
		case !errors.Is(err, holdfast.ErrConflict):
			l.unconfirmed, l.unsaved, l.probeResult = &done, calls{}, nil
			return err
		}
		if err := b.read(true); err != nil {
			return err
		}
	}
	return nil
}

// resolveUnconfirmed finds out whether the store applied a change whose call failed. If it did, the change is treated as saved. If not, its calls are put
// before the newer unsaved ones, to be saved with them.
func (b *breakers) resolveUnconfirmed(d *dependency) error {
	if err := b.read(true); err != nil {
		return err
	}
	l := &d.breaker
	change := l.unconfirmed
	l.unconfirmed = nil
	if writes := change.next.By; slices.Contains(l.record.By, writes[len(writes)-1]) {
		b.saved(d, breakerChange{next: l.record, moved: change.moved})
		return nil
	}
	change.unsaved.addAll(l.unsaved)
	l.unsaved = change.unsaved
	return nil
}

// saved takes over a saved record, logs its state changes and calls Config.OnBreakerChange.
func (b *breakers) saved(d *dependency, done breakerChange) {
	l := &d.breaker
	l.record, l.savedAt = done.next, time.Now()
	b.publish(d, l.record)
	for _, t := range done.moved {
		b.cfg.Log.Warn("breaker changed state", "event", "breaker", "dependency", d.name, "from", string(t.From), "to", string(t.To), "why", t.Why)
		if b.cfg.OnBreakerChange != nil {
			b.announcer.queue("moved", func(ctx context.Context) { b.cfg.OnBreakerChange(ctx, d.name, t) })
		}
	}
}

// next computes the record after the unsaved calls, a probe result and the time that has passed, and the change that saves it together with its
// holds and events. The change is nil if nothing needs to be saved now. It changes no state but writes.
func (b *breakers) next(d *dependency) (breakerRecord, []breaker.Transition, *store.Change) {
	l, now := &d.breaker, b.clock.now()
	cfg := b.policies.dependencyConfig(d)
	next := l.record
	lease := b.prober.lease(d, &next, cfg, now)
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
	b.holdFlow(d, &next, cfg, &change)
	b.holdRetries(d, &next, cfg, &change)
	if !l.needsSave(len(moved) > 0 || len(change.Place)+len(change.Lift) > 0 || lease.ended || lease.acquired) {
		return next, nil, nil
	}
	b.writes++
	next.By = append(slices.Clone(next.By[max(0, len(next.By)-7):]), fmt.Sprintf("%s#%d", b.worker, b.writes))
	for _, t := range moved {
		change.Events = append(change.Events, store.Event{Subject: "breaker/" + d.name, Name: string(t.To), Actor: t.Actor, Reason: clip(t.Why, 1000)})
	}
	body, _ := json.Marshal(next) // this cannot fail: all numbers are finite
	change.Records = []store.Record{{Namespace: namespaceBreaker, Name: d.name, Version: l.version, Body: body}}
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
func (b *breakers) holdFlow(d *dependency, next *breakerRecord, cfg dependencyConfig, c *store.Change) {
	flow := cfg.Breaker.Flow(next.Snapshot, b.clock.now())
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

// publish makes a breaker visible to checkStart. If it has just opened, the jobs of the dependency that wait for a slot are released.
func (b *breakers) publish(d *dependency, c breakerRecord) {
	was := d.view.Load()
	b.publishProbes(d, &c)
	if c.State == breaker.Closed || c.State == breaker.ForcedClosed || c.State == "" {
		if was != nil {
			d.view.Store(nil)
			signal(b.signals.claim)
		}
		return
	}
	cfg := b.policies.dependencyConfig(d)
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
		b.withdraw(d)
		return
	}
	b.limited.hasCap.Store(true)
	signal(b.signals.claim)
}

// publishProbes makes visible to checkStart which jobs have probed and, for a closed breaker, whether the last call that other processes made has failed.
func (b *breakers) publishProbes(d *dependency, c *breakerRecord) {
	if !isClosed(c) {
		cfg := b.policies.dependencyConfig(d).Breaker.WithDefaults()
		d.probeOrder.Store(&probeOrder{probed: c.Probed, turn: min(probeTurn, cfg.OpenFor/30), perTurn: cfg.Probes, maxWait: cfg.OpenMax / 2})
		return
	}
	d.probeOrder.Store(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(c.History) > 0 {
		d.closed = c.Since
	}
	if ago := b.clock.now().Sub(c.Failed); strings.HasSuffix(strings.ToLower(c.Recent), "x") && ago < lastAttemptWait {
		if at := time.Now().Add(-ago); at.After(d.lastBad) && len(d.calls.all) == 0 {
			d.lastBad = at
		}
	}
}

// withdraw refuses the attempts that wait for a slot and would call a dependency whose breaker is open.
func (b *breakers) withdraw(d *dependency) {
	for _, a := range b.leases.withdraw(d) {
		b.outcomes.add(a, d.view.Load().refusal())
	}
}
