package console

import (
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Limits of open live streams. A browser opens one stream for each tab.
const (
	maxStreamsPerSession = 16
	maxStreamsPerVisitor = 64
	maxStreamsPerAddress = 128
)

// listeners counts open streams, so that one visitor cannot use the streams of all others. It is safe for concurrent use.
type listeners struct {
	mu sync.Mutex
	by map[string]int // streams by session, by visitor and by address
}

// join registers a stream under all names in limits, or returns ErrThrottled if one of them is at its limit.
func (l *listeners) join(limits map[string]int) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, most := range limits {
		if l.by[name] >= most {
			return nil, &holdfast.Error{Err: holdfast.ErrThrottled, Message: "too many open pages: close some, then reload this one", RetryAfter: 10 * time.Second}
		}
	}
	if l.by == nil {
		l.by = map[string]int{}
	}
	for name := range limits {
		l.by[name]++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for name := range limits {
			if l.by[name]--; l.by[name] <= 0 {
				delete(l.by, name)
			}
		}
	}, nil
}

// limitsOf returns the names under which a stream is counted, with the limit of each.
func (c *Console) limitsOf(q *request) map[string]int {
	limits := map[string]int{"visitor " + q.visitor.Name: maxStreamsPerVisitor, "address " + c.network(q.Request): maxStreamsPerAddress}
	if cookie, err := q.Cookie(c.cookieOf(q.Request).Name); err == nil && q.visitor.signedIn {
		hash := sha256.Sum256([]byte(cookie.Value))
		limits["session "+string(hash[:])] = maxStreamsPerSession
	}
	return limits
}

// network returns the client address for counting: the address for IPv4, the /64 network for IPv6.
func (c *Console) network(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	if at = at.Unmap().WithZone(""); at.Is6() {
		if network, err := at.Prefix(64); err == nil {
			return network.String()
		}
	}
	return at.String()
}

// secure reports whether the request came over TLS, to this process or to a trusted proxy.
func (c *Console) secure(r *http.Request) bool {
	return r.TLS != nil || c.cfg.TrustProxy && r.Header.Get("X-Forwarded-Proto") == "https"
}
