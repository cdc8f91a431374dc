package engine

import (
	"slices"
	"time"
)

// ownDuties are the names that duties of others must not have.
var ownDuties = []string{
	"claim", "wake", "promote", "reclaim", "expire", "policy", "budget", "trickle", "deadline", "redrive", "learn", "renew", "watch", "breakers",
	"duties", "sequence", "group", "schedule", "retention", "artifacts", dutyProbes,
}

// dutyProbes has no beat of its own: the breakers start probes.
const dutyProbes = "probes"

// frontDuties bring work in. They end when the engine is asked to stop.
func (e *Engine) frontDuties() []chore {
	all := []chore{
		{name: "duties", round: e.duties, beat: dutiesBeat},
		{name: "claim", round: e.claim, beat: e.cfg.Poll, sign: e.wakes},
		{name: "wake", round: e.wake},
		{name: "promote", round: e.promote, beat: min(e.cfg.Poll, 500*time.Millisecond)},
		{name: "reclaim", round: e.reclaim, beat: e.cfg.Sweep, jitter: true},
		{name: "expire", round: e.expire, beat: e.cfg.Sweep, jitter: true},
		{name: "policy", round: e.policies, beat: policyBeat},
		{name: "budget", round: e.budgets, beat: circuitBeat},
		{name: "trickle", round: e.trickle, beat: trickleBeat},
		{name: "deadline", round: e.breaches, beat: time.Second},
		{name: "redrive", round: e.redrives, beat: redriveBeat},
		{name: "learn", round: e.learn, beat: learnBeat},
		{name: "sequence", round: e.sequence, beat: liveBeat, pace: e.sequencing.next, sign: e.happened},
		{name: "group", round: e.groups, beat: liveBeat, pace: e.concluding.next, sign: e.endings},
		{name: "schedule", round: e.schedules, beat: scheduleBeat},
		{name: "retention", round: e.retain, beat: retentionBeat, jitter: true},
		{name: "artifacts", round: e.artifacts, beat: artifactBeat, jitter: true},
	}
	all = slices.DeleteFunc(all, func(c chore) bool { return slices.Contains(e.cfg.Leave, c.name) })
	for _, d := range e.cfg.Duties {
		all = append(all, chore{name: d.Name, round: d.Round, beat: d.Beat, sign: d.Sign})
	}
	return all
}

// backDuties look after work that was taken on. They last until its last settlement is written.
func (e *Engine) backDuties() []chore {
	return []chore{
		{name: "renew", round: e.renew, beat: e.cfg.Lease / 3, sign: e.cancels},
		{name: "watch", round: e.watch, beat: e.cfg.watchBeat()},
		{name: "breakers", round: e.breakers, beat: circuitBeat, sign: e.called},
	}
}
