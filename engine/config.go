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
)

// Config says how an engine works. The zero value works: every field says what it then means.
type Config struct {
	Name string // how people call this worker; the host's name when empty. The engine adds what makes it unique
	// Queues are claimed from; holdfast.DefaultQueue when empty. AllQueues alone stands for every queue. Of these queues an engine claims only jobs of
	// kinds that it has a handler for; one without handlers claims none.
	Queues []string
	Slots  int // handlers at work at once; 10 when zero
	// OwnerSlots is how many handlers of one owner's jobs are at work at once, so that slow jobs of one owner do not delay the others; jobs without an owner count as one owner.
	// No bound when zero.
	OwnerSlots int

	// Prefetch caps how many jobs are held ahead of a free slot; 1000 when zero, none when negative. Held ahead are only as
	// many as the slots work off while the store answers a claim, so a worker of slow jobs keeps none from others; and what
	// found no slot within a sixth of Lease is handed back.
	Prefetch int

	Lease    time.Duration // how long a silent worker is believed in; 30 s when zero. Renewed at every third of it
	Timeout  time.Duration // of an attempt whose kind sets none; 10 min when zero
	Patience time.Duration // what a handler is given to return after its context ended, before its slot is replaced; 5 s when zero
	Grace    time.Duration // what handlers at work are given at a stop before their contexts end; 30 s when zero
	Poll     time.Duration // the longest a claimable job goes unnoticed when no wake-up comes; 1 s when zero
	Sweep    time.Duration // how often lost workers and expired jobs are looked for; 5 s or a fifth of Lease, the shorter, when zero

	Taxonomy *failure.Taxonomy // which codes exist; the built-in ones when nil
	Classify failure.Rule      // names the error of a kind that has no rule of its own
	Policy   failure.Policy    // of all kinds: each field applies where neither a policy file nor the kind's own Policy gives it

	// Version is the application's: error groups tell versions apart by it.
	Version string
	// Policies are what a policy file says; package failure/policy gives the order of precedence. A policy that was applied to the store replaces
	// it, in every process, within seconds.
	Policies *policy.Set
	// Dependencies says how to deal with what jobs call. Each that a kind or a job names is looked after without being here.
	Dependencies map[string]Dependency
	// ProbeURL asks the address that a policy gives for a health probe. Without it such a probe is left out.
	ProbeURL func(ctx context.Context, url string) error

	// Retention says how long ended jobs are kept, the first rule that matches a job; DefaultRetention when nil, and without any rule
	// all are kept. Rules that were applied to the store replace it.
	Retention []holdfast.Retain
	// RetentionWarning is how long before a rule deletes dead letters for the first time it says so; 24 h when zero, none when
	// negative.
	RetentionWarning time.Duration
	// How long what happened is kept; holdfast.Forever (-1) for ever. The defaults when zero are 7, 400, 30 and 90 days.
	KeepFeed, KeepStory, KeepTallies, KeepTombstones time.Duration
	// Expire deletes an artifact whose time is up, before that is written down. It may be asked for the same one again, and in
	// several processes: deleting what is gone is no error. Without it artifacts are marked only.
	Expire func(ctx context.Context, a holdfast.Artifact) error
	// Duties are performed beside the engine's own.
	Duties []Duty
	// Leave names duties that this engine leaves to others, because their settings are elsewhere: retention, artifacts, ... Somebody must
	// perform them.
	Leave []string

	// Around wraps every handler, the first one outermost: the place for tracing and logging.
	Around []func(next Handler) Handler
	// Ended is told of every attempt that ended, after that was written, by those who settle: it must be quick.
	Ended func(End)
	// Failed is told of each job that failed for good, after that was written. It runs beside the work, one call at a time,
	// and cannot hold it up; its context ends when the engine has stopped.
	Failed func(ctx context.Context, job holdfast.Job, f holdfast.Failure)
	// Breached is told of each job whose next attempt did not start as soon as was promised, once in all processes together.
	Breached func(ctx context.Context, job holdfast.ID)
	// Moved is told of each change of a breaker, by the process that made it: once in all processes together.
	Moved func(ctx context.Context, dependency string, t breaker.Transition)
	// Log receives one line for every attempt that ended; slog.Default when nil. Arguments and results are never in it.
	Log *slog.Logger
}

