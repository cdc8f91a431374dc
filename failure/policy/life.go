package policy

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A life is one generation of a recorded job: from its enqueue or a manual retry to its end or the present.
type life struct {
	job      holdfast.Job
	since    time.Time
	until    time.Time
	end      holdfast.State  // queued if it has not ended, or a person ended it early
	failures []store.Attempt // attempts that were charged as failure or crash, or were throttled, in order
	spent    int             // number of failures that were charged
	worked   time.Duration   // run time of the attempt that completed
}

// lives returns the generations of a job.
func lives(h store.History) []life {
	all := make([]life, max(1, h.Job.Generation))
	for i := range all {
		all[i] = life{job: h.Job, since: h.Job.CreatedAt, end: holdfast.Queued}
	}
	for _, e := range h.Events {
		if i := e.Generation - 1; i > 0 && i < len(all) && (e.Name == "manual retry" || e.Name == "redrive") {
			all[i].since = e.At
		}
	}
	for _, a := range h.Attempts {
		i := a.Generation - 1
		if i < 0 || i >= len(all) || a.Late || a.Failure == nil {
			continue
		}
		switch {
		case a.Charge == store.ChargeFailure || a.Charge == store.ChargeCrash:
			all[i].spent++
		case !failure.IsThrottled(a.Failure) && !strings.Contains(a.Why, gaveUpThrottled):
			continue
		}
		for range min(a.Repeats, mostTrials) + 1 {
			all[i].failures = append(all[i].failures, a)
		}
		if a.To == holdfast.Failed {
			all[i].end, all[i].until = holdfast.Failed, a.EndedAt
		}
	}
	if last := &all[len(all)-1]; h.Job.State == holdfast.Complete {
		last.end, last.until = holdfast.Complete, h.Job.FinishedAt
		last.worked = max(0, h.Job.FinishedAt.Sub(h.Job.StartedAt))
	}
	return all
}

// attempts counts the attempts that were charged, and the one that completed.
func (l life) attempts() int {
	if l.end == holdfast.Complete {
		return l.spent + 1
	}
	return l.spent
}

// code returns the code of the last failure.
func (l life) code() string { return l.failures[len(l.failures)-1].Failure.Code }

// undefined adds to codes the codes of the life's failures that the set's taxonomy does not define.
func (l life) undefined(s *Set, codes map[string]bool) {
	for _, a := range l.failures {
		if !s.defines(a.Failure.Code) {
			codes[a.Failure.Code] = true
		}
	}
}

// defines reports whether the set's taxonomy says what a code means. A copy of UNKNOWN under another name does not:
// ops.AllowCodes makes such copies for codes that a caller allows without a definition.
func (s *Set) defines(name string) bool {
	code, known := s.known().Code(name)
	unknown, _ := s.known().Code("UNKNOWN")
	placeholder := code
	placeholder.Name = unknown.Name
	return known && (name == unknown.Name || placeholder != unknown)
}

// undefinedCode warns that failures with a code are judged without knowing what the code means.
func undefinedCode(code, where string) string {
	return fmt.Sprintf("nothing defines the code %s (%s): it is judged like UNKNOWN, which is retried, apart from what the policy says about it. "+
		"Define it under codes in the policy, or start a worker that publishes it", code, where)
}

// An ending is how a life would have ended under another policy.
type ending struct {
	state    holdfast.State
	attempts int
	after    time.Duration
}

// under runs the life again under a policy.
func (l life) under(s *Set) ending {
	rules := failure.Rules{Taxonomy: s.known(), Policy: s.For(l.job.Kind, l.job.Owner), Dependency: l.job.Dependency}
	lease := store.Lease{Job: l.job}
	lease.Failures, lease.Crashes, lease.Releases = 0, 0, 0
	e := ending{state: holdfast.Queued, after: max(0, l.failures[0].StartedAt.Sub(l.since))}
	for n := 0; n < mostTrials+len(l.failures); n++ {
		if n >= len(l.failures) && l.end == holdfast.Complete {
			return ending{holdfast.Complete, e.attempts + 1, e.after + l.worked}
		}
		if n >= len(l.failures) && l.end != holdfast.Failed {
			return e // it has not ended, and its further attempts are not known
		}
		a := l.failures[min(n, len(l.failures)-1)]
		took := max(0, a.EndedAt.Sub(a.StartedAt))
		e.after += took
		v := failure.Decide(rules, lease, outcome(a, took, e.after))
		if v.Charge != store.ChargeRelease && !strings.Contains(v.Why, gaveUpThrottled) {
			e.attempts++
		}
		if v.To != holdfast.Queued {
			e.state = v.To
			return e
		}
		switch v.Charge {
		case store.ChargeFailure:
			lease.Failures++
		case store.ChargeCrash:
			lease.Crashes++
		case store.ChargeRelease:
			lease.Releases++
		}
		e.after += v.Delay
	}
	return e
}

// outcome reconstructs the outcome of a recorded attempt. What the handler or the dependency asked for is read from the
// reason that Decide recorded (Attempt.Why).
func outcome(a store.Attempt, took, age time.Duration) failure.Outcome {
	o := failure.Outcome{Event: failure.Returned, Took: took, Age: age, Roll: 0.5}
	if a.Charge == store.ChargeCrash {
		o.Event = failure.Lost
		return o
	}
	o.Err = failure.WithCode(errors.New(cmp.Or(a.Failure.Message, a.Failure.Code)), a.Failure.Code)
	switch {
	case strings.Contains(a.Why, "never retried: the handler said so"):
		o.Err = failure.NeverRetry(o.Err)
	case failure.IsThrottled(a.Failure), strings.Contains(a.Why, gaveUpThrottled):
		o.Err = failure.Throttled(o.Err, a.DueAt.Sub(a.EndedAt))
	case strings.Contains(a.Why, "by the other side's Retry-After"), strings.Contains(a.Why, "by the handler's "):
		o.Err = failure.RetryAfter(o.Err, a.DueAt.Sub(a.EndedAt))
		if status, err := strconv.Atoi(a.Failure.Context["http_status"]); err == nil {
			o.Err = &failure.HTTPError{Status: status, Err: o.Err}
		}
	}
	return o
}

// gaveUpThrottled begins Decide's reason when a throttled job has reached its limit.
const gaveUpThrottled = "gave up: still throttled"
