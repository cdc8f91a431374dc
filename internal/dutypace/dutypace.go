// Package dutypace lets package holdfasttest stretch the intervals of an engine's duties while nothing can happen, because virtual time costs CPU only where something
// runs. Engines of applications have no pace: their intervals are those of their configuration.
package dutypace

import (
	"context"
	"time"
)

// A Pace returns how long to wait instead of an interval, and a channel that is closed when the wait must end early. The channel may be nil.
type Pace func(interval time.Duration) (time.Duration, <-chan struct{})

type key struct{}

// With returns a context whose engine waits as the pace says.
func With(ctx context.Context, p Pace) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns the pace of a context. If it has none, intervals are as they are.
func From(ctx context.Context) Pace {
	if p, ok := ctx.Value(key{}).(Pace); ok {
		return p
	}
	return func(interval time.Duration) (time.Duration, <-chan struct{}) { return interval, nil }
}
