package engine

import (
	"slices"
	"time"
)

// builtinDuties are the names of the engine's own duties. Config.Duties must not use them.
var builtinDuties = []string{
	"claim", "wake", "promote", "reclaim", "expire", "policy", "budget", "trickle", "deadline", "redrive", "learn", "renew", "watch", "breakers",
	"duties", "sequence", "group", "schedule", "retention", "artifacts", dutyProbes,
}

// dutyProbes is the duty of health probes. It has no interval: the duty "breakers" starts probes. It can be paused and reports its runs like the others.
const dutyProbes = "probes"

// intakeDuties makes the duties that claim jobs or make jobs claimable, and the rest of the maintenance. They end when the engine is asked to stop. State
// that only one duty uses is in the type of that duty.
func (e *Engine) intakeDuties() []dutySpec {
	c := e.core
	sequencer, groups := &sequencer{core: c}, &groupAdvancer{core: c}
	all := []dutySpec{
		{name: "duties", run: e.duties.obeyRequests, interval: dutiesInterval},
		{name: "claim", run: e.claimer.claim, interval: e.cfg.Poll, signal: e.signals.claim},
		{name: "wake", run: e.claimer.wake},
		{name: "promote", run: (&promoter{c}).run, interval: min(e.cfg.Poll, 500*time.Millisecond)},
		{name: "reclaim", run: e.sweeper.reclaim, interval: e.cfg.Sweep, jitter: true},
		{name: "expire", run: e.sweeper.expire, interval: e.cfg.Sweep, jitter: true},
		{name: "policy", run: e.policies.follow, interval: policyInterval},
		{name: "budget", run: e.budgets.write, interval: breakerInterval},
		{name: "trickle", run: e.claimer.trickle, interval: trickleInterval},
		{name: "deadline", run: e.deadlines.run, interval: time.Second},
		{name: "redrive", run: (&redriver{c}).run, interval: redriveInterval},
		{name: "learn", run: e.policies.learn, interval: learnInterval},
		{name: "sequence", run: sequencer.run, interval: liveInterval, nextInterval: sequencer.interval.next, signal: e.signals.feed},
		{name: "group", run: groups.run, interval: liveInterval, nextInterval: groups.interval.next, signal: e.signals.groups},
		{name: "schedule", run: (&scheduler{core: c, duties: e.duties}).run, interval: scheduleInterval},
		{name: "retention", run: (&retention{core: c, duties: e.duties}).run, interval: retentionInterval, jitter: true},
		{name: "artifacts", run: (&artifactSweeper{c}).run, interval: artifactInterval, jitter: true},
	}
	all = slices.DeleteFunc(all, func(c dutySpec) bool { return slices.Contains(e.cfg.DisableDuties, c.name) })
	for _, d := range e.cfg.Duties {
		all = append(all, dutySpec{name: d.Name, run: d.Run, interval: d.Interval, signal: d.Signal})
	}
	return all
}

// leaseDuties makes the duties that claimed jobs need. They run until the last settlement is written: a drain may last longer than a lease.
func (e *Engine) leaseDuties() []dutySpec {
	return []dutySpec{
		{name: "renew", run: e.keeper.renew, interval: e.cfg.Lease / 3, signal: e.signals.cancel},
		{name: "watch", run: e.keeper.watch, interval: e.cfg.watchInterval()},
		{name: "breakers", run: e.breakers.update, interval: breakerInterval, signal: e.signals.breakers},
	}
}
