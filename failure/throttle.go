package failure

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Throttle says what it costs a job when the dependency asks for a later call.
type Throttle string

const (
	// ThrottleByMark is the zero value: an error that the handler marked with Throttled costs nothing, and every other
	// error costs an attempt.
	ThrottleByMark Throttle = ""
	// ThrottleFree also makes an error free that asks for a wait: status 429 or 503, or a code of the category throttled,
	// together with a Retry-After.
	ThrottleFree Throttle = "free"
	// ThrottleAttempt costs an attempt each time, even if the handler marked the error.
	ThrottleAttempt Throttle = "attempt"
)

const (
	// defaultThrottleLimit is the age at which a throttled job fails when its policy has no GiveUpAfter. It is longer than
	// the quota periods that services commonly use (a second to a day) and than a weekend, and short enough that a job does
	// not stay throttled for ever.
	defaultThrottleLimit = 7 * 24 * time.Hour
	// minThrottle keeps a job that is throttled without a wait from being claimed again and again without a pause.
	minThrottle = time.Second
	// throttledFact is the key in the context of a failure record that marks a throttled attempt; its value is the wait.
	throttledFact = "throttled"
)

// IsThrottled reports whether a failure record belongs to a throttled attempt, which cost nothing.
func IsThrottled(f *holdfast.Failure) bool { return f != nil && f.Context[throttledFact] != "" }

// throttled decides about an attempt after which the dependency asked for a later call: the job waits and spends no
// attempt. There is always a limit on the job's age, because otherwise the job could wait for ever. ok is false if the
// failure is no throttle.
func (r Rules) throttled(job store.Lease, o Outcome, d diagnosis) (v Verdict, ok bool) {
	t := r.Policy.terms(d.code, job.MaxAttempts)
	if !t.throttles(d) {
		return v, false
	}
	delay, by := t.throttle(job, o, d)
	record := r.record(d, o, "")
	limit := orDefault(t.giveUpAfter, defaultThrottleLimit)
	call := t.throttledCall(o, d, r.blamed(d))
	if o.Age >= limit || delay > limit-max(o.Age, 0) {
		why := fmt.Sprintf("%sgave up: still throttled, and a wait of %s ends after the limit of %v", d.words(), span(delay), limit)
		return r.withCall(end(record, store.ChargeNone, 0, why), call, d), true
	}
	return r.withCall(released(Verdict{Delay: delay, Throttled: true, Why: sentence("%sthrottled: waits %s by %s; no attempt spent", d.words(), span(delay), by)}, record), call, d), true
}

// released returns a verdict that releases a job with a record of what happened. It costs nothing, so the record belongs to
// no error group.
func released(v Verdict, record *holdfast.Failure) Verdict {
	record.Fingerprint = ""
	if v.Throttled {
		record.Context = merge(map[string]string{throttledFact: span(v.Delay)}, record.Context)
	}
	v.To, v.Charge, v.Failure = holdfast.Queued, store.ChargeRelease, record
	return v
}

// throttles reports whether a failure is a throttle by these terms.
func (t terms) throttles(d diagnosis) bool {
	switch {
	case d.marks.never, t.forbidden, t.throttled == ThrottleAttempt:
		return false
	case d.marks.throttle != nil:
		return true
	case t.throttled != ThrottleFree || !t.retryable:
		return false
	}
	status := d.class.Context["http_status"]
	return (d.class.RetryAfter > 0 || d.marks.after != nil) && (status == "429" || status == "503" || d.code.Category == "throttled")
}

// throttle returns how long a throttled job waits, and who asked for it. Without a wait from the handler or the dependency
// it is the backoff for as many failures as the job has releases.
func (t terms) throttle(job store.Lease, o Outcome, d diagnosis) (time.Duration, string) {
	asked, who := d.class.RetryAfter, "the other side's Retry-After"
	switch {
	case d.marks.throttle != nil && *d.marks.throttle > 0:
		asked, who = *d.marks.throttle, "the handler's Throttled"
	case d.marks.after != nil:
		asked, who = *d.marks.after, "the handler's RetryAfter"
	case asked <= 0:
		asked, who = t.backoff.Delay(increment(job.Releases), o.Roll), shape(t.backoff)
	}
	if asked > t.cap {
		asked, who = t.cap, who+", capped"
	}
	return clampDelay(max(asked, minThrottle)), who
}

// throttledCall returns what a throttle shows about the dependency: nothing, because the dependency answered, except for a
// status 503, with which the dependency itself says that it is unavailable. The policy can override both
// (ThrottleTripsBreaker).
func (t terms) throttledCall(o Outcome, d diagnosis, dependency string) Call {
	trips := d.class.Context["http_status"] == "503"
	if t.throttleTrips != nil {
		trips = *t.throttleTrips
	}
	switch {
	case !trips:
		return NoCall
	case t.throttleTrips != nil && dependency != "":
		return BadCall
	}
	return callOf(o, d, dependency)
}
