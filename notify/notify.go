// Package notify tells others what happened. It reads the feed for each subscription, and makes a job of every delivery: on a queue, with
// slots and an owner of its own, so that a broken receiver hurts neither the work nor another receiver.
//
// Its relay is a duty of an engine: in one transaction a subscription's cursor moves on and the deliveries exist. Any number of processes
// may run it. Every event that a subscription matches is delivered at least once, under one id over all attempts, or its delivery is a dead
// letter for people to see.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// ErrGone is wrapped by a sink whose receiver wants nothing any more, ever: the subscription is disabled.
var ErrGone = errors.New("the receiver is gone")

// A Sink is a way to tell somebody.
type Sink interface {
	Traits() Traits
	// Check refuses a subscription that cannot work, before anything is kept.
	Check(s subscription.Subscription) error
	// Host names what a delivery calls: a breaker guards it. Empty: nothing.
	Host(s subscription.Subscription) string
	// Deliver tells. What it answers becomes the delivery's result; an error may carry marks of package failure.
	Deliver(ctx context.Context, d Delivery) (receipt any, err error)
}

// Traits say how a sink wants to be dealt with. The zero value is one event a delivery, as many at once as there are slots.
type Traits struct {
	Together int  // up to so many events in one delivery; 1 when zero
	Ordered  bool // one delivery of a subscription at a time
	// Burst and Every are a bucket for each target: so many deliveries at once, and one more every so often. While it is empty events
	// gather; what exceeds Together is only counted (Delivery.More). 0: no bucket.
	Burst int
	Every time.Duration

	Timeout  time.Duration  // of an attempt; 30 s when zero
	Policy   failure.Policy // when to try again
	Classify failure.Rule
}

// A Delivery is something to tell.
type Delivery struct {
	Subscription subscription.Subscription
	Events       []holdfast.Event
	More         int // events that are not in it, because they were too many

	ID      string    // the same over all attempts, and when it is sent again
	Attempt int       // 1 the first
	At      time.Time // of this attempt
	Source  string    // of the events, for Wrap
	Secrets []string  // newest first
}

// Config says how a Service works. Only Sinks is required.
type Config struct {
	Sinks map[string]Sink // by the name that subscriptions use
	// Secret finds a secret by its name. When nil it is in the environment variable HOLDFAST_SECRET_<NAME>, or in the file that
	// HOLDFAST_SECRET_<NAME>_FILE names.
	Secret func(name string) (string, error)
	Slots  int           // deliveries at once; 10 when zero
	Beat   time.Duration // how often the feed is looked at; 200 ms when zero
	Source string        // of events, as receivers see it; "/holdfast" when empty
	Log    *slog.Logger  // slog.Default when nil
	// Engine is that of the deliveries: lease, grace and so on. Queues, Slots and Log are set from here. It performs duties for all jobs, as every engine
	// does, so give it the Taxonomy, Policy, Policies and Dependencies of your others.
	Engine engine.Config
}

// A Call is a Go function that wants to be told.
type Call func(ctx context.Context, d Delivery) error

// Func makes a sink of a function.
func Func(call Call) Sink { return function{call} }

type function struct{ call Call }

func (f function) Traits() Traits                        { return Traits{} }
func (f function) Check(subscription.Subscription) error { return nil }
func (f function) Host(subscription.Subscription) string { return "" }
func (f function) Deliver(ctx context.Context, d Delivery) (any, error) {
	return nil, f.call(ctx, d)
}
