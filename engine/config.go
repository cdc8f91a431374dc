package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// Config configures an engine. The zero value is valid; each field documents its default.
type Config struct {
	Name string // a readable worker name; the host name when empty. The engine appends a suffix that makes it unique
	// Queues are the queues to claim from; holdfast.DefaultQueue when empty. AllQueues as the only entry selects every queue. An engine claims only
	// jobs of kinds that it has a handler for, so one without handlers claims none.
	Queues []string
	Slots  int // the number of handlers that run at once; 10 when zero. Engine.SetSlots changes it
	// QueueSlots limits how many jobs of a queue run at once, such as {"mail": 5}; a queue that it does not name may use all Slots. The engine holds no job of such
	// a queue that its slots cannot run. Engine.SetQueueSlots changes it. KindOptions.Slots is the same for a kind.
	QueueSlots map[string]int
	// OwnerSlots limits how many jobs of one owner run at once, so that slow jobs of one owner do not delay others. Jobs without an owner count as
	// one owner. Zero means no limit.
	OwnerSlots int

	// Prefetch limits how many jobs the engine holds ahead of a free slot; 1000 when zero, none when negative. The engine holds only as many ahead as
	// its slots process while the store answers a claim, so a worker of slow jobs holds none. A job that gets no slot within a sixth of Lease
	// is released.
	Prefetch int

	Lease        time.Duration // lease duration: a job whose worker stops renewing is reclaimed after this time; 30 s when zero. Renewed every third of it
	Timeout      time.Duration // the time limit of an attempt whose kind sets none; 10 min when zero
	AbandonAfter time.Duration // how long a handler may take to return after its context ended, before its slot is replaced; 5 s when zero
	Grace        time.Duration // how long running handlers may continue at a stop before their contexts end; 30 s when zero
	Poll         time.Duration // the claim interval, and so the longest a claimable job waits if every wake-up is lost; 1 s when zero
	Sweep        time.Duration // how often expired leases and expired jobs are searched for; when zero, a fifth of Lease, at most 5 s

	Taxonomy *failure.Taxonomy // the failure codes; the built-in ones when nil
	Classify failure.Rule      // classifies errors of kinds that have no rule of their own
	Policy   failure.Policy    // for all kinds: each field applies where neither a policy file nor the kind's Policy sets it

	// Version is the version of the application. Error groups record it, so that a regression names the version that brought it.
	Version string
	// Policies is a parsed policy file; package failure/policy documents the order of precedence. A policy that an operator applies to the store
	// replaces it, in every process, within seconds.
	Policies *policy.Set
	// Dependencies configures what jobs call. A dependency that a kind or a job names and that is not listed here gets the defaults.
	Dependencies map[string]Dependency
	// ProbeURL requests the address that a policy names as a health probe. If nil, such probes are not made.
	ProbeURL func(ctx context.Context, url string) error

	// Retention sets how long ended jobs are kept: the first rule that matches a job applies, and a job that no rule matches is kept.
	// DefaultRetention when nil. Rules that an operator applies to the store replace it.
	Retention []store.RetentionRule
	// RetentionWarning is how long before its first deletion of dead letters a rule announces it; 24 h when zero, no warning when negative.
	RetentionWarning time.Duration
	// How long events in the feed, lines of stories, counts and tombstones are kept; store.Forever (-1) keeps them for ever. The defaults when
	// zero are 7, 400, 30 and 90 days.
	KeepFeed, KeepStories, KeepCounts, KeepTombstones time.Duration
	// DeleteArtifact deletes the data of an artifact that has expired; the engine marks the artifact afterwards. It may be called more than once for one
	// artifact, and in several processes, so deleting what no longer exists must not be an error. If nil, artifacts are only marked.
	DeleteArtifact func(ctx context.Context, a store.Artifact) error
	// Duties run beside the engine's own.
	Duties []Duty
	// DisableDuties names duties that this engine does not run, such as retention or artifacts, because another process has their settings. Some process
	// must run them.
	DisableDuties []string

	// Middleware wraps every handler, the first one outermost: the place for tracing and logging.
	Middleware []func(next Handler) Handler
	// OnAttemptEnd is called for every attempt that ended, after its settlement was written. It runs on the goroutine that settles, so it must return
	// quickly.
	OnAttemptEnd func(AttemptEnd)
	// OnJobFailed is called for each job that failed for good, after that was written. Calls are made one at a time on a separate goroutine and do not
	// delay jobs. Their context ends when the engine has stopped.
	OnJobFailed func(ctx context.Context, job holdfast.Job, f holdfast.Failure)
	// OnDeadlineMissed is called for each job whose next attempt missed its start deadline, once across all processes.
	OnDeadlineMissed func(ctx context.Context, job holdfast.ID)
	// OnBreakerChange is called for each state change of a breaker, in the process that made it: once across all processes.
	OnBreakerChange func(ctx context.Context, dependency string, t breaker.Transition)
	// Log receives one line for every attempt that ended; slog.Default when nil. Arguments and results are never logged.
	Log *slog.Logger
}

