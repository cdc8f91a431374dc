package failure

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// An Event is how an attempt ended.
type Event uint8

const (
	Returned           Event = iota // the handler returned: complete when Err is nil
	Panicked                        // the handler panicked; Err is what it panicked with
	Exited                          // the handler ended its goroutine
	TimedOut                        // the handler's time was up, whether it obeyed or not
	Lost                            // the worker went silent while it ran the job
	Interrupted                     // the worker is stopping and hands the job back
	Expired                         // the job could not start in time
	CancelledByRequest              // a person asked the job to stop
	Unreadable                      // the row is damaged, or the arguments cannot be decoded
	Unhandled                       // no handler for this kind
	FastFailed                      // not started, because its dependency's circuit is open and fails fast
	Held                            // not started, because its dependency is held; Err says by what
	Unsettleable                    // the store refused the settlement of the attempt although its lease is held; Err is the refusal
)

// An Outcome is what is known when an attempt ends. Everything a verdict could want from outside is in it.
type Outcome struct {
	Event  Event
	Err    error
	Stack  string // of a panic
	Code   string // with FastFailed: the failure's code; DEPENDENCY_DOWN when empty
	Result json.RawMessage
	Took   time.Duration // how long the attempt ran; 0 when it never started
	Age    time.Duration // since the generation began
	Roll   float64       // chance, at least 0 and below 1

	// Probe says that the breaker of the job's own dependency was open or half-open when the attempt began or when it ended. A
	// failure that blames this dependency is then not charged.
	Probe bool
	Wait  time.Duration // with Probe and Held: the next attempt starts no sooner than this
}

// A Verdict is what becomes of the job, and why.
type Verdict struct {
	To      holdfast.State
	Delay   time.Duration
	Charge  holdfast.Charge
	Limit   int           // the cap the charge was judged by, never below the count
	Within  time.Duration // a promise: the next attempt starts within this time; 0 is none
	Failure *holdfast.Failure
	Why     string // a sentence for the job's story
	Alarm   bool   // the job has failed for good, and nobody expected it

	Throttled bool // with Queued: the other side asked to come back later, and no attempt is spent

	Call       Call          // what the attempt says about its dependency
	Hold       time.Duration // so long nobody is to call the dependency, because the handler said so
	Dependency string        // the one that Call and Hold are about; empty when none is known
}

// Decide is the single switch: every attempt, however it ended, becomes a verdict here and nowhere else. It is a pure
// function and answers for any input; the settlement made of its verdict passes holdfast's check.
func Decide(r Rules, job holdfast.Lease, o Outcome) Verdict {
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
		return r.failed(job, o, r.diagnose(o, codeTimeout, "its time limit"), "the attempt ran out of time")
	case Unhandled:
		return r.unhandled(job, o)
	case Lost:
		return r.lost(job, o)
	case Interrupted:
		return Verdict{To: holdfast.Queued, Charge: holdfast.ChargeInterrupt, Within: r.renewed(job), Why: "handed back for free: its worker is stopping"}
	case Held:
		return r.held(job, o)
	case FastFailed:
		return r.fastFailed(o)
	case CancelledByRequest:
		return Verdict{To: holdfast.Cancelled, Why: "stopped: a person asked for it"}
	case Expired:
		return r.expired(job, o)
	case Unreadable:
		return r.unreadable(job, o)
	case Unsettleable:
		return r.unsettleable(o)
	default:
		return r.failed(job, o, r.diagnose(o, codeSystem, "an outcome that makes no sense"), fmt.Sprintf("outcome %d is not one of the known events", o.Event))
	}
}

// Settlement writes a verdict down for the store, in the name of the lease it ends.
func (v Verdict) Settlement(l holdfast.Lease, o Outcome) holdfast.Settlement {
	s := holdfast.Settlement{
		Batch: l.Batch, Job: l.ID, Token: l.Token, Queue: l.Queue,
		To: v.To, Delay: v.Delay, Charge: v.Charge, Limit: max(0, min(v.Limit, math.MaxInt32)), Within: v.Within,
		Took: clampDelay(o.Took), Failure: v.Failure, Why: v.Why,
	}
	if v.To == holdfast.Complete && len(o.Result) > 0 {
		s.Result = o.Result
	}
	return s
}