// Kind says how the jobs of one kind are run. The zero value leaves everything to the engine's Config.
type Kind struct {
	Timeout    time.Duration  // how long an attempt may take; from a minute on, up to a five-hundredth longer
	Policy     failure.Policy // when to try again and when to give up; what it leaves zero is looked up as package failure/policy says
	Classify   failure.Rule   // names the errors of this kind
	Dependency string         // what its jobs call, unless they name another: its failures are blamed on it, and its breaker holds them
}

// Dependency says how to deal with something that jobs call. The zero value gives it a breaker and a budget for retries, with
// defaults.
type Dependency struct {
	Breaker  breaker.Config
	Budget   failure.Budget // how many retries its jobs may make, compared with first attempts
	NoBudget bool           // as many as they like

	// Probe asks whether it is well. While its breaker is open one process asks, and jobs are not risked; without it a few jobs
	// find out.
	Probe      func(ctx context.Context) error
	ProbeEvery time.Duration // 5 s when zero
}

// AllQueues, as the only one of Config.Queues, stands for every queue.
const AllQueues = "*"

const (
	defaultPrefetch = 1000
	maxSlots        = 100_000
	minLease        = time.Second
	maxLease        = 24 * time.Hour
)

// prepare fills in what was left to default and refuses what cannot work, naming every problem at once.
func (c *Config) prepare() error {
	problems := []error{
		refuse(c.Slots < 0 || c.Slots > maxSlots, "Slots is %d: give 1 to %d, or 0 for 10", c.Slots, maxSlots),
		refuse(c.OwnerSlots < 0, "OwnerSlots is %d: give a positive number, or 0 for no bound", c.OwnerSlots),
		refuse(c.Lease != 0 && (c.Lease < minLease || c.Lease > maxLease), "Lease is %v: give %v to %v, or 0 for 30s", c.Lease, minLease, maxLease),
		refuse(c.Timeout < 0 || c.Timeout > holdfast.MaxDelay, "Timeout is %v: give a positive duration, or 0 for 10m", c.Timeout),
		refuse(c.Patience < 0, "Patience is %v: give a positive duration, or 0 for 5s", c.Patience),
		refuse(c.Grace < 0, "Grace is %v: give a positive duration, or 0 for 30s; to stop without grace call Stop with an ended context", c.Grace),
		refuse(c.Poll < 0, "Poll is %v: give a positive duration, or 0 for 1s", c.Poll),
		refuse(c.Sweep < 0, "Sweep is %v: give a positive duration, or 0 for a fifth of Lease, at most 5s", c.Sweep),
	}
	for name, d := range c.Dependencies {
		hold := holdfast.Hold{Dependency: name, Actor: actorSystem}
		problems = append(problems,
			refuse(hold.Check() != nil || strings.HasSuffix(name, "*"), "Dependencies names %q: use 1 to %d letters, digits and _ - . : /", name, holdfast.MaxName),
			refuse(d.ProbeEvery < 0, "Dependencies[%q].ProbeEvery is %v: give a positive duration, or 0 for 5s", name, d.ProbeEvery))
		if err := errors.Join(d.Breaker.Check(), d.Budget.Check()); err != nil {
			problems = append(problems, refuse(true, "Dependencies[%q]: %v", name, err))
		}
	}
	problems = append(problems, refuse(len(c.Version) > holdfast.MaxKey, "Version has %d bytes: the limit is %d", len(c.Version), holdfast.MaxKey))
	problems = append(problems, c.checkRetention(), c.checkDuties())
	for i, around := range c.Around {
		problems = append(problems, refuse(around == nil, "Around[%d] is nil: leave it out", i))
	}
	for i, queue := range c.Queues {
		if queue == AllQueues && len(c.Queues) == 1 {
			continue
		}
		probe := holdfast.Hold{Queue: queue, Actor: actorSystem} // not as a draft: the notifier works on a queue that no draft may name
		problems = append(problems, refuse(queue == "" || probe.Check() != nil || strings.HasSuffix(queue, "*"), "Queues[%d] is %q: use 1 to %d letters, digits and _ - . : /", i, queue, holdfast.MaxName))
	}
	c.fill()
	return errors.Join(problems...)
}

