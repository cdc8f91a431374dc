package policy

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A Scenario describes one job and an outage of its dependency. The zero value is a job that completes at once.
type Scenario struct {
	Kind       string
	Owner      string
	Queue      string
	Dependency string // what it calls

	Code   string        // failure code of attempts during the outage; DEPENDENCY_DOWN when empty
	Take   time.Duration // run time of each attempt
	Outage Outage

	// RetryAfter is the wait that the dependency asks for during the outage, with status 429, or 503 when the code is
	// DEPENDENCY_DOWN. None when zero.
	RetryAfter time.Duration

	Breaker bool      // simulate the dependency's breaker
	Traffic float64   // calls per second of other jobs, which are most of what a breaker sees; 0: there are none
	At      time.Time // when the job is enqueued; when zero, windows are left out
	Seed    uint64    // for jitter: the same seed gives the same delays
}

// An Outage is the time in which the dependency fails, counted from the job's enqueue: from From until before To. There is
// none if To is not after From.
type Outage struct{ From, To time.Duration }

func (o Outage) at(t time.Duration) bool { return t >= o.From && t < o.To }

// A Line is one event of a simulation.
type Line struct {
	At      time.Duration `json:"at"` // since the job was enqueued; of an attempt, its start
	Attempt int           `json:"attempt,omitempty"`
	What    string        `json:"what"`            // completes, fails, is throttled, gives up, is held, is late, was not followed
	Took    time.Duration `json:"took,omitempty"`  // the attempt
	Delay   time.Duration `json:"delay,omitempty"` // until the next attempt, or how long the hold lasts
	Why     string        `json:"why,omitempty"`
}

// A Simulation is the result of a simulation.
type Simulation struct {
	Lines       []Line         `json:"lines"`
	End         holdfast.State `json:"end"`   // queued if it had not ended when the simulation did
	After       time.Duration  `json:"after"` // time until then
	Attempts    int            `json:"attempts"`
	Assumptions []string       `json:"assumptions"`
	Warnings    []string       `json:"warnings,omitempty"` // why the trial may differ from the truth, such as a code that nothing defines
}

const (
	horizon     = 30 * 24 * time.Hour
	mostTrials  = 1000
	defaultCode = "DEPENDENCY_DOWN"

	http429, http503 = 429, 503
)

// Simulate runs a scenario under a policy, attempt by attempt. failure.Decide makes every decision.
func Simulate(s *Set, scene Scenario) Simulation {
	p := player{set: s, scene: scene, chance: scene.Seed}
	p.rules = failure.Rules{Taxonomy: s.known(), Policy: s.For(scene.Kind, scene.Owner), Dependency: scene.Dependency}
	p.lease.Kind, p.lease.Owner, p.lease.Queue, p.lease.Dependency = scene.Kind, scene.Owner, scene.Queue, scene.Dependency
	if scene.Breaker && !p.unseen() {
		p.circuit = newWatch(s.Breaker(scene.Dependency), scene)
	}
	p.trial.End = holdfast.Queued
	for p.trial.End == holdfast.Queued && p.trial.Attempts < mostTrials && p.waits() {
		p.attempt()
	}
	if p.trial.End == holdfast.Queued {
		p.say(Line{What: "was not followed", Why: "a simulation ends after thirty days, a thousand attempts, or twenty thousand calls that a breaker sees"})
	}
	p.trial.After = p.now
	p.trial.Assumptions = p.assumptions()
	if code := cmp.Or(scene.Code, defaultCode); scene.Outage.To > scene.Outage.From && !s.defines(code) {
		p.trial.Warnings = append(p.trial.Warnings, undefinedCode(code, "the scenario names it"))
	}
	return p.trial
}

// known returns the taxonomy with which the set was parsed.
func (s *Set) known() *failure.Taxonomy {
	if s == nil {
		return nil
	}
	return s.taxonomy
}

// A player runs one job through a scenario.
type player struct {
	set      *Set
	scene    Scenario
	rules    failure.Rules
	lease    store.Lease
	circuit  *watch
	now      time.Duration
	promised time.Duration // the next attempt must start by then (retry_within); 0: no limit
	chance   uint64
	trial    Simulation
}

func (p *player) say(l Line) {
	l.At, l.Attempt = p.now-l.Took, p.lease.Token
	p.trial.Lines = append(p.trial.Lines, l)
}