// KindOptions configures how jobs of one kind are run. The zero value uses the engine's Config.
type KindOptions struct {
	Timeout    time.Duration  // the time limit of an attempt. Limits of a minute or more may last up to 1/512 longer
	Policy     failure.Policy // when to retry and when to give up; package failure/policy documents what applies to zero fields
	Classify   failure.Rule   // classifies the errors of this kind
	Dependency string         // the dependency of jobs that name none: their failures count against it, and its breaker holds them
	Slots      int            // how many jobs of the kind run at once; when zero, all slots of the engine. Engine.SetKindSlots changes it
}

// Dependency configures something that jobs call. The zero value gives it a breaker and a retry budget with default settings.
type Dependency struct {
	Breaker  breaker.Config
	Budget   failure.Budget // how many retries its jobs may make, in proportion to first attempts
	NoBudget bool           // retries are not limited

	// Probe checks the health of the dependency. While the breaker is open, one process calls Probe and no job is risked. If nil, a few jobs serve
	// as probes.
	Probe      func(ctx context.Context) error
	ProbeEvery time.Duration // 5 s when zero
}

// AllQueues, as the only entry of Config.Queues, selects every queue.
const AllQueues = "*"

const (
	defaultSlots    = 10
	defaultPrefetch = 1000
	maxSlots        = 100_000
	minLease        = time.Second
	maxLease        = 24 * time.Hour
)

// prepare sets the defaults and validates the rest. The error names every problem.
func (c *Config) prepare() error {
	problems := []error{
		refuse(c.Slots < 0 || c.Slots > maxSlots, "Slots is %d: give 1 to %d, or 0 for 10", c.Slots, maxSlots),
		refuse(c.OwnerSlots < 0, "OwnerSlots is %d: give a positive number, or 0 for no limit", c.OwnerSlots),
		refuse(c.Lease != 0 && (c.Lease < minLease || c.Lease > maxLease), "Lease is %v: give %v to %v, or 0 for 30s", c.Lease, minLease, maxLease),
		refuse(c.Timeout < 0 || c.Timeout > check.MaxDelay, "Timeout is %v: give a positive duration, or 0 for 10m", c.Timeout),
		refuse(c.AbandonAfter < 0, "AbandonAfter is %v: give a positive duration, or 0 for 5s", c.AbandonAfter),
		refuse(c.Grace < 0, "Grace is %v: give a positive duration, or 0 for 30s; to stop without grace call Stop with an ended context", c.Grace),
		refuse(c.Poll < 0, "Poll is %v: give a positive duration, or 0 for 1s", c.Poll),
		refuse(c.Sweep < 0, "Sweep is %v: give a positive duration, or 0 for a fifth of Lease, at most 5s", c.Sweep),
	}
	for name, d := range c.Dependencies {
		hold := store.Hold{Dependency: name, Actor: actorSystem}
		problems = append(problems,
			refuse(hold.Check() != nil || strings.HasSuffix(name, "*"), "Dependencies names %q: use 1 to %d letters, digits and _ - . : /", name, check.MaxName),
			refuse(d.ProbeEvery < 0, "Dependencies[%q].ProbeEvery is %v: give a positive duration, or 0 for 5s", name, d.ProbeEvery))
		if err := errors.Join(d.Breaker.Check(), d.Budget.Check()); err != nil {
			problems = append(problems, refuse(true, "Dependencies[%q]: %v", name, err))
		}
	}
	problems = append(problems, refuse(len(c.Version) > check.MaxKey, "Version has %d bytes: the limit is %d", len(c.Version), check.MaxKey))
	problems = append(problems, c.checkRetention(), c.checkDuties())
	problems = append(problems, c.checkSlots()...)
	for i, around := range c.Middleware {
		problems = append(problems, refuse(around == nil, "Middleware[%d] is nil: leave it out", i))
	}
	for i, queue := range c.Queues {
		if queue == AllQueues && len(c.Queues) == 1 {
			continue
		}
		problems = append(problems, refuse(badQueue(queue), "Queues[%d] is %q: use 1 to %d letters, digits and _ - . : /", i, queue, check.MaxName))
	}
	c.setDefaults()
	return errors.Join(problems...)
}