func (r Rules) returned(job holdfast.Lease, o Outcome) Verdict {
	if o.Err == nil {
		if problem := resultProblem(o.Result); problem != "" {
			return r.failed(job, o, r.diagnose(o, codeResult, "its result"), problem)
		}
		return Verdict{To: holdfast.Complete, Call: GoodCall, Dependency: r.Dependency}
	}
	d := r.diagnose(o, "", "")
	if d.marks.snooze != nil {
		delay := clampDelay(*d.marks.snooze)
		return r.report(Verdict{
			To: holdfast.Queued, Delay: delay, Charge: holdfast.ChargeInterrupt,
			Why: "handed back for free: the handler snoozed it for " + span(delay),
		}, NoCall, d)
	}
	if v, throttled := r.throttled(job, o, d); throttled {
		return v
	}
	return r.failed(job, o, d, "")
}

// resultProblem says why a result cannot be kept. The work is done by then, so it must not be done again for that.
func resultProblem(result json.RawMessage) string {
	switch {
	case len(result) > holdfast.MaxArgs:
		return fmt.Sprintf("the result has %d bytes; the limit is %d: store it elsewhere and return a reference", len(result), holdfast.MaxArgs)
	case len(result) > 0 && !(json.Valid(result) && utf8.Valid(result)):
		return "the result is not valid JSON"
	}
	return ""
}

// failed decides between another attempt and the end.
func (r Rules) failed(job holdfast.Lease, o Outcome, d diagnosis, otherwise string) Verdict {
	t := r.Policy.terms(d.code, job.MaxAttempts)
	t.within = r.promised(job)
	count := oneMore(job.Failures)
	record, call := r.record(d, o, otherwise), called(o, d, r.blamed(d))
	delay, wait := t.delay(count, o.Roll, d)
	if o.Probe && call == BadCall && r.Dependency != "" && r.blamed(d) == r.Dependency {
		return r.probed(job, o, d, record, t)
	}
	stop := t.stop(d, count, o.Age, delay)
	if stop == "" {
		stop = r.hopeless(d.code.Name, count)
	}
	if stop != "" {
		return r.report(end(record, holdfast.ChargeFailure, max(t.limit, count), d.words()+stop), call, d)
	}
	return r.report(Verdict{
		To: holdfast.Queued, Delay: delay, Charge: holdfast.ChargeFailure, Limit: t.limit, Within: t.within, Failure: record,
		Why: sentence("%sattempt %d of %d in %s by %s%s", d.words(), count+1, t.limit, span(delay), wait, r.promise(d.code.Name, count)),
	}, call, d)
}

// stop says why there is no further attempt, or nothing.
func (t terms) stop(d diagnosis, count int, age, delay time.Duration) string {
	switch {
	case d.marks.never:
		return "never retried: the handler said so"
	case !t.retryable:
		return fmt.Sprintf("never retried: the code %s is final", d.code.Name)
	case count >= t.limit:
		return fmt.Sprintf("gave up: %d of %d attempts used", count, t.limit)
	case t.giveUpAfter > 0 && age >= t.giveUpAfter:
		return fmt.Sprintf("gave up: older than %v", t.giveUpAfter)
	case t.giveUpAfter > 0 && delay > t.giveUpAfter-max(age, 0):
		return fmt.Sprintf("gave up: a retry in %s would start after the limit of %v", span(delay), t.giveUpAfter)
	}
	return ""
}

