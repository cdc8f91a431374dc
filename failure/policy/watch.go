package policy

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
)

// maxCalls limits the calls in a simulation.
const maxCalls = 20_000

// A watch is a breaker in a simulation, with the calls of other jobs.
type watch struct {
	config  breaker.Config
	scene   Scenario
	circuit breaker.Snapshot
	every   time.Duration // interval between calls of other jobs; 0: there are none
	next    time.Duration // the next call of another job
	seen    int
	probed  int // how often an open breaker was probed
}

// lost reports whether there were more than maxCalls calls.
func (w *watch) lost() bool { return w != nil && w.seen > maxCalls }

// epoch is the start of simulated time. Any time would do.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newWatch(c breaker.Config, scene Scenario) *watch {
	w := &watch{config: c, scene: scene}
	if scene.Traffic > 0 {
		w.every = max(time.Microsecond, time.Duration(float64(time.Second)/scene.Traffic))
		// Calls long before the outage have left the window by then: as many as a window can hold are enough.
		w.next = max(0, scene.Outage.From-1000*w.every)
	}
	return w
}

// pass simulates the calls of other jobs until a time.
func (w *watch) pass(until time.Duration) {
	for w.every > 0 && w.next <= until && !w.calm() {
		if w.seen++; w.seen > maxCalls {
			return
		}
		at := w.next
		w.tick(at)
		if w.circuit.State.Refuses() {
			w.next = max(at+w.every, w.reopens())
			continue
		}
		w.observe(w.scene.Outage.at(at), at)
		gap := w.every
		if rate := w.config.Rate(w.circuit, epoch.Add(at)); rate > 0 {
			gap = max(gap, time.Duration(float64(time.Second)/rate))
		}
		w.next = at + gap
	}
	w.tick(until)
}

// calm reports whether nothing more can change: the outage is over and the breaker is closed.
func (w *watch) calm() bool {
	return w.next >= w.scene.Outage.To && (w.circuit.State == breaker.Closed || w.circuit.State == "")
}

func (w *watch) tick(at time.Duration) {
	var moved []breaker.Transition
	w.circuit, moved = w.config.Tick(w.circuit, epoch.Add(at))
	for _, t := range moved {
		if t.To == breaker.HalfOpen {
			w.probed++
		}
	}
}

// reopens returns when an open breaker lets a probe through.
func (w *watch) reopens() time.Duration { return w.circuit.Until.Sub(epoch) }

func (w *watch) observe(bad bool, at time.Duration) {
	o := breaker.Observation{Calls: 1, Sequence: []bool{bad}, Over: max(w.every, time.Millisecond)}
	if bad {
		o.Failures, o.Code, o.Message = 1, w.scene.Code, "simulated"
	}
	if w.config.SlowCall > 0 && w.scene.Take > w.config.SlowCall {
		o.Slow = 1
	}
	w.circuit, _ = w.config.Observe(w.circuit, o, epoch.Add(at))
}

// sees records the result of the job's own attempt.
func (w *watch) sees(bad bool, at time.Duration) {
	if w == nil {
		return
	}
	w.pass(at)
	if !w.circuit.State.Refuses() {
		w.observe(bad, at)
	}
}

func (w *watch) failsFast() bool { return w.config.FailFast && w.circuit.State.Refuses() }

// held says why the breaker holds the job, and until when to wait before asking again.
func (w *watch) held(now time.Duration) (until time.Duration, why string) {
	w.pass(now)
	switch {
	case w.config.FailFast:
	case w.circuit.State.Refuses():
		until = w.reopens()
		return max(until, now+time.Millisecond), fmt.Sprintf("breaker open, probed %d times so far", w.probed)
	case w.circuit.State == breaker.HalfOpen && w.every > 0:
		return max(w.next, now+time.Millisecond), fmt.Sprintf("breaker open, until probe %d succeeds", w.probed)
	}
	return 0, ""
}
