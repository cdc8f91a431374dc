// Package limit counts what callers do, by address or by name, so that one of them cannot use up what all share.
package limit

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Network is the address that a request comes from, as it is counted: for IPv6 the /64 network, because the holder of one of its addresses has them all. All
// addresses that cannot be read are one.
func Network(remote string) (from netip.Addr) {
	if at, err := netip.ParseAddrPort(remote); err == nil {
		from = at.Addr().Unmap().WithZone("")
		if from.Is6() {
			prefix, _ := from.Prefix(64)
			from = prefix.Addr()
		}
	}
	return from
}

// FromProxy gives a request the address that the proxy in front of the server saw: the last entry of X-Forwarded-For. Earlier entries are the client's to choose.
func FromProxy(r *http.Request) *http.Request {
	said := r.Header["X-Forwarded-For"]
	if len(said) == 0 {
		return r
	}
	last := said[len(said)-1]
	last = strings.Trim(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]), "[]")
	at, err := netip.ParseAddr(last)
	if err != nil {
		return r
	}
	there := *r
	there.RemoteAddr = netip.AddrPortFrom(at, 0).String()
	return &there
}

// A Bucket holds tokens up to its burst, and gets new ones at its rate. It is full at first, and safe for concurrent use.
type Bucket struct {
	perSecond, burst float64

	mu     sync.Mutex
	tokens float64
	at     time.Time
}

// NewBucket makes a full bucket.
func NewBucket(perSecond float64, burst int) *Bucket {
	return &Bucket{perSecond: perSecond, burst: float64(burst), tokens: float64(burst), at: time.Now()}
}

// Allow takes a token, if there is one.
func (b *Bucket) Allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fill() < 1 {
		return false
	}
	b.tokens--
	return true
}

// Tokens returns how many tokens there are now.
func (b *Bucket) Tokens() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fill()
}

// fill adds the tokens since the last call. b.mu is held.
func (b *Bucket) fill() float64 {
	now := time.Now()
	b.tokens = min(b.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*b.perSecond)
	b.at = now
	return b.tokens
}

// MostNames is how many names a Rates remembers at most.
const MostNames = 4096

// Rates lets each name do something Burst times, and then once more after each Every. Set both before the first use.
type Rates struct {
	Burst int
	Every time.Duration

	mu   sync.Mutex
	seen map[any]*Bucket
}

// Allow counts one more for a name, and reports whether that was not one too many.
func (r *Rates) Allow(name any) bool { return r.limiter(name).Allow() }

// Exhausted reports whether the next one would be too many.
func (r *Rates) Exhausted(name any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.seen[name]
	return l != nil && l.Tokens() < 1
}

// Names is how many names are remembered.
func (r *Rates) Names() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func (r *Rates) limiter(name any) *Bucket {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.seen[name]
	if l == nil {
		r.evict()
		l = NewBucket(1/r.Every.Seconds(), r.Burst)
		r.seen[name] = l
	}
	return l
}

// evict forgets the names that have used nothing up, or else any.
func (r *Rates) evict() {
	if r.seen == nil {
		r.seen = map[any]*Bucket{}
	}
	if len(r.seen) < MostNames {
		return
	}
	for name, l := range r.seen {
		if l.Tokens() >= float64(r.Burst) {
			delete(r.seen, name)
		}
	}
	for name := range r.seen {
		if len(r.seen) < MostNames {
			return
		}
		delete(r.seen, name)
	}
}

// A Share is how many a name may have at once.
type Share struct {
	Name string
	Most int
}

// AtOnce counts what is under way, by name. The zero value is ready.
type AtOnce struct {
	mu  sync.Mutex
	now map[string]int
}

// Join counts one more for each of the shares, unless that is too many for one of them. The caller calls leave once, when it is over.
func (a *AtOnce) Join(shares ...Share) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range shares {
		if a.now[s.Name] >= s.Most {
			return nil, false
		}
	}
	if a.now == nil {
		a.now = map[string]int{}
	}
	for _, s := range shares {
		a.now[s.Name]++
	}
	return func() { a.leave(shares) }, true
}

// Count is how many a name has under way.
func (a *AtOnce) Count(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now[name]
}

func (a *AtOnce) leave(shares []Share) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range shares {
		if a.now[s.Name]--; a.now[s.Name] <= 0 {
			delete(a.now, s.Name)
		}
	}
}
