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

// A healthProbe is the health probe of one dependency in this process.
type healthProbe struct {
	mu      sync.Mutex
	running bool
	last    time.Time    // when the last probe was started, by this process's clock
	result  *probeResult // of a probe that has ended; nil once the breaker update has taken it
}

// A probeResult is the result of a health probe.
type probeResult struct {
	since time.Time // when the breaker had entered the state that was probed; a result for an older state is dropped
	ok    bool
}

// A probeLease says whether this process is the one that probes, and carries the result of its last probe.
type probeLease struct {
	acquired bool // this process has taken or extended the right to probe
	ended    bool // a probe has ended
	ok       bool // with this result
}

// A prober makes the health probes of this process.
type prober struct {
	*core
	policies   *policies
	duties     *dutyRunner
	inProgress sync.WaitGroup
}

// lease makes this process the one that probes an open breaker, if no other process is, and returns the result of its last probe. The right to probe is a
// lease in the breaker record: if its process dies, another one takes over when the lease has expired. It is extended when half of it has passed.
func (p *prober) lease(d *dependency, next *breakerRecord, cfg dependencyConfig, now time.Time) (g probeLease) {
	if cfg.Probe == nil || next.State != breaker.Open || cfg.Breaker.Disabled {
		return g
	}
	mine := next.Probing == p.worker && now.Before(next.ProbingUntil)
	if r := d.breaker.probeResult; mine && r != nil && r.since.Equal(next.Since) {
		g.ended, g.ok = true, r.ok
	}
	if !mine || next.ProbingUntil.Sub(now) < p.cfg.Lease/2 {
		next.Snapshot, g.acquired = cfg.Breaker.Guard(next.Snapshot, p.worker, p.cfg.Lease, now)
	}
	return g
}

// start starts a health probe if this process is the one that probes and the next probe is due, or an operator requested one. The probe runs on its own
// goroutine; its result is taken by the next update of the breaker.
func (p *prober) start(d *dependency) {
	c, cfg, now := &d.breaker.record, p.policies.dependencyConfig(d), p.clock.now()
	if cfg.Probe == nil || c.State != breaker.Open || c.Probing != p.worker || !now.Before(c.ProbingUntil) {
		return
	}
	probe := &d.breaker.probe
	probe.mu.Lock()
	defer probe.mu.Unlock()
	if probe.last.Before(d.opened) {
		probe.last = d.opened // the first probe is made ProbeEvery after the breaker opened
	}
	control := p.duties.control(dutyProbes)
	requested := takeSignal(control.runNow)
	if probe.running || probe.result != nil || !requested && (control.paused.Load() || time.Since(probe.last) < cfg.ProbeEvery) {
		return
	}
	probe.running, probe.last = true, time.Now()
	since, ended := c.Since, control.beginRun()
	control.setNext(probe.last.Add(cfg.ProbeEvery))
	p.inProgress.Go(func() {
		err := p.once(cfg.Probe)
		ended(err)
		if err != nil {
			p.logRetry("probe", fmt.Errorf("%s: %w", d.name, err))
		}
		probe.mu.Lock()
		probe.running, probe.result = false, &probeResult{since: since, ok: err == nil}
		probe.mu.Unlock()
		signal(p.signals.breakers)
	})
}

// takeSignal receives a signal if there is one, and reports whether there was.
func takeSignal(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// once makes one probe. A panic is returned as an error.
func (p *prober) once(probe func(context.Context) error) (err error) {
	ctx, done := p.storeContext(probeTimeout)
	defer done()
	defer recoverTo(&err)
	return probe(ctx)
}

// takeProbed takes over the result of a probe that has ended, if there is one.
func (l *localBreaker) takeProbed() {
	l.probe.mu.Lock()
	defer l.probe.mu.Unlock()
	if l.probe.result != nil {
		l.probeResult, l.probe.result = l.probe.result, nil
	}
}