// checkRetention validates the retention rules and durations.
func (c *Config) checkRetention() error {
	var problems []error
	for name, keep := range map[string]time.Duration{"KeepFeed": c.KeepFeed, "KeepStories": c.KeepStories, "KeepCounts": c.KeepCounts, "KeepTombstones": c.KeepTombstones} {
		problems = append(problems, refuse(keep < 0 && keep != store.Forever, "%s is %v: give a positive duration, 0 for the default, or -1 for ever", name, keep))
	}
	problems = append(problems, refuse(c.KeepStories > 0 && c.KeepStories < store.MinKeepStories, "KeepStories is %v: stories contain the audit log and must be kept for at least %v", c.KeepStories, store.MinKeepStories))
	rules := store.Purge{Rules: c.Retention, Scan: 1}
	if err := rules.Check(); err != nil {
		problems = append(problems, refuse(true, "Retention: %v", err))
	}
	named := make(map[string]bool)
	for _, r := range c.Retention {
		problems = append(problems, refuse(named[r.Name], "Retention has two rules %q: give each its own name", r.Name))
		named[r.Name] = true
	}
	return errors.Join(problems...)
}

// checkDuties refuses duties without a name of their own, an interval or a function.
func (c *Config) checkDuties() error {
	var problems []error
	named := make(map[string]bool)
	for _, name := range builtinDuties {
		named[name] = true
	}
	for _, name := range c.DisableDuties {
		problems = append(problems, refuse(!named[name] || !duty.Pausable(name), "DisableDuties names %q: there is no such duty, or every engine needs it", name))
	}
	for i, d := range c.Duties {
		probe := holdfast.Draft{Kind: "probe", Dependency: d.Name}
		problems = append(problems,
			refuse(d.Name == "" || probe.Prepare() != nil, "Duties[%d] is called %q: use 1 to %d letters, digits and _ - . : /", i, d.Name, check.MaxName),
			refuse(named[d.Name], "Duties[%d] is called %q like another duty: give it a name of its own", i, d.Name),
			refuse(d.Interval <= 0, "Duties[%d], %q, has an Interval of %v: give a positive duration", i, d.Name, d.Interval),
			refuse(d.Run == nil, "Duties[%d], %q, has no Run: give it a function", i, d.Name))
		named[d.Name] = true
	}
	return errors.Join(problems...)
}

func (c *Config) setDefaults() {
	if c.Name == "" {
		c.Name, _ = os.Hostname()
	}
	if len(c.Queues) == 0 {
		c.Queues = []string{holdfast.DefaultQueue}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Slots = orElse(c.Slots, defaultSlots)
	c.Prefetch = max(0, orElse(c.Prefetch, defaultPrefetch))
	c.Lease = orElse(c.Lease, 30*time.Second)
	c.Timeout = orElse(c.Timeout, 10*time.Minute)
	c.AbandonAfter = orElse(c.AbandonAfter, 5*time.Second)
	c.Grace = orElse(c.Grace, 30*time.Second)
	c.Poll = orElse(c.Poll, time.Second)
	c.Sweep = orElse(c.Sweep, min(5*time.Second, c.Lease/5))
	if c.Retention == nil {
		c.Retention = DefaultRetention
	}
	const day = 24 * time.Hour
	c.RetentionWarning = orElse(c.RetentionWarning, day)
	c.KeepFeed, c.KeepStories = orElse(c.KeepFeed, 7*day), orElse(c.KeepStories, 400*day)
	c.KeepCounts, c.KeepTombstones = orElse(c.KeepCounts, 30*day), orElse(c.KeepTombstones, 90*day)
}

// margin is how long before the lease expires the engine stops relying on it. The duty "watch" checks at
// least twice within it, so handlers of leases that could not be renewed are told to stop before the lease expires.
func (c *Config) margin() time.Duration { return c.Lease / 10 }

// trustedUntil returns until when leases that were claimed or renewed by a call at that time are certainly still held: the lease duration, less a
// margin. Both times are by this process's monotonic clock, so the store's clock does not matter.
func (c *Config) trustedUntil(asked time.Time) time.Time {
	return asked.Add(c.Lease - c.margin())
}

// orElse returns given, or otherwise if given is the zero value.
func orElse[T comparable](given, otherwise T) T {
	var zero T
	if given == zero {
		return otherwise
	}
	return given
}

// refuse returns an ErrInvalid with the message if bad, and nil otherwise.
func refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
