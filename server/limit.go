package server

import (
	"cmp"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// Limits say how much is taken on. The zero value works.
type Limits struct {
	PerSecond float64 // requests of one key; 10,000 when zero
	Burst     int     // of one key; twice PerSecond when zero
	InFlight  int     // requests of one key at once, and as many that wait or stream, half of which may listen for events; 256 when zero
	Running   int     // requests of all that run at once; more wait their turn, or are sent away; 12 for each processor when zero, and at least 24
	Streams   int     // requests of all that wait or stream at once; 4096 when zero. Half of them may listen for events, a quarter is kept for workers that wait for jobs
	Bytes     int64   // of bodies in memory at once, and as many of answers; one key may have half of them; 64 MiB when zero
	Idle      int     // connections that ask nothing: beyond these the one that was silent longest is closed; 1024 when zero
}

func (l Limits) orDefaults() Limits {
	l.PerSecond = cmp.Or(l.PerSecond, 10_000)
	l.Burst = cmp.Or(l.Burst, max(1, int(2*l.PerSecond)))
	l.InFlight = cmp.Or(l.InFlight, 256)
	l.Running = cmp.Or(l.Running, max(24, 12*runtime.GOMAXPROCS(0))) // with 32 for each, ten times too many requests cost a tenth of the work
	l.Streams = cmp.Or(l.Streams, 4096)
	l.Bytes = cmp.Or(l.Bytes, 64<<20)
	l.Idle = cmp.Or(l.Idle, 1024)
	return l
}

// A quota is what one key has used up of its limits.
type quota struct {
	rate            *rate.Limiter
	running, long   atomic.Int64
	bodies, answers budget
}

// limit takes a request on, or says that it is one too many. What it holds is given back when the answer is written.
func (s *Server) limit(a *reply, c Caller, to mounted) error {
	a.vital, a.long = vital(to.path), to.long
	if (!a.long || to.name == api.EnqueueBulk.Name) && s.crowd.crowded(a.vital) { // before anything of it is read
		return busy()
	}
	leave := func() {}
	if a.long {
		var err error
		if leave, err = s.streams.join(s.cfg.Limits, streamOf(to.name), "key "+c.Key, a.remote); err != nil {
			return err
		}
	}
	if c.Key == "" {
		a.leave = leave
		return nil
	}
	found, ok := s.quotas.Load(c.Key)
	if !ok {
		found, _ = s.quotas.LoadOrStore(c.Key, &quota{rate: rate.NewLimiter(rate.Limit(s.cfg.Limits.PerSecond), s.cfg.Limits.Burst)})
	}
	q := found.(*quota)
	a.quota = q
	held := &q.running
	if a.long {
		held = &q.long
	}
	a.leave = func() {
		held.Add(-1)
		leave()
	}
	if held.Add(1) > int64(s.cfg.Limits.InFlight) {
		return &holdfast.Error{Kind: holdfast.ErrThrottled, Message: "this key asks too much at the same time: wait for answers first", RetryAfter: time.Second, Cause: errAway}
	}
	if !q.rate.Allow() {
		return &holdfast.Error{Kind: holdfast.ErrThrottled, Message: "this key asks too often: ask less often, or for more at a time", RetryAfter: time.Second, Cause: errAway}
	}
	return nil
}

// vital reports whether a route is what workers need to keep and to end what they hold.
func vital(path string) bool {
	return strings.HasPrefix(path, "/claims") || strings.HasPrefix(path, "/workers/")
}

// An address may come with so many bad keys, and with one more after each strangerEach.
const (
	strangerBurst = 20
	strangerEach  = 2 * time.Second
)

// newStrangers counts the bad keys of each address, so that none can try on and on.
func newStrangers() *limit.Rates { return &limit.Rates{Burst: strangerBurst, Every: strangerEach} }

// isLocal reports whether a request comes from this machine.
func isLocal(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ Network() string }); ok && strings.HasPrefix(local.Network(), "unix") {
		return true
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}
