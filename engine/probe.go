package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
)

const (
	probeEvery   = 5 * time.Second
	probeTimeout = 10 * time.Second
)

// A probe is this process's part in watching over an open circuit with a health probe.
type probe struct {
	mu      sync.Mutex
	running bool
	last    time.Time // when the last one was started, by this process's clock
	result  *probed   // of one that has ended
}

// probed is the result of a health probe.
type probed struct {
	since time.Time // of the circuit it was made for
	ok    bool
}

// guarding is what a look at a circuit has to do with a health probe.
type guarding struct {
	taken bool // this process watches over it, from now or for longer
	ended bool
	ok    bool
}

// guard makes this process the one that probes, if nobody else is, and answers with the result of its last probe. The place is
// a lease: a process that is killed while it probes is replaced when its time is over.
func (e *Engine) guard(d *dependency, next *circuit, how howTo, now time.Time) (g guarding) {
	if how.Probe == nil || next.State != breaker.Open || how.Breaker.Disabled {
		return g
	}
	mine := next.Probing == e.worker && now.Before(next.ProbingUntil)
	if r := d.ledger.probed; mine && r != nil && r.since.Equal(next.Since) {
		g.ended, g.ok = true, r.ok
	}
	if !mine || next.ProbingUntil.Sub(now) < e.cfg.Lease/2 {
		next.Circuit, g.taken = how.Breaker.Guard(next.Circuit, e.worker, e.cfg.Lease, now)
	}
	return g
}

// probe starts a health probe if this process is the one that watches and it is time.
func (e *Engine) probe(d *dependency) {
	c, how, now := &d.ledger.circuit, e.howTo(d), e.clock.now()
	if how.Probe == nil || c.State != breaker.Open || c.Probing != e.worker || !now.Before(c.ProbingUntil) {
		return
	}
	p := &d.ledger.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Before(d.opened) {
		p.last = d.opened // the first one comes when the dependency had a moment
	}
	here := e.station(dutyProbes)
	urged := wanted(here.orders)
	if p.running || p.result != nil || !urged && (here.paused.Load() || time.Since(p.last) < how.ProbeEvery) {
		return
	}
	p.running, p.last = true, time.Now()
	since, ended := c.Since, here.begins()
	here.expects(p.last.Add(how.ProbeEvery))
	e.probes.Go(func() {
		err := e.probeOnce(how.Probe)
		ended(err)
		if err != nil {
			e.complain("probe", fmt.Errorf("%s: %w", d.name, err))
		}
		p.mu.Lock()
		p.running, p.result = false, &probed{since: since, ok: err == nil}
		p.mu.Unlock()
		nudge(e.called)
	})
}

// wanted takes a sign, if there is one.
func wanted(sign <-chan struct{}) bool {
	select {
	case <-sign:
		return true
	default:
		return false
	}
}

func (e *Engine) probeOnce(ask func(context.Context) error) (err error) {
	ctx, done := e.call(probeTimeout)
	defer done()
	defer recovered(&err)
	return ask(ctx)
}

// takeProbed takes the result of a probe that has ended, if there is one.
func (l *ledger) takeProbed() {
	l.probe.mu.Lock()
	defer l.probe.mu.Unlock()
	if l.probe.result != nil {
		l.probed, l.probe.result = l.probe.result, nil
	}
}
