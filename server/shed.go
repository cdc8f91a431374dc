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

// How long a request waits for its turn: long while that happens now and then, shortly once somebody has been waiting for a while without a
// break. Then there is more to do than can be done, and who is refused at once can do something better than wait.
const (
	waitWell = 500 * time.Millisecond
	waitBad  = 25 * time.Millisecond
	badFor   = time.Second // after somebody was sent away
)

// longestLine is how many may wait for each place. A burst is served, although it waits; only what goes on is sent away.
const longestLine = 8

// A crowd are the requests that run and those that wait to. A share of the places is kept for what is vital: a worker that cannot renew its leases
// makes more work, not less.
type crowd struct {
	places, reserved int

	mu       sync.Mutex
	running  int
	ordinary int // of those
	lines    [2]line
}

// A line waits: one of the vital, one of all others.
type line struct {
	waiting []chan struct{} // each is closed when it may run
	since   time.Time       // when the first came after nobody had waited
	away    time.Time       // when somebody was last sent away
}

// bad reports whether there is more to do than can be done: somebody has been waiting for a while without a break, or was sent away a moment ago.
func (l *line) bad() bool {
	return len(l.waiting) > 0 && time.Since(l.since) > waitWell || time.Since(l.away) < badFor
}

func newCrowd(places int) *crowd { return &crowd{places: places, reserved: (places + 3) / 4} }

func (c *crowd) line(vital bool) *line {
	if vital {
		return &c.lines[0]
	}
	return &c.lines[1]
}

// fits reports whether one more may run.
func (c *crowd) fits(vital bool) bool {
	return c.running < c.places && (vital || c.ordinary < max(1, c.places-c.reserved))
}

func (c *crowd) take(vital bool) {
	c.running++
	if !vital {
		c.ordinary++
	}
}

// crowded reports whether who comes now would most likely wait in vain.
func (c *crowd) crowded(vital bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.line(vital)
	if len(l.waiting) <= c.places/4 || !l.bad() {
		return false
	}
	l.away = time.Now()
	return true
}

// enter waits for a place. Who has one leaves.
func (c *crowd) enter(ctx context.Context, vital bool) error {
	c.mu.Lock()
	l := c.line(vital)
	if len(l.waiting) == 0 {
		if c.fits(vital) {
			c.take(vital)
			c.mu.Unlock()
			return nil
		}
		l.since = time.Now()
	}
	patience := waitWell
	if l.bad() {
		patience = waitBad
	}
	if len(l.waiting) >= longestLine*c.places {
		l.away = time.Now()
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
		l.away = time.Now()
	}
	c.mu.Unlock()
	if at < 0 { // its turn came in the same moment
		return nil
	}
	return busy()
}

// leave gives a place to the next one.
func (c *crowd) leave(vital bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if !vital {
		c.ordinary--
	}
	for _, next := range []bool{true, false} {
		for l := c.line(next); len(l.waiting) > 0 && c.fits(next); {
			c.take(next)
			close(l.waiting[0])
			l.waiting = slices.Delete(l.waiting, 0, 1)
		}
	}
}

// busy is what is said to those for whom there is no room. They do not all come back in the same moment.
func busy() error {
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "the server has more to do than it can: ask again a little later", RetryAfter: time.Second + rand.N(2*time.Second), Cause: errAway}
}

// errAway is why somebody is refused who asked for too much, or at a bad moment.
var errAway = errors.New("sent away")

// restFor is how long nothing is read from a connection on which somebody was sent away. They were told to wait longer than that. At a thousand clients that
// do not wait, a quarter of a second cost a fifth of the work.
const restFor = 900 * time.Millisecond

// rest leaves the connection of who was sent away alone for a moment: a refusal is cheap, and ten thousand a second are not. Who waits as they were told does
// not notice. What workers need to keep and end what they hold never rests.
func (s *Server) rest(w http.ResponseWriter, r *http.Request, err error) {
	a := replyOf(w)
	if a.vital || !errors.Is(err, errAway) {
		return
	}
	if a.leave != nil {
		a.leave()
		a.leave = nil
	}
	begun := time.Now()
	a.Flush()
	enough := time.NewTimer(restFor)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-r.Context().Done():
	case <-s.closing.Done():
	}
	a.begun = a.begun.Add(time.Since(begun)) // it was answered before
}

// running does something in one of the places, and gives it up before the answer is written: who reads slowly holds up nobody. Long requests take
// no place.
func running[Out any](s *Server, w http.ResponseWriter, r *http.Request, do func(ctx context.Context) (Out, error)) (out Out, err error) {
	a := replyOf(w)
	if a.long {
		return do(r.Context())
	}
	if err := s.crowd.enter(r.Context(), a.vital); err != nil {
		return out, err
	}
	defer s.crowd.leave(a.vital)
	return do(r.Context())
}