// checkRetention refuses rules and durations that make no sense.
func (c *Config) checkRetention() error {
	var problems []error
	for name, keep := range map[string]time.Duration{"KeepFeed": c.KeepFeed, "KeepStory": c.KeepStory, "KeepTallies": c.KeepTallies, "KeepTombstones": c.KeepTombstones} {
		problems = append(problems, refuse(keep < 0 && keep != holdfast.Forever, "%s is %v: give a positive duration, 0 for the default, or -1 for ever", name, keep))
	}
	problems = append(problems, refuse(c.KeepStory > 0 && c.KeepStory < holdfast.MinKeepStory, "KeepStory is %v: lines of stories are the audit log, and are kept for at least %v", c.KeepStory, holdfast.MinKeepStory))
	rules := holdfast.Purge{Rules: c.Retention, Scan: 1}
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

// checkDuties refuses duties that cannot be performed or told apart.
func (c *Config) checkDuties() error {
	var problems []error
	named := make(map[string]bool)
	for _, name := range ownDuties {
		named[name] = true
	}
	for _, name := range c.Leave {
		problems = append(problems, refuse(!named[name] || !duty.Pausable(name), "Leave names %q: no engine can do without it, or there is no such duty", name))
	}
	for i, d := range c.Duties {
		probe := holdfast.Draft{Kind: "probe", Dependency: d.Name}
		problems = append(problems,
			refuse(d.Name == "" || probe.Prepare() != nil, "Duties[%d] is called %q: use 1 to %d letters, digits and _ - . : /", i, d.Name, holdfast.MaxName),
			refuse(named[d.Name], "Duties[%d] is called %q like another: give it its own name", i, d.Name),
			refuse(d.Beat <= 0, "Duties[%d], %q, has a beat of %v: give a positive duration", i, d.Name, d.Beat),
			refuse(d.Round == nil, "Duties[%d], %q, does nothing: give it a round", i, d.Name))
		named[d.Name] = true
	}
	return errors.Join(problems...)
}

func (c *Config) fill() {
	if c.Name == "" {
		c.Name, _ = os.Hostname()
	}
	if len(c.Queues) == 0 {
		c.Queues = []string{holdfast.DefaultQueue}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Slots = orElse(c.Slots, 10)
	c.Prefetch = max(0, orElse(c.Prefetch, defaultPrefetch))
	c.Lease = orElse(c.Lease, 30*time.Second)
	c.Timeout = orElse(c.Timeout, 10*time.Minute)
	c.Patience = orElse(c.Patience, 5*time.Second)
	c.Grace = orElse(c.Grace, 30*time.Second)
	c.Poll = orElse(c.Poll, time.Second)
	c.Sweep = orElse(c.Sweep, min(5*time.Second, c.Lease/5))
	if c.Retention == nil {
		c.Retention = DefaultRetention
	}
	const day = 24 * time.Hour
	c.RetentionWarning = orElse(c.RetentionWarning, day)
	c.KeepFeed, c.KeepStory = orElse(c.KeepFeed, 7*day), orElse(c.KeepStory, 400*day)
	c.KeepTallies, c.KeepTombstones = orElse(c.KeepTallies, 30*day), orElse(c.KeepTombstones, 90*day)
}

// margin is how long before a lease ends its holder stops believing in it.
func (c *Config) margin() time.Duration { return c.Lease / 10 }

func orElse[T comparable](given, otherwise T) T {
	var zero T
	if given == zero {
		return otherwise
	}
	return given
}

func refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
