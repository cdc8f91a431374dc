package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/internal/dutypace"
)

// A dutySpec describes a duty: a function that is called at intervals for as long as the engine needs it. An error or a panic of the function delays
// the next run; it never ends the duty.
type dutySpec struct {
	name         string
	interval     time.Duration   // from the end of one run to the start of the next; 0: at once
	jitter       bool            // start the first run at a random time within the interval, so that processes do not run the duty in step
	signal       <-chan struct{} // starts the next run before the interval has passed
	run          func(ctx context.Context) error
	nextInterval func() time.Duration // if not nil, the interval to the next run, instead of interval
}

// A Duty is a duty of the application, which an engine runs beside its own. Operators can pause it and request a run, like the engine's own duties. An
// error or a panic of Run is logged and delays the next run.
type Duty struct {
	Name     string
	Interval time.Duration                   // the interval from the end of one run to the start of the next
	Run      func(ctx context.Context) error // one run; ctx ends when the engine is asked to stop
	Signal   <-chan struct{}                 // starts the next run early; may be nil
}

// A dutyRunner runs duties at their intervals and obeys what operators request of them: pause, resume, run now.
type dutyRunner struct {
	*core
	reporter *dutyReporter

	mu       sync.Mutex
	controls map[string]*dutyControl

	requestsRead     chan struct{} // closed after the first attempt to read requests
	requestsReadOnce sync.Once

	intake []dutySpec // end when the engine is asked to stop
	upkeep []dutySpec // run until the last settlement is written
}

func newDutyRunner(c *core) *dutyRunner {
	return &dutyRunner{core: c, reporter: &dutyReporter{core: c}, controls: make(map[string]*dutyControl), requestsRead: make(chan struct{})}
}

// run runs a duty until ctx ends. A duty that can be paused starts only after the requests of operators were read once, so that a paused duty does
// not run when a process starts.
func (d *dutyRunner) run(ctx context.Context, spec dutySpec) {
	c := d.control(spec.name)
	if !d.waitForRequests(ctx, spec.name) {
		return
	}
	wait := time.Duration(0)
	if spec.jitter {
		wait = time.Duration(rand.Int64N(int64(spec.interval)))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	stretch, early := dutypace.From(ctx), (<-chan struct{})(nil)
	failures := 0
	for {
		requested := false
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-early:
		case <-spec.signal:
		case <-c.runNow:
			requested = true
		}
		wait = spec.interval
		if c.paused.Load() && !requested {
			wait, early = stretch(wait)
			timer.Reset(wait)
			continue
		}
		c.requested.Store(requested)
		if err := c.run(ctx, spec.run); err != nil && ctx.Err() == nil {
			failures++
			d.logRetry(spec.name, err)
			wait = backoff(failures)
			c.setNext(time.Now().Add(wait))
			if !sleep(ctx, wait) { // a signal does not shorten the backoff
				return
			}
			wait = 0
		} else {
			failures = 0
			if spec.nextInterval != nil {
				wait = spec.nextInterval()
			}
			if wait, early = stretch(wait); wait > 0 {
				c.setNext(time.Now().Add(wait))
			}
		}
		timer.Reset(wait)
	}
}

// run makes one run and records how it went.
func (c *dutyControl) run(ctx context.Context, run func(context.Context) error) error {
	ended := c.beginRun()
	err := callSafely(ctx, run)
	if err != nil && ctx.Err() != nil {
		ended(nil) // the engine is stopping; this is not an error of the duty
	} else {
		ended(err)
	}
	return err
}

// callSafely calls f and returns a panic as an error.
func callSafely(ctx context.Context, f func(context.Context) error) (err error) {
	defer recoverTo(&err)
	return f(ctx)
}

// recoverTo turns a panic into an error. It must be deferred directly.
func recoverTo(err *error) {
	if thrown := recover(); thrown != nil {
		*err = fmt.Errorf("panic: %v\n%s", thrown, debug.Stack())
	}
}

// backoff returns the pause after so many failures in a row. It doubles from 50 ms to 5 s; between half and all of it is used, at random.
func backoff(failures int) time.Duration {
	whole := min(5*time.Second, 50*time.Millisecond<<min(failures-1, 10))
	return whole/2 + time.Duration(rand.Int64N(int64(whole/2)))
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
