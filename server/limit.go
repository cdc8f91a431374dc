package server

import (
	"cmp"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// Limits bound what a server accepts. The zero value has defaults that work.
type Limits struct {
	PerSecond float64 // requests per second of one key; 10,000 when zero
	Burst     int     // burst of one key; twice PerSecond when zero
	InFlight  int     // requests of one key at the same time, and as many that wait or stream, half of which may be event streams; 256 when zero
	Running   int     // requests that run at the same time; more wait or get 503; 12 for each processor when zero, and at least 24
	Streams   int     // requests that wait or stream at the same time; 4096 when zero. Half of them may be event streams; a quarter is reserved for workers that wait for jobs
	Bytes     int64   // bytes of request bodies in memory, and as many of answers; one key may use half; 64 MiB when zero
	Idle      int     // idle connections; beyond these the one that has been idle longest is closed; 1024 when zero
}

func (l Limits) orDefaults() Limits {
	l.PerSecond = cmp.Or(l.PerSecond, 10_000)
	l.Burst = cmp.Or(l.Burst, max(1, int(2*l.PerSecond)))
	l.InFlight = cmp.Or(l.InFlight, 256)
	l.Running = cmp.Or(l.Running, max(24, 12*runtime.GOMAXPROCS(0))) // measured: with 32 for each, a tenfold overload costs a tenth of the throughput
	l.Streams = cmp.Or(l.Streams, 4096)
	l.Bytes = cmp.Or(l.Bytes, 64<<20)
	l.Idle = cmp.Or(l.Idle, 1024)
	return l
}

// A quota is what one key uses of its limits.
type quota struct {
	rate            *limit.Bucket
	running, long   atomic.Int64
	bodies, answers budget
}

// limit counts a request against the limits, or refuses it. What the request holds is given back by a.leave after the answer.
func (s *Server) limit(a *reply, c Caller, to mounted) error {
	a.vital, a.long = vital(to.path), to.long
	if (!a.long || to.name == api.EnqueueBulk.Name) && s.admission.overloaded(a.vital) { // before the body is read
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
		found, _ = s.quotas.LoadOrStore(c.Key, &quota{rate: limit.NewBucket(s.cfg.Limits.PerSecond, s.cfg.Limits.Burst)})
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
		return &holdfast.Error{Err: holdfast.ErrThrottled, Message: "this key has too many requests in progress: wait for answers first", RetryAfter: time.Second, Cause: errRejected}
	}
	if !q.rate.Allow() {
		return &holdfast.Error{Err: holdfast.ErrThrottled, Message: "this key sends too many requests: send fewer, or more entries in each", RetryAfter: time.Second, Cause: errRejected}
	}
	return nil
}

// vital reports whether workers need a route to renew and settle what they hold.
func vital(path string) bool {
	return strings.HasPrefix(path, "/claims") || strings.HasPrefix(path, "/workers/")
}

// Each address may send badKeyBurst requests with a bad key, and one more every badKeyEvery.
const (
	badKeyBurst = 20
	badKeyEvery = 2 * time.Second
)

// newBadKeyLimit limits the bad keys of each address, so that keys cannot be guessed.
func newBadKeyLimit() *limit.Rates { return &limit.Rates{Burst: badKeyBurst, Every: badKeyEvery} }

// isLocal reports whether a request comes from this machine.
func isLocal(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ Network() string }); ok && strings.HasPrefix(local.Network(), "unix") {
		return true
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}