// delay is the backoff's, or what was asked for if that is longer; and which of them it is.
func (t terms) delay(count int, roll float64, d diagnosis) (time.Duration, string) {
	delay, by := keep(t.within, clampDelay(t.backoff.Delay(count, roll)), t.backoff, roll)
	asked, who := d.class.RetryAfter, "the other side's Retry-After"
	if d.marks.after != nil {
		asked, who = *d.marks.after, "the handler's wish"
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

// lost counts a crash: the job may have killed its worker, or only have been there when it went.
func (r Rules) lost(job holdfast.Lease, o Outcome) Verdict {
	limit := firstPositive(r.Policy.MaxCrashes, defaultMaxCrashes)
	count := oneMore(job.Crashes)
	code := codeLost
	if count >= limit {
		code = codePoison
	}
	d := r.diagnose(o, code, "the silence of its worker")
	if job.Lost != "" {
		d.class.Context = merge(map[string]string{"worker": job.Lost}, d.class.Context)
	}
	record := r.record(d, o, "the worker went silent while it ran the job")
	if count >= limit {
		return end(record, holdfast.ChargeCrash, max(limit, count), fmt.Sprintf("gave up as poison: %d of %d workers lost", count, limit))
	}
	backoff := r.Policy.CrashBackoff
	if backoff == nil {
		backoff = defaultCrashBackoff
	}
	within := r.promised(job)
	delay, by := keep(within, clampDelay(backoff.Delay(count, o.Roll)), backoff, o.Roll)
	return Verdict{
		To: holdfast.Queued, Delay: delay, Charge: holdfast.ChargeCrash, Limit: limit, Within: within, Failure: record,
		Why: sentence("its worker was lost, %d of %d; next attempt in %s by %s", count, limit, span(delay), by),
	}
}

// unhandled hands back a job that came to a worker without a handler for its kind: a worker of another version, or one that a store without
// claims by kind gave it to. It has not run and pays nothing, however often that happens.
func (r Rules) unhandled(job holdfast.Lease, o Outcome) Verdict {
	d := r.diagnose(o, codeUnknownKind, "its kind")
	delay := min(clampDelay(defaultBackoff.Delay(oneMore(job.Interrupts), o.Roll)), time.Minute)
	return Verdict{
		To: holdfast.Queued, Delay: delay, Charge: holdfast.ChargeInterrupt, Within: r.renewed(job), Failure: r.record(d, o, "no handler for kind "+job.Kind),
		Why: sentence("handed back for free: this worker has no handler for kind %s; next attempt in %s", job.Kind, span(delay)),
	}
}

func (r Rules) expired(_ holdfast.Lease, o Outcome) Verdict {
	d := r.diagnose(o, codeExpired, "its expiry")
	return end(r.record(d, o, "the job's expiry passed before an attempt could start"), holdfast.ChargeNothing, 0, "not started: its expiry has passed")
}

func (r Rules) unreadable(job holdfast.Lease, o Outcome) Verdict {
	text := "the job cannot be read"
	if job.Corrupt != "" {
		text = job.Corrupt
	}
	d := r.diagnose(o, codeUnreadable, "its contents")
	limit := max(r.Policy.terms(d.code, job.MaxAttempts).limit, oneMore(job.Failures))
	return end(r.record(d, o, text), holdfast.ChargeFailure, limit, "never retried: the job cannot be read")
}

// unsettleable ends a job whose result the store refuses to record. Nothing is charged: the attempt itself may have succeeded.
func (r Rules) unsettleable(o Outcome) Verdict {
	d := r.diagnose(o, codeSystem, "the store's refusal")
	return end(r.record(d, o, "the store refused the settlement"), holdfast.ChargeNothing, 0, "never retried: the store refused to record the result of the attempt")
}

// end is a failure for good. The limit it is given is never below the count, because a cap that shrank while the job was
// waiting ends the job and does not accuse it.
func end(record *holdfast.Failure, charge holdfast.Charge, limit int, why string) Verdict {
	return Verdict{To: holdfast.Failed, Charge: charge, Limit: limit, Failure: record, Why: sentence("%s", why), Alarm: !record.Benign}
}

// words says how the failure was classified, as the beginning of a sentence.
func (d diagnosis) words() string {
	words := "classified " + d.code.Name + " by " + d.class.Rule
	if d.strange && d.class.Code == d.code.Name {
		words += " (a code that is not in the taxonomy: treated as UNKNOWN)"
	} else if d.strange {
		words += fmt.Sprintf(" (%.40q is not a code)", d.class.Code)
	}
	return words + "; "
}

func sentence(format string, args ...any) string {
	return line(strings.TrimSpace(fmt.Sprintf(format, args...)), maxWhy)
}

// oneMore counts on, within what a store can count and whatever a damaged row says.
func oneMore(n int) int { return min(max(n, 0), math.MaxInt32-1) + 1 }
