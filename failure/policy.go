package failure

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// A Policy says how often and how long to retry. The zero value gives up after 3 failed attempts or 3 lost workers, and waits
// 5 to 10 s after the first failure, 10 to 15 s after the second and so on, at most an hour.
type Policy struct {
	// MaxAttempts is the number of failed attempts after which the job has failed for good; 3 when zero. A limit on the job
	// itself takes precedence.
	MaxAttempts int
	// GiveUpAfter is the maximum age of a job at the start of a retry, counted from its enqueue or last manual retry. If no
	// retry could start in time, the job fails for good. No limit when zero.
	GiveUpAfter time.Duration
	// Backoff is the delay between attempts. When nil: 5 s, doubled each time up to an hour, plus up to 5 s.
	Backoff Backoff
	// MaxCrashes is the number of lost workers after which the job fails with POISON, because it probably ends its workers;
	// 3 when zero.
	MaxCrashes int
	// CrashBackoff is the delay after a worker was lost. When nil the first retry is immediate, because the worker is more
	// likely the cause than the job; later ones wait 1 s, 2 s, 4 s and so on up to a minute.
	CrashBackoff Backoff
	// RetryAfterCap is the longest wait that a handler or a Retry-After header may ask for; an hour when zero.
	RetryAfterCap time.Duration
	// RetryWithin is the time within which the next attempt starts after a failed one. A longer backoff is shortened to it;
	// a wait that the handler or the dependency asked for is not. A value on the job itself takes precedence. No limit when
	// zero.
	RetryWithin time.Duration
	// Throttle says whether a throttled attempt costs an attempt; only the handler's mark decides when empty.
	Throttle Throttle
	// ThrottleTripsBreaker says whether a throttled attempt counts as a failed call in the breaker. When nil, only a status
	// 503 does.
	ThrottleTripsBreaker *bool
	// GroupBenign says whether benign failures form error groups. When nil they do not.
	GroupBenign *bool
	// Learned gives up early when experience shows that another attempt is unlikely to succeed; see Rules.SuccessRates.
	Learned bool
	// MinSuccessRate is the share of retries that must succeed, at the optimistic end of the estimate, for another retry to be
	// made; 0.02 when zero.
	MinSuccessRate float64
	// Codes are exceptions for single codes, by name.
	Codes map[string]Override
}

// An Override changes a policy for one code. Zero fields change nothing.
type Override struct {
	MaxAttempts int
	GiveUpAfter time.Duration
	Backoff     Backoff
	Retryable   *bool

	Throttle             Throttle
	ThrottleTripsBreaker *bool
	GroupBenign          *bool
}

// Rules are everything that a verdict depends on besides the job and the outcome. The zero value works. Rules are only
// read, so they may be shared between goroutines.
type Rules struct {
	Taxonomy   *Taxonomy // the built-in codes when nil
	Classify   Rule      // used before DefaultRule
	Policy     Policy
	Dependency string // dependency of this kind of job, unless the job names another; recorded when the code blames a dependency

	// SuccessRates is the experience with retries, by code and number of the failed attempt, 1 the first.
	SuccessRates map[string]map[int]SuccessRate
}

var (
	defaultBackoff      = Exponential{Base: 5 * time.Second, Factor: 2, Cap: time.Hour, Jitter: Jitter{Plus: 5 * time.Second}}
	defaultCrashBackoff = Table{
		0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute,
	}
)

const (
	defaultMaxAttempts   = 3
	defaultMaxCrashes    = 3
	defaultRetryAfterCap = time.Hour
)

// Check returns an error that names every problem, or nil. Decide does not need it: it replaces an invalid number by
// the default.
func (r Rules) Check() error {
	p := r.Policy
	problems := []error{
		refuseCount("MaxAttempts", p.MaxAttempts), refuseCount("MaxCrashes", p.MaxCrashes),
		refuseSpan("GiveUpAfter", p.GiveUpAfter), refuseSpan("RetryAfterCap", p.RetryAfterCap),
		refuseSpan("RetryWithin", p.RetryWithin), refuseThrottle("Throttle", p.Throttle),
	}
	if !(p.MinSuccessRate >= 0 && p.MinSuccessRate < 1) {
		problems = append(problems, fmt.Errorf("Policy.MinSuccessRate is %v: give a share above 0 and below 1, or 0 for the default", p.MinSuccessRate))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Codes)) {
		if _, ok := r.Taxonomy.Code(name); !ok {
			problems = append(problems, fmt.Errorf("Policy.Codes names %q, which is not in the taxonomy: add the code or correct the name", name))
		}
		o := p.Codes[name]
		problems = append(problems, refuseCount("Codes["+name+"].MaxAttempts", o.MaxAttempts), refuseSpan("Codes["+name+"].GiveUpAfter", o.GiveUpAfter),
			refuseThrottle("Codes["+name+"].Throttle", o.Throttle))
	}
	return errors.Join(problems...)
}

func refuseCount(field string, n int) error {
	if n < 0 || n > math.MaxInt32 {
		return fmt.Errorf("Policy.%s is %d: give a number from 1 to %d, or 0 for the default", field, n, math.MaxInt32)
	}
	return nil
}

func refuseSpan(field string, d time.Duration) error {
	if d != clampDelay(d) {
		return fmt.Errorf("Policy.%s is %v: give a duration up to 100 years, or 0 for the default", field, d)
	}
	return nil
}

func refuseThrottle(field string, t Throttle) error {
	if t != ThrottleByMark && t != ThrottleFree && t != ThrottleAttempt {
		return fmt.Errorf("Policy.%s is %.40q: use free or attempt, or leave it empty", field, t)
	}
	return nil
}

// terms are the parts of a policy that apply to one failure of one job.
type terms struct {
	retryable   bool
	limit       int
	giveUpAfter time.Duration
	backoff     Backoff
	cap         time.Duration
	within      time.Duration

	forbidden     bool // the policy says that the code is never retried
	throttled     Throttle
	throttleTrips *bool
}

// terms computes what applies to one code and job. A limit on the job takes precedence over the code's, and that over the
// policy's.
func (p Policy) terms(code Code, own int) terms {
	over := p.Codes[code.Name]
	t := terms{
		retryable:   code.Retryable,
		limit:       firstPositive(own, over.MaxAttempts, p.MaxAttempts, defaultMaxAttempts),
		giveUpAfter: orDefault(over.GiveUpAfter, max(p.GiveUpAfter, 0)),
		backoff:     over.Backoff,
		cap:         orDefault(p.RetryAfterCap, defaultRetryAfterCap),

		forbidden:     over.Retryable != nil && !*over.Retryable,
		throttled:     cmp.Or(over.Throttle, p.Throttle),
		throttleTrips: cmp.Or(over.ThrottleTripsBreaker, p.ThrottleTripsBreaker),
	}
	if over.Retryable != nil {
		t.retryable = *over.Retryable
	}
	if t.backoff == nil {
		t.backoff = p.Backoff
	}
	if t.backoff == nil {
		t.backoff = defaultBackoff
	}
	return t
}

// groupsBenign reports whether benign failures with a code form an error group.
func (p Policy) groupsBenign(code string) bool {
	asked := cmp.Or(p.Codes[code].GroupBenign, p.GroupBenign)
	return asked != nil && *asked
}

// firstPositive returns the first number above zero, limited to the range that a store can count.
func firstPositive(numbers ...int) int {
	for _, n := range numbers {
		if n > 0 {
			return min(n, math.MaxInt32)
		}
	}
	return 1
}
