package failure

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A mark is a handler's word on its own error. It does not show in the error's text, and it is found through any wrapping
// that errors.Is would see through.
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

// NeverRetry says that waiting cannot cure the error: the job fails for good, whatever its code.
func NeverRetry(err error) error { return put(err, mark{never: true}) }

// RetryAfter asks for the next attempt no sooner than d from now. The attempt still counts as failed. The policy's own
// delay is used when it is longer, and the policy caps d.
func RetryAfter(err error, d time.Duration) error {
	d = clampDelay(d)
	return put(err, mark{after: &d})
}

// Throttled says that the other side asked for less: a rate limit, a quota. The job waits for d and no attempt is spent; its code and message are
// kept in its story. The policy caps d; when d is zero the wait is the other side's Retry-After, or else the policy's backoff. A job that is
// throttled until its policy's GiveUpAfter, or for 7 days without one, fails with the error's code.
func Throttled(err error, d time.Duration) error {
	d = clampDelay(d)
	return put(err, mark{throttle: &d})
}

// HoldDependency says that everything which calls the dependency should stay away for d: a gateway that is being restarted, an
// account whose quota is used up. The attempt still counts as failed, and its own retry waits as long. The dependency is the
// one named with On, or else the job's; the policy caps d as it caps RetryAfter.
func HoldDependency(err error, d time.Duration) error {
	d = clampDelay(d)
	return put(err, mark{hold: &d})
}

// Benign says that the error was to be expected: it is recorded in the job's story and raises no alarm. It forms no error group unless the policy says
// so. A job that it ends is failed and no dead letter: it counts in no failure metric or trend, and a subscription to job.failed is not told of it.
func Benign(err error) error { return put(err, mark{benign: true}) }

// Blameless says that the error tells nothing about any dependency, whatever its code: the caller gave up too early, or spoiled the
// call itself. No breaker counts it.
func Blameless(err error) error { return put(err, mark{blameless: true}) }

// WithCode gives the error its code, before any rule is asked.
func WithCode(err error, code string) error { return put(err, mark{code: code}) }

// On names the dependency that caused the error.
func On(err error, dependency string) error { return put(err, mark{dependency: dependency}) }

// With adds a fact to the failure's record, such as the proxy that was used. The value is scrubbed and capped.
func With(err error, key, value string) error { return put(err, mark{key: key, value: value}) }

// put marks an error. There is nothing to say about no error, so nil stays nil.
func put(err error, m mark) error {
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

// Snooze sends the job back to its queue for d without a failure: nothing was wrong, it is only too early. Of the
// marks on a snooze only HoldDependency, and On with it, mean something.
func Snooze(d time.Duration) error { return snooze(clampDelay(d)) }

// marks is what all the marks on an error say together. The outermost mark of each sort wins.
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

// add puts a mark below those already read.
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
	if _, said := a.context[m.key]; !said {
		a.context[m.key] = m.value
	}
}

// walk visits an error and what it wraps, outermost first, until visit says to stop. It visits no more than a thousand, so
// that an error which wraps itself does no harm, and reports whether that was enough.
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

// clampDelay keeps a delay within what a store accepts.
func clampDelay(d time.Duration) time.Duration { return min(max(d, 0), holdfast.MaxDelay) }
