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
)

const (
	roomBreaker = "breaker"
	actorSystem = breaker.System

	circuitBeat = 250 * time.Millisecond // how often circuits with something to look at are looked at
	circuitRead = time.Second            // how old what is known of them may be
	circuitLazy = 5 * time.Second        // calls that were all good are kept no later than this
)

// circuit is a record of room "breaker": the circuit itself, and what was made of it.
type circuit struct {
	breaker.Circuit
	Flow   *breaker.Flow  `json:"flow,omitempty"`   // what its hold lets through; nil: not known
	Budget *holdfast.Rate `json:"budget,omitempty"` // of its retries, if they are limited
	Failed time.Time      `json:"failed,omitzero"`  // the last bad call
	Probed []holdfast.ID  `json:"probed,omitempty"` // jobs whose calls failed since it was last closed, the latest last
	By     []string       `json:"by,omitempty"`     // who kept it of late, and which time: an answer that was lost is found again by it
}

// A ledger is what the breakers of this process know of one dependency.
type ledger struct {
	version int       // of the record, 0 when there is none
	keptAt  time.Time // when it was kept, by the store's clock
	circuit circuit
	due     calls     // not in the record yet
	kept    time.Time // when this process last kept it, by its own clock

	doubt  *pending // a change whose answer was lost
	probe  probe
	probed *probed // not told to the circuit yet
}

// A pending change is one that may or may not have been kept.
type pending struct {
	next  circuit
	due   calls
	moved []breaker.Transition
}

// breakers keeps the circuits of all dependencies: it tells them what was called and what time it is, and lets the store hold
// what they do not let through. Compare-and-set decides which process moves a circuit.
func (e *Engine) breakers(context.Context) error {
	e.breaking.Lock()
	defer e.breaking.Unlock()
	all := []error{e.grantWishes()}
	if err := e.readCircuits(e.outdated.Swap(false)); err != nil {
		return errors.Join(append(all, err)...)
	}
	trickle := false
	for _, d := range e.deps.known() {
		if err := e.attend(d); err != nil {
			all = append(all, fmt.Errorf("the breaker of %s: %w", d.name, err))
		}
		if s := d.sight.Load(); s != nil && s.state == breaker.Recovering {
			trickle = true
		}
	}
	e.recovering.Store(trickle)
	return errors.Join(all...)
}

// readCircuits reads what other processes know, when that is due. With nothing of its own to look after a process still looks
// now and then: whoever opened a circuit may be gone.
func (e *Engine) readCircuits(now bool) error {
	age := circuitRead
	if len(e.deps.known()) == 0 {
		age = circuitLazy
	}
	if !now && time.Since(e.circuitsRead) < age && !e.circuitsRead.IsZero() {
		return nil
	}
	records, err := e.records(roomBreaker)
	if err != nil {
		return err
	}
	e.circuitsRead = time.Now()
	seen := make(map[string]bool, len(records))
	for i := range records {
		seen[records[i].Name] = true
		if d := e.worthKnowing(&records[i]); d != nil {
			d.ledger.read(&records[i])
		}
	}
	for _, d := range e.deps.known() {
		if !seen[d.name] {
			d.ledger.read(&holdfast.Record{})
		}
	}
	return e.forgetCircuits(records)
}

// worthKnowing is the dependency of a record, if somebody has to look after it here: it is known, or it is in trouble and whoever
// knew it may be gone.
func (e *Engine) worthKnowing(r *holdfast.Record) *dependency {
	if d := e.deps.find(r.Name); d != nil {
		return d
	}
	if c := readCircuit(r.Body); c.State == breaker.Closed && c.Budget == nil {
		return nil
	}
	return e.deps.add(r.Name, false)
}

// read takes over what the store holds, unless it is known.
func (l *ledger) read(r *holdfast.Record) {
	if r.Version == l.version && r.KeptAt.Equal(l.keptAt) {
		return
	}
	l.version, l.keptAt, l.circuit = r.Version, r.KeptAt, readCircuit(r.Body)
}

