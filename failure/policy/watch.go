package policy

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
)

// mostCalls bounds what a simulation looks at.
const mostCalls = 20_000

// A watch is a circuit breaker in a simulation, and the others whose calls it sees.
type watch struct {
	config  breaker.Config
	scene   Scenario
	circuit breaker.Circuit
	every   time.Duration // between two calls of others; 0: there are none
	next    time.Duration // the next call of others
	seen    int
	probed  int // times that an open circuit was probed
}

// lost reports that there were more calls than a simulation looks at.
func (w *watch) lost() bool { return w != nil && w.seen > mostCalls }

// epoch is when simulated time begins. Which moment that is makes no difference.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newWatch(c breaker.Config, scene Scenario) *watch {
	w := &watch{config: c, scene: scene}
	if scene.Traffic > 0 {
		w.every = max(time.Microsecond, time.Duration(float64(time.Second)/scene.Traffic))
		// What was long before the outage is forgotten by then: as many calls as a window can hold are enough.
		w.next = max(0, scene.Outage.From-1000*w.every)
	}
	return w
}

// pass lets others call until a moment.
func (w *watch) pass(until time.Duration) {
	for w.every > 0 && w.next <= until && !w.calm() {
		if w.seen++; w.seen > mostCalls {
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

// calm reports that nothing will happen any more: the outage is over and everything passes.
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

// reopens is when an open circuit lets a probe through.
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

// sees takes in what became of the job's own attempt.
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

// held says why the breaker keeps the job back, and until when to wait before asking again.
func (w *watch) held(now time.Duration) (until time.Duration, why string) {
	w.pass(now)
	switch {
	case w.config.FailFast:
	case w.circuit.State.Refuses():
		until = w.reopens()
		return max(until, now+time.Millisecond), fmt.Sprintf("breaker open, probed %d times so far", w.probed)
	case w.circuit.State == breaker.HalfOpen && w.every > 0:
		return max(w.next, now+time.Millisecond), fmt.Sprintf("breaker open, until probe %d went well", w.probed)
	}
	return 0, ""
}