// roll returns the next random number, by the splitmix64 generator.
func (p *player) roll() float64 {
	p.chance += 0x9e3779b97f4a7c15
	z := p.chance
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// waits advances the time until nothing holds the job, and reports whether that happens within the horizon. A continuous
// hold by one breaker or window is one line.
func (p *player) waits() bool {
	told := ""
	for p.now <= horizon && !p.circuit.lost() {
		until, by, why := p.held()
		if by == "" {
			return true
		}
		if by != told {
			p.say(Line{What: "is held"})
			told = by
		}
		last := &p.trial.Lines[len(p.trial.Lines)-1]
		last.Delay, last.Why = until-last.At, why
		p.now = until
	}
	return false
}

// held says what holds the job, and until when.
func (p *player) held() (until time.Duration, by, why string) {
	if end, why := p.window(); why != "" {
		return end, why, why
	}
	if p.circuit == nil {
		return 0, "", ""
	}
	until, why = p.circuit.held(p.now)
	if why != "" {
		by = "breaker"
	}
	return until, by, why
}

// window returns the end and the reason of a window that would contain the start of a retry.
func (p *player) window() (until time.Duration, why string) {
	if p.scene.At.IsZero() || p.lease.Failures == 0 {
		return 0, ""
	}
	now := p.scene.At.Add(p.now)
	for _, h := range p.set.WindowHolds(now) {
		scope, _ := h.Scope()
		name := map[string]string{
			"queue": cmp.Or(p.scene.Queue, holdfast.DefaultQueue), "kind": p.scene.Kind, "owner": p.scene.Owner, "dependency": p.scene.Dependency,
		}[scope]
		if h.Covers(name) && p.now+h.For > until {
			until, why = p.now+h.For, h.Reason
		}
	}
	return until, why
}

// attempt runs the job once and applies the verdict.
func (p *player) attempt() {
	if p.promised > 0 && p.now > p.promised {
		p.say(Line{What: "is late", Why: fmt.Sprintf("the next attempt was promised to start by +%v", p.promised)})
	}
	p.lease.Token++
	p.trial.Attempts++
	o := failure.Outcome{Roll: p.roll()}
	down := p.scene.Outage.at(p.now)
	if p.circuit != nil && p.circuit.failsFast() {
		o.Event, o.Code = failure.FastFailed, p.circuit.config.Code
		o.Err = errors.New("the dependency's breaker is open")
	} else {
		o.Took = max(0, p.scene.Take)
		p.now += o.Took
		if down {
			o.Err = p.scene.refusal()
		}
		p.circuit.sees(down, p.now)
	}
	o.Age = p.now
	p.obey(failure.Decide(p.rules, p.lease, o), o.Took)
}

// unseen reports whether the outage is a throttle that the breaker does not count.
func (p *player) unseen() bool {
	v := failure.Decide(p.rules, p.lease, failure.Outcome{Err: p.scene.refusal()})
	return v.Throttled && v.Call != failure.BadCall
}

// refusal returns the error of an attempt during the outage.
func (s Scenario) refusal() error {
	code, err := cmp.Or(s.Code, defaultCode), errors.New("simulated")
	if s.RetryAfter > 0 {
		status := http429
		if code == defaultCode {
			status = http503
		}
		err = &failure.HTTPError{Status: status, RetryAfter: s.RetryAfter, Err: err}
	}
	return failure.WithCode(err, code)
}

func (p *player) obey(v failure.Verdict, took time.Duration) {
	what := map[holdfast.State]string{holdfast.Complete: "completes", holdfast.Queued: "fails"}[v.To]
	if v.Throttled {
		what = "is throttled"
	}
	p.say(Line{What: cmp.Or(what, "gives up"), Took: took, Delay: v.Delay, Why: v.Why})
	if p.trial.End, p.promised = v.To, 0; v.To != holdfast.Queued {
		return
	}
	switch v.Charge {
	case store.ChargeFailure:
		p.lease.Failures++
	case store.ChargeRelease:
		p.lease.Releases++
	}
	if v.StartWithin > 0 {
		p.promised = p.now + v.StartWithin
	}
	p.now += v.Delay
}

func (p *player) assumptions() []string {
	list := []string{
		"a worker is free whenever the job is due, and no limit or retry budget delays it",
		"settings in the application's Go code are not known: only those of the file apply",
		"an attempt that starts during the outage fails; any other attempt completes",
	}
	if p.scene.At.IsZero() && len(p.set.Windows()) > 0 {
		list = append(list, "time windows are left out: the scenario has no time of day")
	}
	switch {
	case p.scene.Breaker && p.circuit == nil:
		list = append(list, "the breaker counts no failures: the dependency answers and only asks for a wait")
	case p.circuit == nil:
		list = append(list, "there is no breaker")
	case p.scene.Traffic > 0:
		list = append(list, fmt.Sprintf("other jobs call the dependency %v times per second, and they make the probes", p.scene.Traffic))
	default:
		list = append(list, "no other job calls the dependency: the breaker counts only this job")
	}
	if p.rules.Policy.Learned {
		list = append(list, "there is no experience yet: learned does not stop retries early")
	}
	return list
}
