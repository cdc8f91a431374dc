package failure

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// An Event says how an attempt ended.
type Event uint8

const (
	Returned           Event = iota // the handler returned; complete if Err is nil
	Panicked                        // the handler panicked; Err is the panic value
	Exited                          // the handler ended its goroutine (runtime.Goexit)
	TimedOut                        // the time limit passed, whether the handler returned then or not
	Lost                            // the worker stopped renewing the lease while it ran the job
	Interrupted                     // the worker is stopping and releases the job
	Expired                         // the job could not start before its expiry
	CancelledByRequest              // a person asked to cancel the job
	Unreadable                      // the stored row is damaged, or the arguments cannot be decoded
	Unhandled                       // this worker has no handler for the kind
	FastFailed                      // not started: the breaker of its dependency is open and fails jobs at once
	Held                            // not started: its dependency is held; Err says by what
	Unsettleable                    // the store refused the settlement although the lease is held; Err is the refusal
	Uncommitted                     // the handler returned nil, and the transaction in which it completed the job was not committed
)

// An Outcome is everything that is known when an attempt ends. A verdict depends on nothing else besides the rules and the job.
type Outcome struct {
	Event  Event
	Err    error
	Stack  string // of a panic
	Code   string // with FastFailed: the failure code; DEPENDENCY_DOWN when empty
	Result json.RawMessage
	// Enqueue lists jobs to enqueue in the transaction that completes the job, if it completes.
	Enqueue []holdfast.Draft
	Took    time.Duration // run time of the attempt; 0 when it never started
	Age     time.Duration // time since the generation began
	Roll    float64       // random number for jitter, at least 0 and below 1

	// Probe says that the breaker of the job's own dependency was open or half-open when the attempt began or when it ended. A
	// failure that blames this dependency then costs the job no attempt.
	Probe bool
	Wait  time.Duration // with Probe and Held: the next attempt starts at the earliest after this time
}

// A Verdict is the decision about a job after an attempt, with the reason.
type Verdict struct {
	To          holdfast.State
	Delay       time.Duration
	Charge      store.Charge
	Limit       int           // the limit that the charge was compared with, never below the counter
	StartWithin time.Duration // the next attempt must start within this time; 0: no such limit
	Failure     *holdfast.Failure
	Why         string // one sentence for the job's story
	Alarm       bool   // the job failed for good and the failure is not benign

	Throttled bool // with Queued: the dependency asked for a wait, and the attempt costs nothing

	Call       Call          // what the attempt shows about its dependency
	Hold       time.Duration // how long to hold the dependency, because the handler asked for it
	Dependency string        // of Call and Hold; empty when none is known
}

// Decide returns the verdict on an attempt. Every attempt, however it ended, is decided here and nowhere else, so the same rules
// apply to handlers in Go, to workers in other languages and to simulations. Decide is a pure function and accepts any input; the
// settlement of its verdict always passes store.Settlement.Check.
func Decide(r Rules, job store.Lease, o Outcome) Verdict {
	if job.Dependency != "" {
		r.Dependency = job.Dependency
	}
	switch o.Event {
	case Returned:
		return r.returned(job, o)
	case Panicked:
		return r.failed(job, o, r.diagnose(o, codePanic, "the panic"), "the handler panicked")
	case Exited:
		return r.failed(job, o, r.diagnose(o, codeExited, "the end of its goroutine"), "the handler ended its goroutine instead of returning")
	case TimedOut:
		return r.failed(job, o, r.diagnose(o, codeTimeout, "its time limit"), "the attempt exceeded its time limit")
	case Unhandled:
		return r.unhandled(job, o)
	case Lost:
		return r.lost(job, o)
	case Interrupted:
		return Verdict{To: holdfast.Queued, Charge: store.ChargeRelease, StartWithin: r.retryWithinAgain(job), Why: releasedAtNoCost + "its worker is stopping"}
	case Held:
		return r.held(job, o)
	case FastFailed:
		return r.fastFailed(o)
	case CancelledByRequest:
		return Verdict{To: holdfast.Cancelled, Why: "cancelled by a person"}
	case Expired:
		return r.expired(job, o)
	case Unreadable:
		return r.unreadable(job, o)
	case Unsettleable:
		return r.unsettleable(o)
	case Uncommitted:
		return r.failed(job, o, r.diagnose(o, codeUncommitted, "its transaction"), "the handler returned nil, and the transaction in which it completed the job was not committed")
	default:
		return r.failed(job, o, r.diagnose(o, codeSystem, "an unknown event"), fmt.Sprintf("event %d is not known", o.Event))
	}
}

// releasedAtNoCost begins the reason of a verdict that returns a job to its queue without a charge.
const releasedAtNoCost = "released at no cost: "

