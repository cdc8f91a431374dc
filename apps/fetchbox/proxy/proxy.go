// Package proxy chooses the way to a source: a proxy of a named pool, or none. It keeps one connection pool for each proxy, so that a kept connection never defeats the
// rotation; a breaker and a score for each, so that a dead proxy costs a few attempts and not more; and a cool-down after 407 and 429.
//
// A proxy is asked to connect to an address that was resolved and checked here, not to a name (see Member.RemoteNames for the exceptions), so it cannot be led into a
// private network by a redirect or a second DNS answer.
package proxy

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// Direct is the name of the pool that every configuration has: no proxy. It is also the URL of a member without a proxy.
const Direct = "direct"

// A Member is one proxy of a pool.
type Member struct {
	URL    string `json:"url" yaml:"url"`                           // http://, https:// or socks5:// with host:port, and user:password@ if needed; or direct
	Weight int    `json:"weight,omitempty" yaml:"weight,omitempty"` // share of the downloads, compared with the other members; 1 when zero
	Region string `json:"region,omitempty" yaml:"region,omitempty"` // any name; requests may ask for it
	// RemoteNames lets the proxy resolve host names. It is needed for proxies that permit names only, and weaker: the name is resolved and checked here first, but the
	// proxy may resolve it to another address. A request for an http:// URL through an HTTP proxy always contains the name.
	RemoteNames bool `json:"remote_names,omitempty" yaml:"remote_names,omitempty"`
}

// Config configures the pools. Zero fields have defaults.
type Config struct {
	Pools    map[string][]Member
	Network  safehttp.Config // which addresses may be called, by us and by the proxies. Its Redirects, Timeout and MaxBody are not used
	Breaker  breaker.Config  // of each proxy; by default it opens when 3 of the last 10 uses failed, at least half
	CoolDown time.Duration   // how long a proxy rests after 407, or after 429 without Retry-After; 1 min when zero

	ConnectTimeout time.Duration  // to connect, and again for the handshakes with the proxy and for TLS; 10 s when zero. Without a proxy, 5 s to connect
	HeaderTimeout  time.Duration  // from the request to the header of the answer; 30 s when zero
	Roots          *x509.CertPool // certificate authorities of sources and proxies; those of the system when nil
}

// Pools are the proxies. They are safe for concurrent use.
type Pools struct {
	cfg   Config
	guard *safehttp.Guard
	pools map[string]*pool
	now   func() time.Time
	roll  func() float64
}

const (
	defaultCoolDown = time.Minute
	maxCoolDown     = time.Hour
	defaultConnect  = 10 * time.Second
	defaultHeader   = 30 * time.Second

	maxRedirects = 30
	noTimeout    = 30 * 24 * time.Hour // packages fetch and handler have limits of their own
	noMaxBody    = 1 << 50
)

// defaultBreaker opens quickly, because each failed use costs an attempt of a job, and probes early, because the other members carry the load meanwhile.
var defaultBreaker = breaker.Config{Window: 10, MinCalls: 3, FailureRate: 0.5, OpenFor: 30 * time.Second, OpenMax: 10 * time.Minute, Probes: 1, Successes: 1, Ramp: 5 * time.Second}

