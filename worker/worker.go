// Package worker puts together what one process of an application needs: an engine that runs jobs, a notifier that delivers events to subscriptions, and the operations
// of ops and of the console. Codes, policies and dependencies are said once, so that all of them decide and explain alike.
//
//	w, err := worker.New(jobs, worker.Config{Engine: engine.Config{Slots: 20, Taxonomy: codes, Policies: policies}})
//	engine.Handle(w.Engine, sendWelcome)
//	err = w.Run(ctx) // until ctx ends; then it finishes running jobs and releases the others
//
// It contains nothing that engine, notify and ops cannot do by themselves.
package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
)

// Actor is the actor of the schedules and subscriptions that a worker sets, unless Config.Actor names another.
const Actor = "worker"

// Config configures a Worker. The zero value runs jobs and delivers no notifications.
type Config struct {
	// Engine configures the engine. What it says about codes, policies, dependencies, retention, the version and the log also applies to the other parts. Its
	// OnAttemptEnd and OnJobFailed are also called for deliveries, whose kinds begin with "holdfast.".
	Engine engine.Config
	// Notify configures the notifier: Sinks, Secret and so on. Its Engine is set from Engine; without Sinks there is no notifier.
	Notify notify.Config
	// Operator configures the operations. What Engine says already is set from there.
	Operator ops.Config

	// Schedules and Subscriptions are set when Run begins, by their names: each is added, or replaced if it differs. What is already as it should be is left alone,
	// and leaves no trace in the audit log. What is no longer listed here is left as well: remove it with the command, the API or the console. Without Notify.Sinks
	// the subscriptions are not checked, and another process must deliver them; Run logs a warning.
	Schedules     []schedule.Schedule
	Subscriptions []subscription.Subscription
	Actor         string // in the audit log; "worker" when empty
}

// A Worker is a running process of an application.
type Worker struct {
	Engine   *engine.Engine
	Notifier *notify.Service // nil without sinks
	Operator *ops.Service

	cfg       Config
	mu        sync.Mutex
	observers []func(engine.AttemptEnd)
}

// New makes a worker. A Config that cannot work is refused; the error names every problem.
func New(jobs store.Store, cfg Config) (*Worker, error) {
	w := &Worker{cfg: cfg}
	if w.cfg.Actor == "" {
		w.cfg.Actor = Actor
	}
	engineConfig := cfg.Engine
	engineConfig.OnAttemptEnd = w.observe
	var problems []error
	var err error
	if w.Engine, err = engine.New(jobs, engineConfig); err != nil {
		problems = append(problems, err)
	}
	if len(cfg.Notify.Sinks) > 0 {
		if w.Notifier, err = notify.New(jobs, w.notifyConfig()); err != nil {
			problems = append(problems, err)
		}
	}
	problems = append(problems, w.checkNames()...)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	w.Operator = ops.New(jobs, w.operatorConfig())
	return w, nil
}

// notifyConfig returns the configuration of the notifier. Its engine performs duties for all jobs, so it has the same codes, policies and dependencies, and the same
// functions for what it may meet first: a failed job that it reclaimed, a breaker that it opened.
func (w *Worker) notifyConfig() notify.Config {
	cfg, of := w.cfg.Notify, w.cfg.Engine
	cfg.Engine = engine.Config{
		Name: of.Name, Lease: of.Lease, Grace: of.Grace, Poll: of.Poll, Sweep: of.Sweep, Taxonomy: of.Taxonomy, Classify: of.Classify, Policy: of.Policy,
		Policies: of.Policies, Dependencies: of.Dependencies, ProbeURL: of.ProbeURL, Version: of.Version, DisableDuties: of.DisableDuties,
		OnAttemptEnd: w.observe, OnJobFailed: of.OnJobFailed, OnBreakerChange: of.OnBreakerChange,
	}
	if cfg.Log == nil {
		cfg.Log = of.Log
	}
	return cfg
}

// operatorConfig returns the configuration of the operations: what the engine knows, unless the caller said otherwise.
func (w *Worker) operatorConfig() ops.Config {
	cfg, of := w.cfg.Operator, w.cfg.Engine
	if cfg.Taxonomy == nil {
		cfg.Taxonomy = of.Taxonomy
	}
	if cfg.Policies == nil {
		cfg.Policies = of.Policies
	}
	if cfg.Retention == nil {
		cfg.Retention = of.Retention
	}
	if cfg.Retention == nil {
		cfg.Retention = engine.DefaultRetention
	}
	breakers := maps.Clone(cfg.Breakers)
	for name, d := range of.Dependencies {
		if breakers == nil {
			breakers = make(map[string]breaker.Config)
		}
		if _, given := breakers[name]; !given {
			breakers[name] = d.Breaker
		}
	}
	cfg.Breakers = breakers
	if cfg.CheckSubscription == nil && w.Notifier != nil {
		cfg.CheckSubscription = w.Notifier.Check
	}
	return cfg
}

