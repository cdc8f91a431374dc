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

// A Policy says how often and how long to try. Its zero value gives up after 3 failed attempts or 3 lost workers, and waits
// 5 to 10 s after the first failure, 10 to 15 s after the second and so on, never longer than an hour.
type Policy struct {
	// MaxAttempts is after how many failed attempts the job has failed for good; 3 when zero. A job's own number wins.
	MaxAttempts int
	// GiveUpAfter is how old the job may be, counted from its enqueue or last manual retry, when a retry starts; a failure
	// after which no retry could start in time is the last. No limit when zero.
	GiveUpAfter time.Duration
	// Backoff is the wait between attempts; 5 s doubling up to an hour, and up to 5 s on top, when nil.
	Backoff Backoff
	// MaxCrashes is after how many lost workers the job is presumed to kill them and fails as poison; 3 when zero.
	MaxCrashes int
	// CrashBackoff is the wait after a worker was lost. When nil the job is taken up at once the first time, because the
	// worker is the likelier culprit, and after 1 s, 2 s, 4 s up to a minute from then on.
	CrashBackoff Backoff
	// RetryAfterCap is the longest wait that the handler or the other side may ask for; an hour when zero.
	RetryAfterCap time.Duration
	// RetryWithin is a promise: after a failed attempt the next one starts within this time. A backoff that is longer is
	// shortened to keep it; a wait that somebody else asked for is not. A job's own word wins. No promise when zero.
	RetryWithin time.Duration
	// Throttle says what a request to come back later costs; by the handler's mark alone when empty.
	Throttle Throttle
	// ThrottleTripsBreaker says whether a throttle counts against the dependency in its breaker. When nil an answer 503 does and nothing else.
	ThrottleTripsBreaker *bool
	// GroupBenign lets benign failures form error groups. They form none when nil.
	GroupBenign *bool
	// Learned gives up early when experience says that another attempt is in vain: see Rules.Hopes.
	Learned bool
	// Hopeless is the share of retries that have to help, at the very best, for another to be made; 0.02 when zero.
	Hopeless float64
	// Codes are exceptions by the code's name.
	Codes map[string]Override
}

// An Override is what a policy says otherwise for one code. Zero fields leave it as it is.
type Override struct {
	MaxAttempts int
	GiveUpAfter time.Duration
	Backoff     Backoff
	Retryable   *bool

	Throttle             Throttle
	ThrottleTripsBreaker *bool
	GroupBenign          *bool
}

// Rules are all that a verdict depends on besides the job and the outcome. The zero value works.
type Rules struct {
	Taxonomy   *Taxonomy // the built-in codes when nil
	Classify   Rule      // asked before DefaultRule
	Policy     Policy
	Dependency string // what this kind of job calls, unless a job says otherwise: named in the record when the code blames a dependency

	// Hopes is what experience says about trying again, by the code of a failure and its number, 1 the first.
	Hopes map[string]map[int]Hope
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

// Check refuses rules that make no sense, naming every problem at once. Decide does not need it: it takes a number that
// makes no sense for the default.
func (r Rules) Check() error {
	p := r.Policy
	problems := []error{
		refuseCount("MaxAttempts", p.MaxAttempts), refuseCount("MaxCrashes", p.MaxCrashes),
		refuseSpan("GiveUpAfter", p.GiveUpAfter), refuseSpan("RetryAfterCap", p.RetryAfterCap),
		refuseSpan("RetryWithin", p.RetryWithin), refuseThrottle("Throttle", p.Throttle),
	}
	if !(p.Hopeless >= 0 && p.Hopeless < 1) {
		problems = append(problems, fmt.Errorf("Policy.Hopeless is %v: give a share above 0 and below 1, or 0 for the default", p.Hopeless))
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

// terms is a policy as it applies to one failure of one job.
type terms struct {
	retryable   bool
	limit       int
	giveUpAfter time.Duration
	backoff     Backoff
	cap         time.Duration
	within      time.Duration

	forbidden     bool // the policy itself says that the code is never retried
	throttled     Throttle
	throttleTrips *bool
}

// terms works out the policy for one code and job: the job's own count wins over the code's, the code's over the policy's.
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

// firstPositive is the first number above zero, within what a store can count.
func firstPositive(numbers ...int) int {
	for _, n := range numbers {
		if n > 0 {
			return min(n, math.MaxInt32)
		}
	}
	return 1
}
