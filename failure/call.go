package failure

import (
	"math"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Call is what an attempt says about the dependency it called. Breakers listen to this and to nothing else.
type Call uint8

const (
	NoCall   Call = iota // nothing: the user, our program or a shutdown got in the way
	GoodCall             // it answered
	BadCall              // it failed, or took too long
)

// called says what an attempt that failed was for its dependency. Only a code that blames a dependency counts against it, and
// time that ran out where there is one, unless the handler itself knows better.
func called(o Outcome, d diagnosis, dependency string) Call {
	ran := o.Event == Returned || o.Event == TimedOut || o.Event == Panicked
	switch {
	case d.marks.blameless:
		return NoCall
	case ran && d.code.Blame == Dependency:
		return BadCall
	case o.Event == TimedOut && d.marks.code == "" && dependency != "":
		return BadCall
	}
	return NoCall
}

// report adds to a verdict what it says about the dependency, and how long that wants to be left alone.
func (r Rules) report(v Verdict, call Call, d diagnosis) Verdict {
	if call == NoCall && d.marks.hold == nil {
		return v
	}
	v.Call, v.Dependency = call, r.blamed(d)
	if d.marks.hold != nil && v.Dependency != "" {
		v.Hold = min(*d.marks.hold, clampDelay(orDefault(r.Policy.RetryAfterCap, defaultRetryAfterCap)))
	}
	return v
}

// blamed is what the handler named, then what the rule named, then what the job calls.
func (r Rules) blamed(d diagnosis) string {
	for _, name := range []string{d.marks.dependency, d.class.Dependency, r.Dependency} {
		if name = line(name, holdfast.MaxName); name != "" {
			return name
		}
	}
	return ""
}

// promised is within what time the next attempt starts: the job's own word wins over the policy's. 0 is no promise.
func (r Rules) promised(job holdfast.Lease) time.Duration {
	return clampDelay(orDefault(job.RetryWithin, r.Policy.RetryWithin))
}

// renewed is the promise for a job that is handed back for free: the claim ended the one it had, if it had one.
func (r Rules) renewed(job holdfast.Lease) time.Duration {
	if job.Failures <= 0 {
		return 0
	}
	return r.promised(job)
}

// keep shortens a backoff that would break a promise, and says by what the delay is then. It leaves a tenth for the way to a
// worker, and spreads jobs over the fifth before that, so that those that failed together do not come back together.
func keep(within, delay time.Duration, b Backoff, roll float64) (time.Duration, string) {
	latest := within - within/10
	if within <= 0 || delay <= latest {
		return delay, shape(b)
	}
	return latest - portion(latest/5, roll), "the promise of a retry within " + span(within)
}

// probed decides on a failed call of a dependency whose breaker was not closed. The failure is recorded and counted against the
// dependency, and the job spends no attempt: it was let through to find out, or was under way when the breaker opened. A final
// code, the handler's NeverRetry and the time to give up end the job as they always do.
func (r Rules) probed(job holdfast.Lease, o Outcome, d diagnosis, record *holdfast.Failure, t terms) Verdict {
	count := oneMore(job.Failures)
	delay, wait := t.delay(count, o.Roll, d)
	if next := clampDelay(o.Wait); next > delay {
		delay, wait = next, "the breaker"
	}
	if stop := t.uncounted().stop(d, count, o.Age, delay); stop != "" {
		return r.report(end(record, holdfast.ChargeFailure, max(t.limit, count), d.words()+stop), BadCall, d)
	}
	return r.report(Verdict{
		To: holdfast.Queued, Delay: delay, Charge: holdfast.ChargeInterrupt, Within: r.renewed(job), Failure: record,
		Why: sentence("%snot charged: the breaker of %s was not closed; next attempt in %s by %s", d.words(), r.Dependency, span(delay), wait),
	}, BadCall, d)
}

// uncounted are the same terms without a limit of attempts.
func (t terms) uncounted() terms {
	t.limit = math.MaxInt
	return t
}

// LastAttempt reports whether another failure that blames the dependency could be the job's last, by its own number of attempts or by one that the
// policy gives to such a code.
func (r Rules) LastAttempt(job holdfast.Lease) bool {
	limit := r.Policy.terms(Code{}, job.MaxAttempts).limit
	if job.MaxAttempts <= 0 {
		for name, over := range r.Policy.Codes {
			if code, known := r.Taxonomy.Code(name); over.MaxAttempts > 0 && (!known || code.Blame == Dependency) {
				limit = min(limit, over.MaxAttempts)
			}
		}
	}
	return oneMore(job.Failures) >= limit
}

// held hands a job back that was claimed and must not run now. It has done nothing and pays nothing.
func (r Rules) held(job holdfast.Lease, o Outcome) Verdict {
	why := "what it calls is held"
	if o.Err != nil {
		why = Scrub(textOf(o.Err))
	}
	return Verdict{To: holdfast.Queued, Delay: clampDelay(o.Wait), Charge: holdfast.ChargeInterrupt, Within: r.renewed(job), Why: sentence("handed back for free: %s", why)}
}

// fastFailed ends a job without an attempt, because somebody would rather know now than wait.
func (r Rules) fastFailed(o Outcome) Verdict {
	code := o.Code
	if code == "" {
		code = codeDown
	}
	d := r.diagnose(o, code, "the open circuit of what it calls")
	d.class.Dependency = r.blamed(d)
	record := r.record(d, o, "what the job calls is not available")
	return end(record, holdfast.ChargeNothing, 0, d.words()+"not started: it fails at once instead of waiting")
}