// Settlement returns the verdict as the settlement of a lease.
func (v Verdict) Settlement(l store.Lease, o Outcome) store.Settlement {
	s := store.Settlement{
		Batch: l.Batch, Job: l.ID, Token: l.Token, Queue: l.Queue,
		To: v.To, Delay: v.Delay, Charge: v.Charge, Limit: max(0, min(v.Limit, math.MaxInt32)), StartWithin: v.StartWithin,
		Took: clampDelay(o.Took), Failure: v.Failure, Why: v.Why,
	}
	if v.To == holdfast.Complete && len(o.Result) > 0 {
		s.Result = o.Result
	}
	if v.To == holdfast.Complete {
		s.Enqueue = o.Enqueue
	}
	return s
}

func (r Rules) returned(job store.Lease, o Outcome) Verdict {
	if o.Err == nil {
		if problem := resultProblem(o.Result); problem != "" {
			return r.failed(job, o, r.diagnose(o, codeResult, "its result"), problem)
		}
		return Verdict{To: holdfast.Complete, Call: GoodCall, Dependency: r.Dependency}
	}
	d := r.diagnose(o, "", "")
	if d.marks.snooze != nil {
		delay := clampDelay(*d.marks.snooze)
		return r.withCall(Verdict{
			To: holdfast.Queued, Delay: delay, Charge: store.ChargeRelease,
			Why: releasedAtNoCost + "the handler snoozed it for " + span(delay),
		}, NoCall, d)
	}
	if v, throttled := r.throttled(job, o, d); throttled {
		return v
	}
	return r.failed(job, o, d, "")
}

// resultProblem says why a result cannot be stored; empty: it can. The job then fails with a final code, because the work
// itself was done and must not be repeated.
func resultProblem(result json.RawMessage) string {
	switch {
	case len(result) > check.MaxArgs:
		return fmt.Sprintf("the result has %d bytes; the limit is %d: store it elsewhere and return a reference", len(result), check.MaxArgs)
	case len(result) > 0 && !(check.ValidJSON(result) && utf8.Valid(result)):
		return "the result is not valid JSON"
	}
	return ""
}

// failed decides between another attempt and failure for good. otherwise is the detail when there is no error.
//
// The order of the checks matters. A failed probe comes first, because it costs no attempt and so must not be compared with
// the limit of attempts. Then come the limits (stop): NeverRetry, a final code, the number of attempts, the age. Experience
// from earlier retries (earlyStop) comes last, so that the reason names a limit of the policy whenever one applies.
func (r Rules) failed(job store.Lease, o Outcome, d diagnosis, otherwise string) Verdict {
	t := r.Policy.terms(d.code, job.MaxAttempts)
	t.within = r.retryWithin(job)
	count := increment(job.Failures)
	record, call := r.record(d, o, otherwise), callOf(o, d, r.blamed(d))
	delay, wait := t.delay(count, o.Roll, d)
	if o.Probe && call == BadCall && r.Dependency != "" && r.blamed(d) == r.Dependency {
		return r.probed(job, o, d, record, t)
	}
	stop := t.stop(d, count, o.Age, delay)
	if stop == "" {
		stop = r.earlyStop(d.code.Name, count)
	}
	if stop != "" {
		return r.withCall(end(record, store.ChargeFailure, max(t.limit, count), d.words()+stop), call, d)
	}
	return r.withCall(Verdict{
		To: holdfast.Queued, Delay: delay, Charge: store.ChargeFailure, Limit: t.limit, StartWithin: t.within, Failure: record,
		Why: sentence("%sattempt %d of %d in %s by %s%s", d.words(), count+1, t.limit, span(delay), wait, r.successNote(d.code.Name, count)),
	}, call, d)
}

// stop says why there is no further attempt; empty: there is one.
func (t terms) stop(d diagnosis, count int, age, delay time.Duration) string {
	switch {
	case d.marks.never:
		return "never retried: the handler said so"
	case !t.retryable:
		return fmt.Sprintf("never retried: the code %s is final", d.code.Name)
	case count >= t.limit:
		return fmt.Sprintf("gave up: %d of %d attempts used", count, t.limit)
	case t.giveUpAfter > 0 && age >= t.giveUpAfter:
		return fmt.Sprintf("gave up: the job is older than %v", t.giveUpAfter)
	case t.giveUpAfter > 0 && delay > t.giveUpAfter-max(age, 0):
		return fmt.Sprintf("gave up: a retry in %s would start after the limit of %v", span(delay), t.giveUpAfter)
	}
	return ""
}

// delay returns the backoff, or the wait that was asked for if that is longer, and which of them it is.
func (t terms) delay(count int, roll float64, d diagnosis) (time.Duration, string) {
	delay, by := shortenBackoff(t.within, clampDelay(t.backoff.Delay(count, roll)), t.backoff, roll)
	asked, who := d.class.RetryAfter, "the other side's Retry-After"
	if d.marks.after != nil {
		asked, who = *d.marks.after, "the handler's RetryAfter"
	} else if d.marks.hold != nil {
		asked, who = *d.marks.hold, "the handler's hold on its dependency"
	}
	if asked > t.cap {
		asked, who = t.cap, who+", capped"
	}
	if asked = clampDelay(asked); asked > delay {
		return asked, who
	}
	return delay, by
}

