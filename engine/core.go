package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// core is what every part of the engine needs: the store and the context of its calls, the Config, the worker name, the store's clock, the log and the
// signals. Each part embeds it. It knows no part.
type core struct {
	store    Store
	cfg      Config
	worker   string // the worker name, unique to this engine
	clock    clock
	warnings throttledLog
	signals  signals
	limited  limitHints

	storeCtx    context.Context // the parent of every store call; it outlives the handlers. Set when the engine starts
	cancelStore context.CancelFunc
}

func newCore(db Store, cfg Config) *core {
	return &core{store: db, cfg: cfg, worker: fmt.Sprintf("%s/%d/%x", cfg.Name, os.Getpid(), randomSuffix()), signals: newSignals()}
}

// randomSuffix distinguishes two engines of the same name in one process.
func randomSuffix() []byte {
	id := holdfast.NewID()
	return id[10:]
}

// signals start a run of a duty before its interval has passed. Each has a buffer of one, so signals coalesce.
type signals struct {
	claim    chan struct{} // there may be jobs to claim and slots for them
	cancel   chan struct{} // a person may have cancelled a job
	breakers chan struct{} // there are calls, probe results or holds for the breakers
	feed     chan struct{} // there may be events to number for the feed
	groups   chan struct{} // a member of a group may have ended
}

func newSignals() signals {
	one := func() chan struct{} { return make(chan struct{}, 1) }
	return signals{claim: one(), cancel: one(), breakers: one(), feed: one(), groups: one()}
}

// signal wakes the receiver of a channel with a buffer of one. It never blocks; signals that were not received yet coalesce.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// limitHints say which holds let further jobs start without a wake-up from the store, so that the engine claims more often.
type limitHints struct {
	hasCap        atomic.Bool // some hold limits how many jobs run at once, so every settled job may let another one start
	hasSmallBurst atomic.Bool // the token bucket of some hold is full before the next poll, so the duty "trickle" claims in between
	recovering    atomic.Bool // some breaker is recovering, so its rate grows
}

// storeContext returns the context of one store call. Every call has a deadline, and a stop of the engine cancels none: a call that is cut short
// may have taken effect in the store without the engine knowing.
func (c *core) storeContext(within time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.storeCtx, within)
}

// callerContext returns the context of store calls for a caller. It ends when the caller's ends, after a lease, or when the engine gives up on the store.
func (c *core) callerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, done := context.WithTimeout(ctx, c.cfg.Lease)
	stop := context.AfterFunc(c.storeCtx, done)
	return ctx, func() {
		stop()
		done()
	}
}

// records reads the records of a namespace. It also updates the store's clock as this process knows it.
func (c *core) records(namespace string) ([]store.Record, error) {
	ctx, done := c.storeContext(c.cfg.Lease)
	defer done()
	records, err := c.store.Records(ctx, namespace)
	if err == nil && len(records) > 0 {
		c.clock.set(records[0].AsOf)
	}
	return records, err
}

// holds returns all holds.
func (c *core) holds() ([]store.Hold, error) {
	ctx, done := c.storeContext(c.cfg.Lease)
	defer done()
	return c.store.Holds(ctx)
}

// keepChange writes a change. ErrConflict means that a record has another version than the change expects: another process was first, and the caller
// reads the record again or leaves it to that process. A stop of the engine does not cancel the call.
func (c *core) keepChange(change store.Change) error {
	ctx, done := c.storeContext(c.cfg.Lease)
	defer done()
	return c.store.Apply(ctx, change)
}

// maxRepeat limits the store calls of repeat.
const maxRepeat = 100

// repeat calls step until it processes fewer than limit, which means that nothing is left, or maxRepeat times, so that the duty remains responsive to
// pauses and stops. It reports whether there was something to do.
func (c *core) repeat(ctx context.Context, limit int, step func(context.Context, int) (int, error)) (bool, error) {
	busy := false
	for range maxRepeat {
		if ctx.Err() != nil {
			break
		}
		n, err := c.stepOnce(limit, step)
		busy = busy || n > 0
		if err != nil || n < limit {
			return busy, err
		}
	}
	return busy, nil
}

func (c *core) stepOnce(limit int, step func(context.Context, int) (int, error)) (int, error) {
	ctx, done := c.storeContext(c.cfg.Lease)
	defer done()
	return step(ctx, limit)
}

// logDurability logs settings of the store's database under which acknowledged jobs can be lost, if the store can report them.
func (c *core) logDurability() {
	s, ok := c.store.(interface {
		Warnings(ctx context.Context) []string
	})
	if !ok {
		return
	}
	ctx, cancel := c.storeContext(c.cfg.AbandonAfter)
	defer cancel()
	for _, problem := range s.Warnings(ctx) {
		c.cfg.Log.Warn("the database is not configured for durability", "event", "durability", "problem", problem)
	}
}

// logRetry logs an error of a duty or of settling, which the engine tries again.
func (c *core) logRetry(duty string, err error) {
	c.logProblem("duty failed, will retry", "duty_failed", duty, err)
}

// logIgnored logs an error after which the engine continues and which it does not try again, such as an error of a hook.
func (c *core) logIgnored(where string, err error) {
	c.logProblem("error ignored", "error_ignored", where, err)
}

// logProblem logs an error, at most one line a second for the whole engine: while a store is unavailable every duty fails.
func (c *core) logProblem(message, event, where string, err error) {
	if errors.Is(err, context.Canceled) && c.storeCtx.Err() != nil {
		return // the engine cancelled its own call
	}
	suppressed, ok := c.warnings.allow()
	if !ok {
		return
	}
	c.cfg.Log.Warn(message, "event", event, "duty", where, "error", err.Error(), "unlogged", suppressed)
}

// A throttledLog lets one message a second through and counts the others.
type throttledLog struct {
	mu         sync.Mutex
	last       time.Time
	suppressed int
}

// allow reports whether a message may be logged now, and how many were suppressed since the last one.
func (l *throttledLog) allow() (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last) < time.Second {
		l.suppressed++
		return 0, false
	}
	suppressed = l.suppressed
	l.last, l.suppressed = now, 0
	return suppressed, true
}

// clip cuts a text to at most limit bytes, without splitting a character.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sortedBy returns the elements ordered by key.
func sortedBy[T any, K cmp.Ordered](all []T, key func(T) K) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
