package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/duty"
)

// A dutyControl is the state of one duty in this process: what operators requested of it (pause, run now) and how its runs went. Times are by this
// process's clock. It is safe for concurrent use.
type dutyControl struct {
	name      string
	paused    atomic.Bool
	requested atomic.Bool   // an operator requested the current run
	runNow    chan struct{} // an operator requests a run, or a pause has ended

	mu            sync.Mutex
	last          time.Time
	next          time.Time
	took          time.Duration
	runs          int
	err           string
	errAt         time.Time
	requestsKnown bool // requestedRuns was read
	requestedRuns int  // how many runs operators had requested when the requests were last read
}

// control returns the control of a duty, and creates it for the first caller.
func (d *dutyRunner) control(name string) *dutyControl {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.controls[name]
	if c == nil {
		c = &dutyControl{name: name, runNow: make(chan struct{}, 1)}
		d.controls[name] = c
	}
	return c
}

// beginRun records the start of a run. The caller calls ended with its error when the run has ended.
func (c *dutyControl) beginRun() (ended func(error)) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = began
	c.runs++
	return func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.took = time.Since(began)
		c.setError(err)
	}
}

// setNext records when the next run will start.
func (c *dutyControl) setNext(next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = next
}

// setError records an error; nil leaves the last one. The caller holds the lock.
func (c *dutyControl) setError(err error) {
	if err != nil {
		c.err, c.errAt = clip(err.Error(), 500), time.Now()
	}
}

// problem records and logs an error about one of the things that a duty processes, such as one schedule. The run continues with the others.
func (d *dutyRunner) problem(name string, err error) {
	c := d.control(name)
	c.mu.Lock()
	c.setError(err)
	c.mu.Unlock()
	d.logRetry(name, err)
}

// apply applies what operators requested. Runs that were requested before this process first read the requests are not made up for.
func (c *dutyControl) apply(o duty.Control, now time.Time) {
	c.mu.Lock()
	run := c.requestsKnown && o.Run > c.requestedRuns
	c.requestsKnown, c.requestedRuns = true, o.Run
	c.mu.Unlock()
	paused := o.Halts(now) && duty.Pausable(c.name)
	resumed := c.paused.Swap(paused) && !paused
	if run || resumed {
		signal(c.runNow)
	}
}

// report returns how the runs went, with times by the store's clock.
func (c *dutyControl) report(clock *clock) duty.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return duty.Report{Last: clock.storeTime(c.last), Next: clock.storeTime(c.next), Took: c.took, Runs: c.runs, Error: c.err, ErrorAt: clock.storeTime(c.errAt)}
}
