package policy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// A Scenario is a day in the life of one job. The zero value is a job that completes at once.
type Scenario struct {
	Kind       string
	Owner      string
	Queue      string
	Dependency string // what it calls

	Code   string        // how its attempts fail during the outage; DEPENDENCY_DOWN when empty
	Take   time.Duration // how long each attempt takes
	Outage Outage

	// RetryAfter is the wait that the dependency asks for during the outage, with status 429, or 503 when the code is DEPENDENCY_DOWN. None when zero.
	RetryAfter time.Duration

	Breaker bool      // the dependency's circuit breaker watches
	Traffic float64   // calls a second that other jobs make meanwhile, which is what a breaker mostly sees; 0: this job is alone
	At      time.Time // when the job is enqueued; windows are left out when zero
	Seed    uint64    // chance: the same seed, the same jitter
}

// An Outage is when the dependency fails, counted from the job's enqueue. It has not ended at To any more; none when To is not
// after From.
type Outage struct{ From, To time.Duration }

func (o Outage) at(t time.Duration) bool { return t >= o.From && t < o.To }

// A Line is one thing that happens in a scenario.
type Line struct {
	At      time.Duration `json:"at"` // since the job was enqueued; of an attempt, its start
	Attempt int           `json:"attempt,omitempty"`
	What    string        `json:"what"`            // completes, fails, is throttled, gives up, is held, is late, was not followed
	Took    time.Duration `json:"took,omitempty"`  // the attempt
	Delay   time.Duration `json:"delay,omitempty"` // from its end to the next one, or how long the hold lasts
	Why     string        `json:"why,omitempty"`
}

// A Trial is how a scenario went.
type Trial struct {
	Lines       []Line         `json:"lines"`
	End         holdfast.State `json:"end"`   // queued when it had not ended by the time the simulation did
	After       time.Duration  `json:"after"` // how long until then
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

// Simulate plays a scenario under a set of policies, attempt by attempt. Every verdict is failure.Decide's own.
func Simulate(s *Set, scene Scenario) Trial {
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

// known is the taxonomy the set was read with.
func (s *Set) known() *failure.Taxonomy {
	if s == nil {
		return nil
	}
	return s.taxonomy
}

// A player takes one job through a scenario.
type player struct {
	set      *Set
	scene    Scenario
	rules    failure.Rules
	lease    holdfast.Lease
	circuit  *watch
	now      time.Duration
	promised time.Duration // the next attempt starts by then; 0: no promise
	chance   uint64
	trial    Trial
}

func (p *player) say(l Line) {
	l.At, l.Attempt = p.now-l.Took, p.lease.Token
	p.trial.Lines = append(p.trial.Lines, l)
}

// roll is the next chance, by the generator known as splitmix64.
func (p *player) roll() float64 {
	p.chance += 0x9e3779b97f4a7c15
	z := p.chance
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// waits passes the time until nothing holds the job any more, and reports whether that happens in time. What one breaker or
// window does without a pause is told in one line.
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

// window is the window that a retry would start in.
func (p *player) window() (until time.Duration, why string) {
	if p.scene.At.IsZero() || p.lease.Failures == 0 {
		return 0, ""
	}
	now := p.scene.At.Add(p.now)
	for _, h := range p.set.WindowHolds(now) {
		scope, _ := h.On()
		name := map[string]string{
			"queue": cmp.Or(p.scene.Queue, holdfast.DefaultQueue), "kind": p.scene.Kind, "owner": p.scene.Owner, "dependency": p.scene.Dependency,
		}[scope]
		if h.Covers(name) && p.now+h.For > until {
			until, why = p.now+h.For, h.Reason
		}
	}
	return until, why
}

// attempt runs the job once and does what the verdict says.
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

// unseen reports whether the outage is a throttle that says nothing to a breaker.
func (p *player) unseen() bool {
	v := failure.Decide(p.rules, p.lease, failure.Outcome{Err: p.scene.refusal()})
	return v.Throttled && v.Call != failure.BadCall
}

// refusal is the error of an attempt during the outage.
func (s Scenario) refusal() error {
	code, err := cmp.Or(s.Code, defaultCode), errors.New("simulated")
	if s.RetryAfter > 0 {
		status := http429
		if code == defaultCode {
			status = http503
		}
		err = failure.HTTPError(status, strconv.FormatInt(int64(math.Ceil(s.RetryAfter.Seconds())), 10), err)
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
	case holdfast.ChargeFailure:
		p.lease.Failures++
	case holdfast.ChargeInterrupt:
		p.lease.Interrupts++
	}
	if v.Within > 0 {
		p.promised = p.now + v.Within
	}
	p.now += v.Delay
}

func (p *player) assumptions() []string {
	list := []string{
		"a worker is free whenever the job is due, and nobody else's limit or budget stands in its way",
		"what is written in the application's code is not known here: only the file speaks",
		"an attempt that starts during the outage fails, any other completes",
	}
	if p.scene.At.IsZero() && len(p.set.Windows()) > 0 {
		list = append(list, "no window holds it: the scenario has no time of day")
	}
	switch {
	case p.scene.Breaker && p.circuit == nil:
		list = append(list, "the breaker sees nothing: the dependency answers, and only asks for a wait")
	case p.circuit == nil:
		list = append(list, "no breaker watches")
	case p.scene.Traffic > 0:
		list = append(list, fmt.Sprintf("others call the dependency %v times a second, and theirs are the probes", p.scene.Traffic))
	default:
		list = append(list, "nobody else calls the dependency: the breaker sees only this job")
	}
	if p.rules.Policy.Learned {
		list = append(list, "nothing was learned yet: hopeless retries are not cut short")
	}
	return list
}
