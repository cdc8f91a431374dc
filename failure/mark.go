package failure

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/internal/check"
)

// A mark is what a handler says about its own error. It does not change the error's text, and it is found through any wrapping
// that errors.Is sees through.
type mark struct {
	cause      error
	never      bool
	benign     bool
	blameless  bool
	after      *time.Duration
	hold       *time.Duration
	throttle   *time.Duration
	code       string
	dependency string
	key, value string
}

func (m *mark) Error() string { return m.cause.Error() }
func (m *mark) Unwrap() error { return m.cause }

// NeverRetry says that a retry cannot succeed: the job fails for good, whatever its code. Like all functions that mark an
// error it returns nil for a nil error, and marks can be combined: the outermost mark of each kind applies.
func NeverRetry(err error) error { return addMark(err, mark{never: true}) }

// RetryAfter asks for the next attempt no sooner than d from now. The attempt still counts as failed. The policy's backoff
// applies if it is longer, and the policy limits d (Policy.RetryAfterCap).
func RetryAfter(err error, d time.Duration) error {
	d = clampDelay(d)
	return addMark(err, mark{after: &d})
}

// Throttled says that the dependency asked for fewer calls: a rate limit, a quota. The job waits for d and spends no
// attempt; code and message are kept in its story. The policy limits d; if d is zero, the wait is the Retry-After of the
// error, or else the policy's backoff. A job that stays throttled until its policy's GiveUpAfter, or for 7 days without
// one, fails with the error's code.
func Throttled(err error, d time.Duration) error {
	d = clampDelay(d)
	return addMark(err, mark{throttle: &d})
}

// HoldDependency asks to hold all jobs that call the dependency for d: for a gateway that is being restarted, or an account
// whose quota is used up. The attempt still counts as failed, and its retry waits as long. The dependency is the one named
// with On, or else the job's; the policy limits d as it limits RetryAfter.
func HoldDependency(err error, d time.Duration) error {
	d = clampDelay(d)
	return addMark(err, mark{hold: &d})
}

// Benign says that the error is expected: it is recorded in the job's story and raises no alert. It forms no error group
// unless the policy says so. A job that it ends is failed and not a dead letter: it counts in no failure metric or trend,
// and subscriptions to job.failed are not notified of it.
func Benign(err error) error { return addMark(err, mark{benign: true}) }

// Blameless says that the error shows nothing about any dependency, whatever its code: the caller gave up too early, or
// made a wrong call. No breaker counts it.
func Blameless(err error) error { return addMark(err, mark{blameless: true}) }

// WithCode gives the error its code. Rules are not consulted.
func WithCode(err error, code string) error { return addMark(err, mark{code: code}) }

// On names the dependency that caused the error.
func On(err error, dependency string) error { return addMark(err, mark{dependency: dependency}) }

// With adds a fact to the failure record, such as the proxy that was used. Secrets are removed from the value, and its
// length is limited.
func With(err error, key, value string) error { return addMark(err, mark{key: key, value: value}) }

// addMark adds a mark to an error. A nil error stays nil.
func addMark(err error, m mark) error {
	if err == nil {
		return nil
	}
	m.cause = err
	return &m
}

type snooze time.Duration

func (s snooze) Error() string {
	return fmt.Sprintf("snoozed for %v", time.Duration(s))
}

// Snooze returns an error that sends the job back to its queue for d without a failure, because it is too early to run. It
// costs nothing. Of the marks on a snooze only HoldDependency, and On with it, have an effect.
func Snooze(d time.Duration) error { return snooze(clampDelay(d)) }

// marks are all marks on an error. The outermost mark of each kind applies.
type marks struct {
	never, benign    bool
	blameless        bool
	snooze, after    *time.Duration
	hold, throttle   *time.Duration
	code, dependency string
	context          map[string]string
}

func readMarks(err error) marks {
	var all marks
	walk(err, func(e error) bool {
		switch e := e.(type) {
		case snooze:
			if all.snooze == nil {
				d := time.Duration(e)
				all.snooze = &d
			}
		case *mark:
			all.add(e)
		}
		return true
	})
	return all
}

// add adds a mark from further inside the error chain; it does not replace marks that are set.
func (a *marks) add(m *mark) {
	a.never = a.never || m.never
	a.benign = a.benign || m.benign
	a.blameless = a.blameless || m.blameless
	if a.after == nil {
		a.after = m.after
	}
	if a.hold == nil {
		a.hold = m.hold
	}
	if a.throttle == nil {
		a.throttle = m.throttle
	}
	if a.code == "" {
		a.code = m.code
	}
	if a.dependency == "" {
		a.dependency = m.dependency
	}
	if m.key == "" {
		return
	}
	if a.context == nil {
		a.context = make(map[string]string)
	}
	if _, set := a.context[m.key]; !set {
		a.context[m.key] = m.value
	}
}

// walk visits an error and everything it wraps, outermost first, until visit returns false. It visits at most a thousand
// errors, so that an error that wraps itself does no harm, and reports whether that was enough.
func walk(err error, visit func(error) bool) (enough bool) {
	left := 1000
	var step func(error) bool
	step = func(err error) bool {
		if err == nil {
			return true
		}
		if left--; left < 0 || !visit(err) {
			return false
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			return step(e.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				if !step(inner) {
					return false
				}
			}
		}
		return true
	}
	step(err)
	return left >= 0
}

// clampDelay limits a delay to the range that a store accepts.
func clampDelay(d time.Duration) time.Duration { return min(max(d, 0), check.MaxDelay) }
