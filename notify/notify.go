// Package notify delivers events to subscribers. It reads the feed for each subscription and makes a job of every delivery: on a queue and with slots of its
// own, and with the subscription as owner, so that a broken receiver affects neither other jobs nor other receivers.
//
// Its relay is a duty of an engine. It moves a subscription's cursor and creates the deliveries in one transaction, so any number of processes may run it.
// Every event that a subscription matches is delivered at least once, under the same id in all attempts, or its delivery becomes a dead letter.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// ErrGone is wrapped by a sink whose receiver does not want any more events. The subscription is then disabled.
var ErrGone = errors.New("the receiver is gone")

// ErrNotConfigured is wrapped by a sink whose configuration in this process does not allow the delivery, while that of another process may. The delivery waits at no
// cost until a process makes it, and fails with the error's code when it is older than the sink's policy allows (GiveUpAfter).
var ErrNotConfigured = errors.New("this process is not configured for the delivery")

// A Sink is a way to deliver events. Its methods are called concurrently.
type Sink interface {
	Traits() Traits
	// Check refuses a subscription that cannot work, before it is stored.
	Check(s subscription.Subscription) error
	// Host is the dependency that a delivery calls; its breaker protects it. Empty: the subscription has a dependency of its own.
	Host(s subscription.Subscription) string
	// Deliver sends the events. The receipt becomes the job's result. The error may have a code and other marks of package failure.
	Deliver(ctx context.Context, d Delivery) (receipt any, err error)
}

// Traits say how a sink is used. The zero value is one event in each delivery, and as many deliveries at once as there are slots.
type Traits struct {
	Together int  // maximum number of events in one delivery; 1 when zero
	Ordered  bool // one delivery of a subscription at a time, in order
	// Burst and Every are a token bucket for each target: Burst deliveries at once, and one more after each Every. While it is empty, events are collected; those
	// beyond Together are only counted (Delivery.More). 0: no bucket.
	Burst int
	Every time.Duration

	Timeout  time.Duration  // time limit of an attempt; 30 s when zero
	Policy   failure.Policy // rules of retries
	Classify failure.Rule
}

// A Delivery is one notification.
type Delivery struct {
	Subscription subscription.Subscription
	Events       []store.Event
	More         int // number of further events that are not in it, because they were too many

	ID      string    // the same in all attempts, and when it is sent again
	Attempt int       // 1 for the first
	At      time.Time // time of this attempt
	Source  string    // CloudEvents source, for Wrap
	Secrets []string  // newest first
}

// Config configures a Service. Only Sinks is required.
type Config struct {
	Sinks map[string]Sink // by the name that subscriptions use
	// Secret returns a secret by its name. When nil, the secret is in the environment variable HOLDFAST_SECRET_<NAME>, or in the file that
	// HOLDFAST_SECRET_<NAME>_FILE names.
	Secret func(name string) (string, error)
	Slots  int           // deliveries at the same time; 10 when zero
	Beat   time.Duration // interval of reading the feed; 200 ms when zero
	Source string        // CloudEvents source; "/holdfast" when empty
	Log    *slog.Logger  // slog.Default when nil
	// Engine is the configuration of the engine that runs deliveries: lease, grace and so on. Queues, Slots and Log are set from here. Like every engine it
	// performs duties for all jobs, so it needs the same Taxonomy, Policy, Policies and Dependencies as the application's other engines.
	Engine engine.Config
}

// A Call is a Go function that receives deliveries.
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
