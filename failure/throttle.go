package failure

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Throttle says what it costs a job when the other side asks it to come back later.
type Throttle string

const (
	// ThrottleByMark is the zero value: an error that the handler marked with Throttled is free, and every other one spends an attempt.
	ThrottleByMark Throttle = ""
	// ThrottleFree also makes an answer free that asks for a wait: status 429 or 503, or a code of the category throttled, together with a
	// Retry-After.
	ThrottleFree Throttle = "free"
	// ThrottleAttempt spends an attempt each time, whatever the handler said.
	ThrottleAttempt Throttle = "attempt"
)

const (
	// defaultThrottleLimit is the age at which a throttled job fails when its policy has no GiveUpAfter. It is longer than the quota periods that
	// services commonly use (a second to a day) and than a weekend, and short enough that a job does not stay throttled for ever.
	defaultThrottleLimit = 7 * 24 * time.Hour
	// minThrottle keeps a job that is throttled without a wait from being claimed again at once, over and over.
	minThrottle = time.Second
	// throttledFact is the fact in the context of a failure record by which readers tell a throttled attempt; its value is the wait.
	throttledFact = "throttled"
)

// IsThrottled reports whether a failure record is that of an attempt that was throttled, and so spent nothing.
func IsThrottled(f *holdfast.Failure) bool { return f != nil && f.Context[throttledFact] != "" }

// throttled decides about an attempt that the other side asked to come back later: the job waits and no attempt is spent. Without a limit on the
// job's age such a job could wait for ever, so there always is one.
func (r Rules) throttled(job holdfast.Lease, o Outcome, d diagnosis) (v Verdict, ok bool) {
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
		return r.report(end(record, holdfast.ChargeNothing, 0, why), call, d), true
	}
	return r.report(released(Verdict{Delay: delay, Throttled: true, Why: sentence("%sthrottled: waits %s by %s; no attempt spent", d.words(), span(delay), by)}, record), call, d), true
}

// released hands a job back with the record of what happened. It spends nothing, so the record belongs to no error group.
func released(v Verdict, record *holdfast.Failure) Verdict {
	record.Fingerprint = ""
	if v.Throttled {
		record.Context = merge(map[string]string{throttledFact: span(v.Delay)}, record.Context)
	}
	v.To, v.Charge, v.Failure = holdfast.Queued, holdfast.ChargeInterrupt, record
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

// throttle is how long a throttled job waits, and by whose word. Without one it is the backoff for as many failures as the job has releases.
func (t terms) throttle(job holdfast.Lease, o Outcome, d diagnosis) (time.Duration, string) {
	asked, who := d.class.RetryAfter, "the other side's Retry-After"
	switch {
	case d.marks.throttle != nil && *d.marks.throttle > 0:
		asked, who = *d.marks.throttle, "the handler's word"
	case d.marks.after != nil:
		asked, who = *d.marks.after, "the handler's wish"
	case asked <= 0:
		asked, who = t.backoff.Delay(oneMore(job.Interrupts), o.Roll), shape(t.backoff)
	}
	if asked > t.cap {
		asked, who = t.cap, who+", capped"
	}
	return clampDelay(max(asked, minThrottle)), who
}

// throttledCall is what a throttle says about the dependency: nothing, because the dependency answered. An answer 503 is the exception: the
// dependency says itself that it is not available. The policy has the last word on both.
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
	return called(o, d, dependency)
}
