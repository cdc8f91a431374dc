package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/internal/secret"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// kindPrefix begins the kind of every delivery job; the name of the sink is the rest.
const kindPrefix = "holdfast."

// actor is the actor of what the notifier does by itself.
const actor = "holdfast"

// A Store is what a Service needs of a store.
type Store interface {
	engine.Store

	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
}

// A Service delivers events to subscribers until it is stopped. Any number of services, in any number of processes, may share a store.
type Service struct {
	store         Store
	cfg           Config
	engine        *engine.Engine
	subscriptions subscriptionCache
	relay         relay
	slotLimits    slotLimits
}

// New makes a service. A Config that cannot work is refused; the error names every problem.
func New(db Store, cfg Config) (*Service, error) {
	problems := []error{
		refuse(db == nil, "the store is nil: open one with anystore.Open"),
		refuse(len(cfg.Sinks) == 0, "Sinks is empty: give at least one, such as webhook.New"),
		refuse(cfg.Beat < 0, "Beat is %v: give a positive duration, or 0 for 200ms", cfg.Beat),
	}
	for name, sink := range cfg.Sinks {
		probe := holdfast.Draft{Kind: "delivery." + name} // as long as the kind of its deliveries
		problems = append(problems,
			refuse(name == "" || probe.Prepare() != nil, "Sinks has the name %.60q: use letters, digits and _ - . : /", name),
			refuse(sink == nil, "Sinks[%q] is nil: leave it out", name))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	s := &Service{store: db, cfg: cfg}
	s.cfg.setDefaults()
	s.subscriptions.store = db
	s.slotLimits.most = max(1, (s.cfg.Slots+1)/2)
	s.relay = newRelay(s)
	return s, s.makeEngine()
}

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Secret == nil {
		c.Secret = secret.FromEnvironment
	}
	if c.Source == "" {
		c.Source = DefaultSource
	}
	if c.Beat == 0 {
		c.Beat = 200 * time.Millisecond
	}
	if c.Slots == 0 {
		c.Slots = 10
	}
}

// leaveDuties are duties that this engine does not perform, because they need the configuration of the application's own engines: retention, deletion of artifacts, and
// the callback for missed deadlines.
var leaveDuties = []string{"retention", "artifacts", "deadline"}

// makeEngine makes the engine that runs deliveries, with the relay as one of its duties. It claims nothing ahead (Prefetch -1): owners share fairly, so the
// subscription that has waited longest gets the next free slot.
func (s *Service) makeEngine() error {
	cfg := s.cfg.Engine
	cfg.Queues, cfg.Slots, cfg.Log, cfg.Prefetch = []string{subscription.Queue}, s.cfg.Slots, s.cfg.Log, -1
	cfg.Duties = append(slices.Clone(cfg.Duties), engine.Duty{Name: "relay", Interval: s.cfg.Beat, Run: s.relay.round, Signal: s.relay.again})
	cfg.DisableDuties = slices.Concat(cfg.DisableDuties, leaveDuties)
	e, err := engine.New(s.store, cfg)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Sinks)) {
		t := s.cfg.Sinks[name].Traits()
		how := engine.KindOptions{Timeout: t.Timeout, Policy: t.Policy, Classify: t.Classify}
		if how.Timeout == 0 {
			how.Timeout = 30 * time.Second
		}
		var file *policy.Set // none: what the sink does not set has the default
		how.Policy = file.Over(policy.Own{Engine: defaultPolicy, Kind: t.Policy}, kindPrefix+name, "")
		engine.HandleRaw(e, kindPrefix+name, s.deliver, how)
	}
	s.engine = e
	return nil
}

// defaultPolicy retries for about three days.
var defaultPolicy = failure.Policy{
	MaxAttempts:   12,
	GiveUpAfter:   4 * 24 * time.Hour,
	Backoff:       failure.Exponential{Base: 5 * time.Second, Factor: 5, Cap: 12 * time.Hour, Jitter: failure.Jitter{Percent: 10}},
	RetryAfterCap: 24 * time.Hour,
}

// Run works until ctx ends or Stop is called, then stops gracefully, like an engine. A service runs once.
func (s *Service) Run(ctx context.Context) error { return s.engine.Run(ctx) }

// Stop asks for a graceful stop and waits until Run has returned. If ctx ends first, deliveries in progress are interrupted and retried later.
func (s *Service) Stop(ctx context.Context) error { return s.engine.Stop(ctx) }

// Worker is the worker name under which the service holds deliveries.
func (s *Service) Worker() string { return s.engine.Worker() }

// Check refuses a subscription that this service cannot deliver, also one whose secrets it cannot find or use. Package ops calls it before a subscription is stored
// (ops.Config.CheckSubscription).
func (s *Service) Check(sub subscription.Subscription) error {
	sink := s.cfg.Sinks[sub.Sink]
	if sink == nil {
		return refuse(true, "unknown sink %.60q: this service has %s", sub.Sink, slices.Sorted(maps.Keys(s.cfg.Sinks)))
	}
	return errors.Join(sink.Check(sub), s.CheckSecrets(sub))
}

// A secretChecker is a sink that can tell whether it can use a secret.
type secretChecker interface {
	CheckSecret(secret string) error
}

// CheckSecrets refuses a subscription whose secrets this service cannot find or use. It says nothing about a sink that this service does not have: another process may
// have it. No error contains a part of a secret.
func (s *Service) CheckSecrets(sub subscription.Subscription) error {
	sink := s.cfg.Sinks[sub.Sink]
	if sink == nil {
		return nil
	}
	var problems []error
	for _, name := range sub.Secrets {
		secret, err := s.cfg.Secret(name)
		if checker, ok := sink.(secretChecker); ok && err == nil {
			err = checker.CheckSecret(secret)
		}
		if err != nil {
			problems = append(problems, refuse(true, "the secret %.60q: %v", name, err))
		}
	}
	return errors.Join(problems...)
}

// refuse is ErrInvalid with a message if bad is true.
func refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
