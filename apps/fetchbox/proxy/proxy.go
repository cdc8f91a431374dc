// Package proxy chooses the way to a source: a proxy of a named pool, or none. It keeps one connection pool for each proxy, so that a kept connection never defeats the
// rotation; a breaker and a score for each, so that a dead proxy costs a few attempts and not more; and a cool-down after 407 and 429.
package proxy

import (
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// Direct is the name of the pool that every configuration has: no proxy. It is also the URL of a member without a proxy.
const Direct = "direct"

// A Member is one proxy of a pool.
type Member struct {
	URL    string `json:"url" yaml:"url"`       // http://, https:// or socks5://, with user:password@ if needed; or direct
	Weight int    `json:"weight" yaml:"weight"` // share of the downloads, compared with the other members; 1 when zero
	Region string `json:"region" yaml:"region"` // any name; requests may ask for it
	// RemoteNames lets the proxy resolve host names. It is needed for proxies that permit names only, and weaker: a name is checked here, but the proxy may resolve it to
	// another address. Without it a proxy gets addresses that were checked (except in http:// requests through an HTTP proxy, which always contain the name).
	RemoteNames bool `json:"remote_names" yaml:"remote_names"`
}

// Config configures the pools. Zero fields have defaults.
type Config struct {
	Pools    map[string][]Member
	Network  safehttp.Config // which addresses may be called; also checked for what a proxy is asked to call
	Breaker  breaker.Config  // of each proxy; opens after 3 of the last 10 calls failed when zero
	CoolDown time.Duration   // how long a proxy rests after 407, or 429 without Retry-After; 1 min when zero

	ConnectTimeout time.Duration // to connect, with the proxy's handshake and TLS; 10 s when zero
	HeaderTimeout  time.Duration // from the request to the header of the answer; 30 s when zero
}

// Pools are the proxies. They are safe for concurrent use.
type Pools struct{ cfg Config }

// New makes the pools. The error names every problem of the configuration, without passwords.
func New(cfg Config) (*Pools, error) { panic("draft") }

// A Want says what a way is needed for.
type Want struct {
	Pool   string // Direct when empty
	Avoid  string // the proxy of the previous attempt: not used again if another can be
	Host   string // host:port of the source
	Region string // only proxies of this region; any when empty
}

// Pick chooses a proxy. The error has the code DOWNLOAD_PROXY_EXHAUSTED, with the time until one may be usable again, or DOWNLOAD_UNKNOWN_POOL.
func (p *Pools) Pick(w Want) (*Route, error) { panic("draft") }

// Status describes every proxy, in the order of the pools' names.
func (p *Pools) Status() []Status { panic("draft") }

// Close closes idle connections.
func (p *Pools) Close() { panic("draft") }

// A Status describes a proxy, without its password.
type Status struct {
	Pool    string        `json:"pool"`
	Name    string        `json:"name"` // pool#1 is the first member of a pool; direct has no number
	Address string        `json:"address"`
	Region  string        `json:"region,omitempty"`
	Weight  int           `json:"weight"`
	Usable  bool          `json:"usable"`
	State   breaker.State `json:"state"`
	Until   time.Time     `json:"until,omitzero"` // not usable: when that may change
	Why     string        `json:"why,omitempty"`  // not usable: the reason
	Score   float64       `json:"score"`          // 0 to 1: share of successes, and speed compared with the fastest of the pool
	Active  int           `json:"active"`
	Good    int64         `json:"good"`
	Bad     int64         `json:"bad"`
	Delay   time.Duration `json:"delay"`              // usual time to the header of an answer
	Failure string        `json:"failure,omitempty"`  // code of the last failure
	Message string        `json:"message,omitempty"`  // of the last failure
	LastAt  time.Time     `json:"last_at,omitzero"`   // of the last failure
}

// A Route is one use of a proxy.
type Route struct{ pools *Pools }

// Name returns the name of the proxy, as in the context of failures.
func (r *Route) Name() string { panic("draft") }

// RoundTrip sends a request through the proxy.
func (r *Route) RoundTrip(request *http.Request) (*http.Response, error) { panic("draft") }
