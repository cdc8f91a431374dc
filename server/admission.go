package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// How long a request waits for its turn: normalWait normally, overloadWait once requests have been waiting for a while without a break. Then the server is
// overloaded, and an early refusal lets the client do something better than wait. A vital request (claim, renewal or
// outcome) waits for vitalWait: a refused renewal can cost a lease. This is shorter than the 10 s between two renewals of a lease of 30 s.
const (
	vitalWait    = 5 * time.Second
	normalWait   = 500 * time.Millisecond
	overloadWait = 25 * time.Millisecond
	overloadFor  = time.Second // after a request was refused
)

// waitersPerSlot is how many requests may wait for each that may run. A burst is served late; only a lasting overload is refused.
const waitersPerSlot = 8

// An admission admits requests: a fixed number of them run, and a bounded number wait. A quarter of the places is reserved for vital requests, because a worker
// that cannot renew its leases causes more work. Vital requests that wait go first. It is safe for concurrent use.
type admission struct {
	capacity, reserved int

	mu       sync.Mutex
	running  int
	ordinary int // of running, those that are not vital
	lines    [2]waitLine
}

// A waitLine is a list of waiting requests: one for vital requests, one for all others.
type waitLine struct {
	waiting    []chan struct{} // each is closed when its request may run
	since      time.Time       // since when requests have been waiting without a break
	rejectedAt time.Time       // when a request was last refused
}

// congested reports whether there is an overload: requests have been waiting for longer than normalWait without a break, or one was refused within overloadFor.
func (l *waitLine) congested() bool {
	return len(l.waiting) > 0 && time.Since(l.since) > normalWait || time.Since(l.rejectedAt) < overloadFor
}

func newAdmission(capacity int) *admission {
	return &admission{capacity: capacity, reserved: (capacity + 3) / 4}
}

func (c *admission) waiters(vital bool) *waitLine {
	if vital {
		return &c.lines[0]
	}
	return &c.lines[1]
}

// fits reports whether one more request may run.
func (c *admission) fits(vital bool) bool {
	return c.running < c.capacity && (vital || c.ordinary < max(1, c.capacity-c.reserved))
}

func (c *admission) take(vital bool) {
	c.running++
	if !vital {
		c.ordinary++
	}
}

// overloaded reports whether a new request would probably be refused after waiting. It is checked before a body is read.
func (c *admission) overloaded(vital bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.waiters(vital)
	if vital && len(l.waiting) < waitersPerSlot*c.capacity || len(l.waiting) <= c.capacity/4 || !l.congested() {
		return false
	}
	l.rejectedAt = time.Now()
	return true
}

// enter waits until the request may run. On nil the caller must call leave. ErrUnavailable means that the server is overloaded or ctx has ended.
func (c *admission) enter(ctx context.Context, vital bool) error {
	c.mu.Lock()
	l := c.waiters(vital)
	if len(l.waiting) == 0 {
		if c.fits(vital) {
			c.take(vital)
			c.mu.Unlock()
			return nil
		}
		l.since = time.Now()
	}
	patience := normalWait
	switch {
	case vital:
		patience = vitalWait
	case l.congested():
		patience = overloadWait
	}
	if len(l.waiting) >= waitersPerSlot*c.capacity {
		l.rejectedAt = time.Now()
		c.mu.Unlock()
		return busy()
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	c.mu.Unlock()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-turn:
		return nil
	case <-enough.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	at := slices.Index(l.waiting, turn)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.rejectedAt = time.Now()
	}
	c.mu.Unlock()
	if at < 0 { // its turn came at the same moment
		return nil
	}
	return busy()
}

// leave ends a running request and admits the next ones.
func (c *admission) leave(vital bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if !vital {
		c.ordinary--
	}
	for _, next := range []bool{true, false} {
		for l := c.waiters(next); len(l.waiting) > 0 && c.fits(next); {
			c.take(next)
			close(l.waiting[0])
			l.waiting = slices.Delete(l.waiting, 0, 1)
		}
	}
}

// busy is the answer of an overloaded server. Retry-After is random between 1 and 3 s, so that clients do not return at the same moment.
func busy() error {
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the server is overloaded: send the request again after the time in Retry-After", RetryAfter: time.Second + rand.N(2*time.Second), Cause: errRejected}
}

// errRejected marks refusals for overload or exceeded limits, after which the connection is slowed down; see pauseRejected.
var errRejected = errors.New("refused for overload")

// rejectPause is how long nothing is read from a connection after such a refusal. Retry-After is longer. Measured with a thousand clients that ignore
// Retry-After: a quarter of a second cost a fifth of the throughput.
const rejectPause = 900 * time.Millisecond

// pauseRejected pauses the connection of a refused client: one refusal is cheap, ten thousand a second are not. A client that obeys Retry-After does not notice.
// Vital requests are never paused.
func (s *Server) pauseRejected(w http.ResponseWriter, r *http.Request, err error) {
	a := replyOf(w)
	if a.vital || !errors.Is(err, errRejected) {
		return
	}
	if a.leave != nil {
		a.leave()
		a.leave = nil
	}
	begun := time.Now()
	a.Flush()
	enough := time.NewTimer(rejectPause)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-r.Context().Done():
	case <-s.closing.Done():
	}
	a.begun = a.begun.Add(time.Since(begun)) // the pause is not part of the time to answer
}

// running calls do within the limit of running requests. The place is free again before the answer is written, so that a slow reader does not block others.
// Long requests do not count.
func running[Out any](s *Server, w http.ResponseWriter, r *http.Request, do func(ctx context.Context) (Out, error)) (out Out, err error) {
	a := replyOf(w)
	if a.long {
		return do(r.Context())
	}
	if err := s.admission.enter(r.Context(), a.vital); err != nil {
		return out, err
	}
	defer s.admission.leave(a.vital)
	return do(r.Context())
}