// lost decides about a crash. The job may have ended its worker, or the worker may have ended for another reason; repeated
// crashes point to the job.
func (r Rules) lost(job store.Lease, o Outcome) Verdict {
	limit := firstPositive(r.Policy.MaxCrashes, defaultMaxCrashes)
	count := increment(job.Crashes)
	code := codeLost
	if count >= limit {
		code = codePoison
	}
	d := r.diagnose(o, code, "the loss of its worker")
	if job.Lost != "" {
		d.class.Context = merge(map[string]string{"worker": job.Lost}, d.class.Context)
	}
	record := r.record(d, o, "the worker stopped renewing its lease while it ran the job")
	if count >= limit {
		return end(record, store.ChargeCrash, max(limit, count), fmt.Sprintf("gave up as poison: %d of %d workers lost", count, limit))
	}
	backoff := r.Policy.CrashBackoff
	if backoff == nil {
		backoff = defaultCrashBackoff
	}
	within := r.retryWithin(job)
	delay, by := shortenBackoff(within, clampDelay(backoff.Delay(count, o.Roll)), backoff, o.Roll)
	return Verdict{
		To: holdfast.Queued, Delay: delay, Charge: store.ChargeCrash, Limit: limit, StartWithin: within, Failure: record,
		Why: sentence("its worker was lost, crash %d of %d; next attempt in %s by %s", count, limit, span(delay), by),
	}
}

// unhandled releases a job that was claimed by a worker without a handler for its kind: a worker of another version, or one of a
// store that cannot claim by kind. The job did not run, so it costs nothing, however often that happens.
func (r Rules) unhandled(job store.Lease, o Outcome) Verdict {
	d := r.diagnose(o, codeUnknownKind, "its kind")
	delay := min(clampDelay(defaultBackoff.Delay(increment(job.Releases), o.Roll)), time.Minute)
	return Verdict{
		To: holdfast.Queued, Delay: delay, Charge: store.ChargeRelease, StartWithin: r.retryWithinAgain(job), Failure: r.record(d, o, "no handler for kind "+job.Kind),
		Why: sentence(releasedAtNoCost+"this worker has no handler for kind %s; next attempt in %s", job.Kind, span(delay)),
	}
}

func (r Rules) expired(_ store.Lease, o Outcome) Verdict {
	d := r.diagnose(o, codeExpired, "its expiry")
	return end(r.record(d, o, "the job's expiry passed before an attempt could start"), store.ChargeNone, 0, "not started: its expiry has passed")
}

func (r Rules) unreadable(job store.Lease, o Outcome) Verdict {
	text := "the job cannot be read"
	if job.Corrupt != "" {
		text = job.Corrupt
	}
	d := r.diagnose(o, codeUnreadable, "its contents")
	limit := max(r.Policy.terms(d.code, job.MaxAttempts).limit, increment(job.Failures))
	return end(r.record(d, o, text), store.ChargeFailure, limit, "never retried: the job cannot be read")
}

// unsettleable ends a job whose result the store refuses to record. It charges nothing, because the attempt itself may have
// succeeded.
func (r Rules) unsettleable(o Outcome) Verdict {
	d := r.diagnose(o, codeSystem, "the store's refusal")
	return end(r.record(d, o, "the store refused the settlement"), store.ChargeNone, 0, "never retried: the store rejected the attempt's result")
}

// end returns a verdict of failure for good. limit must not be below the counter: a limit that was lowered while the job
// waited ends the job and is no violation for the integrity check.
func end(record *holdfast.Failure, charge store.Charge, limit int, why string) Verdict {
	return Verdict{To: holdfast.Failed, Charge: charge, Limit: limit, Failure: record, Why: sentence("%s", why), Alarm: !record.Benign}
}

// words says how the failure was classified, as the beginning of a sentence.
func (d diagnosis) words() string {
	words := "classified " + d.code.Name + " by " + d.class.Rule
	if d.strange && d.class.Code == d.code.Name {
		words += " (not in the taxonomy: treated as UNKNOWN)"
	} else if d.strange {
		words += fmt.Sprintf(" (%.40q is not a valid code)", d.class.Code)
	}
	return words + "; "
}

func sentence(format string, args ...any) string {
	return line(strings.TrimSpace(fmt.Sprintf(format, args...)), maxWhy)
}

// increment returns n+1, within the range that a store can count, even if n comes from a damaged row.
func increment(n int) int { return min(max(n, 0), math.MaxInt32-1) + 1 }