// readCircuit takes a body nobody can read for a closed circuit that has seen nothing: better than none.
func readCircuit(body json.RawMessage) (c circuit) {
	if len(body) == 0 || json.Unmarshal(body, &c) != nil {
		return circuit{}
	}
	return c
}

// forgetCircuits drops the records that were kept longest ago when there are too many. What is not closed stays.
func (e *Engine) forgetCircuits(records []holdfast.Record) error {
	over := len(records) - maxDependencies
	if over <= 0 {
		return nil
	}
	var c holdfast.Change
	for _, r := range sortedBy(records, func(r holdfast.Record) int64 { return r.KeptAt.UnixNano() }) {
		known := e.deps.find(r.Name)
		if was := readCircuit(r.Body); len(c.Records) < over && was.State == breaker.Closed && was.Budget == nil && (known == nil || !known.declared) {
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

// attend looks at one circuit, and keeps what has become of it if that matters. Who is too late reads and judges again:
// no call is lost and none is counted twice.
func (e *Engine) attend(d *dependency) error {
	l := &d.ledger
	l.due.then(d.takeCalls())
	l.takeProbed()
	defer e.probe(d)
	if l.doubt != nil {
		if err := e.resolve(d); err != nil {
			return err
		}
	}
	for range 8 {
		next, moved, change := e.judge(d)
		if change == nil {
			e.show(d, l.circuit)
			return nil
		}
		done := pending{next: next, due: l.due, moved: moved}
		switch err := e.keepChange(*change); {
		case err == nil:
			l.version, l.due, l.probed = l.version+1, calls{}, nil
			e.keptCircuit(d, done)
			return nil
		case !errors.Is(err, holdfast.ErrConflict):
			l.doubt, l.due, l.probed = &done, calls{}, nil
			return err
		}
		if err := e.readCircuits(true); err != nil {
			return err
		}
	}
	return nil // others are at it; the calls wait for the next round
}

// resolve finds out whether a change was kept whose answer was lost.
func (e *Engine) resolve(d *dependency) error {
	if err := e.readCircuits(true); err != nil {
		return err
	}
	l := &d.ledger
	doubt := l.doubt
	l.doubt = nil
	if mine := doubt.next.By; slices.Contains(l.circuit.By, mine[len(mine)-1]) {
		e.keptCircuit(d, pending{next: l.circuit, moved: doubt.moved})
		return nil
	}
	doubt.due.then(l.due)
	l.due = doubt.due
	return nil
}

// keptCircuit remembers what was kept, and tells about it.
func (e *Engine) keptCircuit(d *dependency, done pending) {
	l := &d.ledger
	l.circuit, l.kept = done.next, time.Now()
	e.show(d, l.circuit)
	for _, t := range done.moved {
		e.cfg.Log.Warn("a breaker moved", "event", "breaker", "dependency", d.name, "from", string(t.From), "to", string(t.To), "why", t.Why)
		if e.cfg.Moved != nil {
			e.tellLater("moved", func(ctx context.Context) { e.cfg.Moved(ctx, d.name, t) })
		}
	}
}

// judge says what becomes of a circuit now, and the change to keep it; nil when nothing has to be kept.
func (e *Engine) judge(d *dependency) (circuit, []breaker.Transition, *holdfast.Change) {
	l, now := &d.ledger, e.clock.now()
	how := e.howTo(d)
	next := l.circuit
	guarded := e.guard(d, &next, how, now)
	var moved, more []breaker.Transition
	if guarded.ended {
		next.Circuit, moved = how.Breaker.Probed(next.Circuit, guarded.ok, now)
	}
	next.Circuit, more = how.Breaker.Tick(next.Circuit, now)
	moved = append(moved, more...)
	if len(l.due.all) > 0 {
		next.Circuit, more = how.Breaker.Observe(next.Circuit, l.due.observation(next.Since, how.Breaker.SlowCall), now)
		moved = append(moved, more...)
	}
	if l.due.bad > 0 {
		next.Failed = now
	}
	next.Probed = probedBy(&next, l.due.all)
	change := holdfast.Change{}
	e.holdFlow(d, &next, how, &change)
	e.holdRetries(d, &next, how, &change)
	if !l.worth(len(moved) > 0 || len(change.Place)+len(change.Lift) > 0 || guarded.ended || guarded.taken) {
		return next, nil, nil
	}
	e.keepings++
	next.By = append(slices.Clone(next.By[max(0, len(next.By)-7):]), fmt.Sprintf("%s#%d", e.worker, e.keepings))
	for _, t := range moved {
		change.Events = append(change.Events, holdfast.Event{Subject: "breaker/" + d.name, Name: string(t.To), Actor: t.Actor, Reason: clip(t.Why, 1000)})
	}
	body, _ := json.Marshal(next) // numbers are sound and texts are clean: it cannot fail
	change.Records = []holdfast.Record{{Room: roomBreaker, Name: d.name, Version: l.version, Body: body}}
	return next, moved, &change
}

// worth reports whether there is something to keep now. What all went well can wait a little: it is written with the rest.
func (l *ledger) worth(moved bool) bool {
	if moved || l.due.since.IsZero() {
		return moved
	}
	age := time.Since(l.kept)
	if l.due.bad > 0 || l.circuit.State != breaker.Closed && l.circuit.State != "" {
		return age >= circuitBeat
	}
	return age >= circuitLazy && time.Since(l.due.since) >= circuitLazy
}

// holdFlow places the hold that lets through what the circuit lets through, or lifts it.
func (e *Engine) holdFlow(d *dependency, next *circuit, how howTo, c *holdfast.Change) {
	flow := how.Breaker.Flow(next.Circuit, e.clock.now())
	if next.Flow != nil && *next.Flow == flow || next.Flow == nil && flow.Free && d.ledger.version == 0 {
		return
	}
	next.Flow = &flow
	h := holdfast.Hold{Dependency: d.name, Source: holdfast.SourceBreaker, Actor: actorSystem}
	if flow.Free {
		c.Lift = append(c.Lift, h)
		return
	}
	h.AtMost, h.Expected, h.Reason = flow.AtMost, next.Until, clip(reasonOf(next), 1000)
	if flow.PerSecond > 0 {
		burst := max(1, flow.Burst)
		h.Rate = &holdfast.Rate{PerSecond: flow.PerSecond, Burst: burst, Level: 1}
	}
	c.Place = append(c.Place, h)
}

// reasonOf says for people why a circuit stands as it does.
func reasonOf(c *circuit) string {
	reason := "breaker " + string(c.State)
	if n := len(c.History); n > 0 && c.History[n-1].Why != "" {
		reason += ": " + c.History[n-1].Why
	}
	return reason
}

// show lets the gate see a circuit. When it has opened, what is held ahead of a slot goes back.
func (e *Engine) show(d *dependency, c circuit) {
	was := d.sight.Load()
	e.showProbes(d, &c)
	if c.State == breaker.Closed || c.State == breaker.ForcedClosed || c.State == "" {
		if was != nil {
			d.sight.Store(nil)
			nudge(e.wakes)
		}
		return
	}
	how := e.howTo(d)
	now := &sight{
		state: c.State, since: c.Since, until: c.Until, fast: how.Breaker.FailFast && !how.Breaker.Disabled, code: how.Breaker.Code,
		text: fmt.Sprintf("%s is not called: %s", d.name, reasonOf(&c)),
	}
	if was != nil && *was == *now {
		return
	}
	if was == nil || !was.open() {
		d.opened = time.Now()
	}
	d.sight.Store(now)
	if now.open() {
		e.withdraw(d)
		return
	}
	e.control.capped.Store(true)
	nudge(e.wakes)
}

// withdraw ends what is held ahead for a dependency that must not be called.
func (e *Engine) withdraw(d *dependency) {
	for _, a := range e.book.withdraw(d) {
		e.end(a, d.sight.Load().refusal())
	}
}
