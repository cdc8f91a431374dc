// Package limit counts what callers do, by address or by name, so that one of them cannot use up what all share.
package limit

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
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

// MostNames is how many names a Rates remembers at most.
const MostNames = 4096

// Rates lets each name do something Burst times, and then once more after each Every. Set both before the first use.
type Rates struct {
	Burst int
	Every time.Duration

	mu   sync.Mutex
	seen map[any]*rate.Limiter
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

func (r *Rates) limiter(name any) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.seen[name]
	if l == nil {
		r.makeRoom()
		l = rate.NewLimiter(rate.Every(r.Every), r.Burst)
		r.seen[name] = l
	}
	return l
}

// makeRoom forgets the names that have used nothing up, or else any.
func (r *Rates) makeRoom() {
	if r.seen == nil {
		r.seen = map[any]*rate.Limiter{}
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
