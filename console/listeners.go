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

// So many pages may listen for changes at once. A browser opens one stream for each tab.
const (
	mostOfSession = 16
	mostOfVisitor = 64
	mostOfAddress = 128
)

// listeners counts the pages that listen, so that one visitor does not take the streams of all others.
type listeners struct {
	mu sync.Mutex
	by map[string]int // the session, the visitor and the address of each
}

// join counts a page in, unless its session, its visitor or its address has too many.
func (l *listeners) join(limits map[string]int) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, most := range limits {
		if l.by[name] >= most {
			return nil, &holdfast.Error{Kind: holdfast.ErrThrottled, Message: "too many of your pages are open: close some, and load this one again", RetryAfter: 10 * time.Second}
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

// limitsOf are the names under which a page that listens is counted, and how many each may have.
func (c *Console) limitsOf(q *ask) map[string]int {
	limits := map[string]int{"visitor " + q.visitor.Name: mostOfVisitor, "address " + c.network(q.Request): mostOfAddress}
	if cookie, err := q.Cookie(c.cookieOf(q.Request).Name); err == nil && q.visitor.signedIn {
		hash := sha256.Sum256([]byte(cookie.Value))
		limits["session "+string(hash[:])] = mostOfSession
	}
	return limits
}

// network is the address that a request comes from, as it is counted: of IPv6 the network.
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

// secure reports whether the visitor came by TLS: to this process, or to a proxy that is trusted to say so.
func (c *Console) secure(r *http.Request) bool {
	return r.TLS != nil || c.cfg.TrustProxy && r.Header.Get("X-Forwarded-Proto") == "https"
}
