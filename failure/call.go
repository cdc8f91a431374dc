package failure

import (
	"math"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// A Call is what an attempt shows about the dependency that it called. Breakers count calls and nothing else.
type Call uint8

const (
	NoCall   Call = iota // nothing: the user, our program or a shutdown ended the attempt
	GoodCall             // the dependency answered
	BadCall              // the dependency failed or took too long
)

// callOf returns what a failed attempt shows about its dependency. A code counts against the dependency only if it blames a
// dependency. A timeout also counts if there is a dependency, unless the handler gave the code itself.
func callOf(o Outcome, d diagnosis, dependency string) Call {
	ran := o.Event == Returned || o.Event == TimedOut || o.Event == Panicked
	switch {
	case d.marks.blameless:
		return NoCall
	case ran && d.code.Blame == BlameDependency:
		return BadCall
	case o.Event == TimedOut && d.marks.code == "" && dependency != "":
		return BadCall
	}
	return NoCall
}

// withCall adds to a verdict what the attempt shows about its dependency, and how long the handler asked to hold it.
func (r Rules) withCall(v Verdict, call Call, d diagnosis) Verdict {
	if call == NoCall && d.marks.hold == nil {
		return v
	}
	v.Call, v.Dependency = call, r.blamed(d)
	if d.marks.hold != nil && v.Dependency != "" {
		v.Hold = min(*d.marks.hold, clampDelay(orDefault(r.Policy.RetryAfterCap, defaultRetryAfterCap)))
	}
	return v
}

// blamed returns the dependency of a failure: the one that the handler named, else the rule's, else the job's.
func (r Rules) blamed(d diagnosis) string {
	for _, name := range []string{d.marks.dependency, d.class.Dependency, r.Dependency} {
		if name = line(name, check.MaxName); name != "" {
			return name
		}
	}
	return ""
}

// retryWithin returns the time within which the next attempt must start: from the job, else from the policy; 0: none.
func (r Rules) retryWithin(job store.Lease) time.Duration {
	return clampDelay(orDefault(job.RetryWithin, r.Policy.RetryWithin))
}

// retryWithinAgain returns the same for a job that is released at no cost. The claim ended the time that an earlier
// settlement gave, so it must be given again if the job has failed before.
func (r Rules) retryWithinAgain(job store.Lease) time.Duration {
	if job.Failures <= 0 {
		return 0
	}
	return r.retryWithin(job)
}

// shortenBackoff shortens a backoff that would exceed within, and returns the reason for the delay. It leaves a tenth of
// the time for the claim by a worker, and spreads jobs over the fifth before that, so that jobs that failed together are
// not retried together.
func shortenBackoff(within, delay time.Duration, b Backoff, roll float64) (time.Duration, string) {
	latest := within - within/10
	if within <= 0 || delay <= latest {
		return delay, shape(b)
	}
	return latest - portion(latest/5, roll), "the limit retry_within of " + span(within)
}

// probed decides about a failed call of a dependency whose breaker was not closed. The failure is recorded and counted
// against the dependency, but costs the job no attempt: the job was let through as a probe, or was running when the breaker
// opened. A final code, NeverRetry and GiveUpAfter end the job as usual.
func (r Rules) probed(job store.Lease, o Outcome, d diagnosis, record *holdfast.Failure, t terms) Verdict {
	count := increment(job.Failures)
	delay, wait := t.delay(count, o.Roll, d)
	if next := clampDelay(o.Wait); next > delay {
		delay, wait = next, "the breaker"
	}
	if stop := t.uncounted().stop(d, count, o.Age, delay); stop != "" {
		return r.withCall(end(record, store.ChargeFailure, max(t.limit, count), d.words()+stop), BadCall, d)
	}
	return r.withCall(Verdict{
		To: holdfast.Queued, Delay: delay, Charge: store.ChargeRelease, StartWithin: r.retryWithinAgain(job), Failure: record,
		Why: sentence("%snot charged: the breaker of %s was not closed; next attempt in %s by %s", d.words(), r.Dependency, span(delay), wait),
	}, BadCall, d)
}

// uncounted returns the same terms without a limit of attempts.
func (t terms) uncounted() terms {
	t.limit = math.MaxInt
	return t
}

// LastAttempt reports whether one more failure that blames the dependency could be the job's last, by the job's own limit
// of attempts or by one that the policy sets for such a code.
func (r Rules) LastAttempt(job store.Lease) bool {
	limit := r.Policy.terms(Code{}, job.MaxAttempts).limit
	if job.MaxAttempts <= 0 {
		for name, over := range r.Policy.Codes {
			if code, known := r.Taxonomy.Code(name); over.MaxAttempts > 0 && (!known || code.Blame == BlameDependency) {
				limit = min(limit, over.MaxAttempts)
			}
		}
	}
	return increment(job.Failures) >= limit
}

// held releases a claimed job that must not run now. It did not start, so it costs nothing.
func (r Rules) held(job store.Lease, o Outcome) Verdict {
	why := "its dependency is held"
	if o.Err != nil {
		why = Scrub(textOf(o.Err))
	}
	return Verdict{To: holdfast.Queued, Delay: clampDelay(o.Wait), Charge: store.ChargeRelease, StartWithin: r.retryWithinAgain(job), Why: sentence(releasedAtNoCost+"%s", why)}
}

// fastFailed ends a job without an attempt, because its breaker is open and is configured to fail jobs at once.
func (r Rules) fastFailed(o Outcome) Verdict {
	code := o.Code
	if code == "" {
		code = codeDown
	}
	d := r.diagnose(o, code, "the open breaker of its dependency")
	d.class.Dependency = r.blamed(d)
	record := r.record(d, o, "the job's dependency is not available")
	return end(record, store.ChargeNone, 0, d.words()+"not started: the breaker is set to fail jobs at once")
}