var poolName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,59}$`)

// New makes the pools. The error names every problem of the configuration, without passwords.
func New(cfg Config) (*Pools, error) {
	problems := []error{cfg.Breaker.Check()}
	for _, d := range []time.Duration{cfg.CoolDown, cfg.ConnectTimeout, cfg.HeaderTimeout} {
		if d < 0 {
			problems = append(problems, fmt.Errorf("CoolDown, ConnectTimeout or HeaderTimeout is %v: give a positive duration, or 0 for the default", d))
		}
	}
	if cfg.Breaker == (breaker.Config{}) {
		cfg.Breaker = defaultBreaker
	}
	cfg.CoolDown, cfg.ConnectTimeout, cfg.HeaderTimeout = orDefault(cfg.CoolDown, defaultCoolDown), orDefault(cfg.ConnectTimeout, defaultConnect), orDefault(cfg.HeaderTimeout, defaultHeader)
	cfg.Network.Redirects, cfg.Network.Timeout, cfg.Network.MaxBody = maxRedirects, noTimeout, noMaxBody
	guard, err := safehttp.New(cfg.Network)
	p := &Pools{cfg: cfg, guard: guard, pools: map[string]*pool{}, now: time.Now, roll: rand.Float64}
	problems = append(problems, err)
	for name, members := range p.withDirect() {
		if !poolName.MatchString(name) || name == Direct && cfg.Pools[Direct] != nil {
			problems = append(problems, fmt.Errorf("the pool %.70q: use up to 60 letters, digits, dots, dashes, underscores and slashes, and not the name %s", name, Direct))
		}
		if len(members) == 0 {
			problems = append(problems, fmt.Errorf("the pool %.70q has no members: add a proxy, or %s", name, Direct))
		}
		p.pools[name] = &pool{name: name, good: map[string]*sighting{}}
		for i, m := range members {
			made, err := p.newMember(name, i+1, m)
			problems = append(problems, err)
			p.pools[name].members = append(p.pools[name].members, made)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return p, nil
}

// withDirect returns the configured pools and the pool without a proxy.
func (p *Pools) withDirect() map[string][]Member {
	all := maps.Clone(p.cfg.Pools)
	if all == nil {
		all = map[string][]Member{}
	}
	if all[Direct] == nil {
		all[Direct] = []Member{{URL: Direct}}
	}
	return all
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// Guard returns the rules about addresses, for requests through routes.
func (p *Pools) Guard() *safehttp.Guard { return p.guard }

// Has reports whether there is a pool with a name, with a member in a region if one is given.
func (p *Pools) Has(pool, region string) bool {
	if pool == "" {
		pool = Direct
	}
	known := p.pools[pool]
	return known != nil && slices.ContainsFunc(known.members, func(m *member) bool { return region == "" || m.Region == region })
}

// Close closes idle connections.
func (p *Pools) Close() {
	for _, pool := range p.pools {
		for _, m := range pool.members {
			m.plain.CloseIdleConnections()
			m.tunnel.CloseIdleConnections()
		}
	}
	p.guard.Close()
}

// newMember makes a member from its configuration.
func (p *Pools) newMember(pool string, number int, c Member) (*member, error) {
	m := &member{Member: c, pools: p, pool: pool, name: fmt.Sprintf("%s#%d", pool, number), share: 1}
	if pool == Direct {
		m.name = Direct
	}
	if m.Weight == 0 {
		m.Weight = 1
	}
	m.coolHosts = map[string]time.Time{}
	m.plain, m.tunnel = p.transport(), p.transport()
	if c.URL == Direct {
		m.address = Direct
		m.tunnel.DialContext, m.tunnel.DialTLSContext = counted(p.guard.DialContext), p.secured(p.guard.DialContext)
		return m, m.checkWeight()
	}
	m.tunnel.DialContext, m.tunnel.DialTLSContext = counted(m.dialTunnel), p.secured(m.dialTunnel)
	u, err := url.Parse(c.URL)
	if err != nil {
		return m, fmt.Errorf("the proxy %s is not a URL: give one such as socks5://host:1080", m.name)
	}
	user := u.User
	u.User = nil
	m.proxy, m.user, m.address = u, user, u.String()
	m.plain.Proxy = http.ProxyURL(&url.URL{Scheme: u.Scheme, Host: u.Host, User: user})
	m.plain.DialContext = counted(m.dialProxy)
	return m, errors.Join(m.checkURL(), m.checkWeight())
}

func (m *member) checkWeight() error {
	if m.Weight < 0 || m.Weight > 1000 {
		return fmt.Errorf("the weight of the proxy %s is %d: give 1 to 1000", m.name, m.Weight)
	}
	return nil
}

func (m *member) checkURL() error {
	password, _ := m.user.Password()
	switch u := m.proxy; {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return fmt.Errorf("the URL of the proxy %s begins with %.20q: use http://, https:// or socks5://, or %s", m.name, u.Scheme+":", Direct)
	case u.Hostname() == "" || u.Port() == "":
		return fmt.Errorf("the URL of the proxy %s needs a host and a port, such as http://host:3128", m.name)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the URL of the proxy %s has more than a host and a port: leave the rest out", m.name)
	case u.Scheme == "socks5" && (len(m.user.Username()) > 255 || len(password) > 255):
		return fmt.Errorf("the user name or password of the proxy %s is longer than 255 bytes, which SOCKS does not allow", m.name)
	}
	return nil
}

// authorization returns the Proxy-Authorization header of an HTTP proxy, or "".
func (m *member) authorization() string {
	if m.user == nil {
		return ""
	}
	password, _ := m.user.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(m.user.Username()+":"+password))
}

// transport returns the settings of a connection pool. Each member has its own. HTTP/2 is not used: a download gains nothing from sharing a connection with others, and
// each has the whole window of its own connection.
func (p *Pools) transport() *http.Transport {
	t := &http.Transport{
		TLSHandshakeTimeout: p.cfg.ConnectTimeout, ResponseHeaderTimeout: p.cfg.HeaderTimeout, DisableCompression: true,
		MaxIdleConnsPerHost: 16, MaxIdleConns: 256, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		Protocols: new(http.Protocols), TLSClientConfig: p.tls(""), // of an https:// proxy that gets whole requests
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// A Status describes a proxy, without its password.
type Status struct {
	Pool    string        `json:"pool"`
	Name    string        `json:"name"` // pool#1 is the first member of a pool
	Address string        `json:"address"`
	Region  string        `json:"region,omitempty"`
	Weight  int           `json:"weight"`
	Usable  bool          `json:"usable"`
	State   breaker.State `json:"state"`
	Until   time.Time     `json:"until,omitzero"` // not usable: when that may change
	Why     string        `json:"why,omitempty"`  // not usable: the reason
	Score   float64       `json:"score"`          // 0 to 1: the share of uses that succeeded lately, and the speed compared with the fastest of the pool
	Active  int           `json:"active"`
	Good    int64         `json:"good"`
	Bad     int64         `json:"bad"`
	Delay   float64       `json:"delay_seconds"`     // usual time to the header of an answer
	Failure string        `json:"failure,omitempty"` // the last failure that the proxy caused
	At      time.Time     `json:"at,omitzero"`       // of the last failure
}

// Status describes every proxy, in the order of the pools' names.
func (p *Pools) Status() (all []Status) {
	now := p.now()
	for _, name := range slices.Sorted(maps.Keys(p.pools)) {
		pool := p.pools[name]
		pool.mu.Lock()
		fastest := pool.fastest()
		for _, m := range pool.members {
			why, until := m.unusable("", now)
			s := Status{
				Pool: name, Name: m.name, Address: m.address, Region: m.Region, Weight: m.Weight, Usable: why == "", State: m.breaker.State, Until: until, Why: why,
				Score: m.score(fastest), Active: m.active, Good: m.good, Bad: m.bad, Delay: m.delay.Seconds(), Failure: m.failure, At: m.failedAt,
			}
			if s.State == "" {
				s.State = breaker.Closed
			}
			all = append(all, s)
		}
		pool.mu.Unlock()
	}
	return all
}

// hostOf returns host:port of a URL.
func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
