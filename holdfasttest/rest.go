package holdfasttest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// maxRest limits how long the duties of an engine rest at a time. What Drain cannot foresee, such as the end of a pause, is noticed so much later at most.
const maxRest = 5 * time.Minute

// A rest tells until when nothing can happen in a store: no handler runs, and no job, schedule or group is due. Until then the duties of the engine do not run, which
// would cost CPU for every second of virtual time. It is safe for concurrent use.
type rest struct {
	mu      sync.Mutex
	until   time.Time
	ended   chan struct{} // closed when the rest ends early
	running int           // handlers
}

func newRest() *rest { return &rest{ended: make(chan struct{})} }

// stretch is the pace of the engine: an interval that ends within the rest ends with it.
func (r *rest) stretch(interval time.Duration) (time.Duration, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := min(time.Until(r.until), maxRest); interval > 0 && left > interval {
		return left, r.ended
	}
	return interval, nil
}

// begin begins a rest, unless a handler runs. It returns a channel that is closed when the rest ends early.
func (r *rest) begin(until time.Time) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == 0 {
		r.until = until
	}
	return r.ended
}

// end ends a rest early.
func (r *rest) end(handlers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running += handlers
	r.until = time.Time{}
	close(r.ended)
	r.ended = make(chan struct{})
}

// wrap ends the rest before a handler runs and after it: renewals must be in time then.
func (r *rest) wrap(next engine.Handler) engine.Handler {
	return func(ctx context.Context, job *engine.Raw) error {
		r.end(1)
		defer r.end(-1)
		return next(ctx, job)
	}
}

// restUntil returns until when nothing can happen, or the zero time if something can now. It is exact for up to as many live jobs as are read.
func restUntil(jobs store.Store, live []holdfast.Job) time.Time {
	if len(live) == 0 || len(live) >= liveRead {
		return time.Time{}
	}
	ctx, now := context.Background(), time.Now()
	until := now.Add(24 * time.Hour)
	held, err := openBreakers(ctx, jobs)
	if err != nil {
		return time.Time{}
	}
	for _, job := range live {
		if job.State == holdfast.Processing {
			return time.Time{}
		}
		at := now.Add(job.DueAt.Sub(job.AsOf)) // of the store's clock
		if probed := now.Add(held(job).Sub(job.AsOf)); probed.After(at) {
			at = probed
		}
		if !job.ExpireAt.IsZero() {
			at = earlier(at, now.Add(job.ExpireAt.Sub(job.AsOf)))
		}
		until = earlier(until, at)
	}
	schedules, err := ops.New(jobs, ops.Config{}).Schedules(ctx, 1)
	if err != nil {
		return time.Time{}
	}
	for _, s := range schedules {
		for _, at := range s.Next {
			until = earlier(until, at)
		}
	}
	groups, more, err := jobs.Groups(ctx, store.GroupFilter{State: holdfast.GroupOpen, Limit: liveRead})
	if err != nil || more != "" {
		return time.Time{}
	}
	for _, g := range groups {
		if !g.ExpireAt.IsZero() {
			until = earlier(until, now.Add(g.ExpireAt.Sub(g.AsOf)))
		}
	}
	return until
}

// openBreakers returns until when the open breaker of a job's dependency holds it: the time of the next probe, by the store's clock. It is zero for a job that no
// open breaker holds.
func openBreakers(ctx context.Context, jobs store.Store) (func(holdfast.Job) time.Time, error) {
	holds, err := jobs.Holds(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := jobs.Workers(ctx)
	if err != nil {
		return nil, err
	}
	depends := map[string]string{} // dependencies of kinds
	for _, w := range workers {
		maps.Copy(depends, w.Depends)
	}
	return func(job holdfast.Job) (until time.Time) {
		dependency := job.Dependency
		if dependency == "" {
			dependency = depends[job.Kind]
		}
		for i := range holds {
			if h := &holds[i]; dependency != "" && h.Dependency == dependency && h.Source == store.SourceBreaker && h.Closed() && !h.Retries {
				until = h.Expected
			}
		}
		return until
	}, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