// checkNames refuses schedules and subscriptions that could not be found again at the next start.
func (w *Worker) checkNames() (problems []error) {
	seen := map[string]bool{}
	for i, s := range w.cfg.Subscriptions {
		switch {
		case s.Name == "" && s.ID.IsZero():
			problems = append(problems, refuse("Subscriptions[%d] has no name: give it one, by which it is found at the next start", i))
		case s.Name != "" && seen[s.Name]:
			problems = append(problems, refuse("two Subscriptions have the name %q: give each its own", s.Name))
		}
		seen[s.Name] = true
	}
	seen = map[string]bool{}
	for _, s := range w.cfg.Schedules {
		if seen[s.Name] {
			problems = append(problems, refuse("two Schedules have the name %q: give each its own", s.Name))
		}
		seen[s.Name] = true
	}
	return problems
}

func refuse(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

// Observe adds a function that is called for every attempt that ended, of jobs and of deliveries, such as telemetry.Metrics.ObserveAttempt. It must return quickly. Add
// functions before Run.
func (w *Worker) Observe(attempt func(engine.AttemptEnd)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observers = append(slices.Clone(w.observers), attempt)
}

func (w *Worker) observe(end engine.AttemptEnd) {
	if w.cfg.Engine.OnAttemptEnd != nil {
		w.cfg.Engine.OnAttemptEnd(end)
	}
	w.mu.Lock()
	observers := w.observers
	w.mu.Unlock()
	for _, observer := range observers {
		observer(end)
	}
}

// Console returns a console for the operations of the worker. The application sets who may use it (Who or Open) and mounts it in an HTTP server.
func (w *Worker) Console(cfg console.Config) (*console.Console, error) {
	cfg.Operator = w.Operator
	if cfg.Policies == nil {
		cfg.Policies = w.cfg.Engine.Policies
	}
	if cfg.Version == "" {
		cfg.Version = w.cfg.Engine.Version
	}
	if cfg.Log == nil {
		cfg.Log = w.cfg.Engine.Log
	}
	return console.New(cfg)
}

// Run sets the schedules and subscriptions, and then runs jobs and deliveries until ctx ends. It stops gracefully, as engine.Engine.Run does, and returns after the last
// settlement is written. It returns early if a schedule, a subscription or a handler is refused.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.place(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts := []func(context.Context) error{w.Engine.Run}
	if w.Notifier != nil {
		parts = append(parts, w.Notifier.Run)
	}
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, run := range parts {
		running.Go(func() {
			defer stop() // one that cannot run ends the others
			errs[i] = run(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// place sets the schedules and subscriptions.
func (w *Worker) place(ctx context.Context) error {
	by := ops.Actor{Name: w.cfg.Actor}
	for _, s := range w.cfg.Schedules {
		if _, err := w.Operator.SetSchedule(ctx, s, by); err != nil {
			return fmt.Errorf("schedule %q: %w", s.Name, err)
		}
	}
	if len(w.cfg.Subscriptions) == 0 {
		return nil
	}
	if w.Notifier == nil {
		cmp.Or(w.cfg.Engine.Log, slog.Default()).Warn("subscriptions are set, and not checked: this worker has no Notify.Sinks and delivers none; another process must deliver them",
			"event", "no_sinks", "subscriptions", len(w.cfg.Subscriptions))
	}
	existing, err := w.Operator.Subscriptions(ctx)
	if err != nil {
		return err
	}
	for _, s := range w.cfg.Subscriptions {
		if s.ID.IsZero() {
			s.ID = idOf(existing, s.Name)
		}
		if s.ID.IsZero() {
			s.ID = idFrom(s.Name)
		}
		if _, err := w.Operator.Subscribe(ctx, s, by); err != nil {
			return fmt.Errorf("subscription %q: %w", s.Name, err)
		}
	}
	return nil
}

// idOf returns the id of the subscription of that name, or the zero ID.
func idOf(existing []ops.SubscriptionStatus, name string) holdfast.ID {
	for _, s := range existing {
		if s.Name == name {
			return s.ID
		}
	}
	return holdfast.ID{}
}

// idFrom returns the id of a new subscription. It follows from the name, so that processes that start together make one subscription and not several.
func idFrom(name string) (id holdfast.ID) {
	sum := sha256.Sum256([]byte("holdfast subscription " + name))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}
