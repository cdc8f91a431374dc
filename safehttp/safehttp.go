// Package safehttp is the one way out to addresses that others chose: an HTTP client that calls public addresses and nothing else.
//
// What a name leads to is looked at when it is dialled, after it was resolved, so that no redirect, no second answer of a name server and no
// trick of spelling leads into a private network. No proxy is taken from the environment, redirects are followed only when asked for, an
// answer is cut off in time and in size, and whoever asks is told the same about every address that may not be called.
package safehttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrBlocked is all that is said about an address that may not be called. Why is for the log: the answer would map a network for
// whoever asks.
var ErrBlocked = errors.New("the address may not be called: give a public one, or have its network or host allowed where the workers run")

// Config says what may be called. The zero value calls public addresses on ports 80 and 443.
type Config struct {
	// Allow are networks that may be called although they are private: a service beside us, loopback in a test.
	Allow []netip.Prefix
	// Hosts are names that may be called wherever they lead, as host, or host:port for a port that is not among Ports too. Whoever
	// answers for such a name decides what is called.
	Hosts   []string
	Ports   []uint16 // 80 and 443 when empty
	AnyPort bool     // all of them

	Timeout time.Duration // of a request with its answer, also when its context has longer; 1 min when zero
	MaxBody int64         // bytes of an answer after unpacking; 10 MiB when zero

	// Lookup resolves names; the system's way when nil. What it answers is looked at like any other answer.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Log    *slog.Logger // is told why an address was blocked, and which; nil: nobody is
}

const (
	defaultTimeout = time.Minute
	defaultBody    = 10 << 20
	dialTimeout    = 5 * time.Second
)

// A Guard calls what may be called. One is enough for any number of requests at once.
type Guard struct {
	cfg       Config
	ranges    *ssrf.Guardian
	transport *http.Transport
}

// beyond are addresses of the public range that lead inside all the same.
var beyond = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // the host of a virtual machine in Azure
}

// New makes a guard.
func New(cfg Config) (*Guard, error) {
	for _, p := range cfg.Allow {
		if !p.IsValid() {
			return nil, errors.New("Allow holds a network that is none: use netip.ParsePrefix")
		}
	}
	if cfg.Timeout < 0 || cfg.MaxBody < 0 {
		return nil, fmt.Errorf("Timeout is %v and MaxBody %d: give positive ones, or 0 for %v and %d", cfg.Timeout, cfg.MaxBody, defaultTimeout, defaultBody)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultBody
	}
	if len(cfg.Ports) == 0 {
		cfg.Ports = []uint16{80, 443}
	}
	g := &Guard{cfg: cfg, ranges: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork(), ssrf.WithDeniedV4Prefixes(beyond...))}
	g.transport = &http.Transport{
		DialContext: g.dial, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: 4, MaxIdleConns: 100, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	return g, nil
}

// Close lets go of connections that are not in use.
func (g *Guard) Close() { g.transport.CloseIdleConnections() }

// Check reads an address, and refuses what can be refused before its name is resolved. What it says never repeats the address: it may hold
// what only the receiver should know.
func (g *Guard) Check(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is no address: give one such as https://example.org/path")
	}
	return u, g.check(u)
}

func (g *Guard) check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("it begins with %.20q: give an address that begins with https: or http:", u.Scheme+":")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("it names no host: give an address such as https://example.org/path")
	case u.User != nil:
		return errors.New("it holds a user name or password: put them into a header")
	case strings.ContainsFunc(u.Host, func(c rune) bool { return c <= ' ' || c > '~' }):
		return errors.New("its host is not plain ASCII: write an international name in its xn-- form")
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	return g.judge(u.Hostname(), port)
}

func portOf(u *url.URL) (uint16, error) {
	switch {
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return 0, errors.New("its port is none: give 1 to 65535, or leave it out")
		}
		return uint16(port), nil
	case u.Scheme == "http":
		return 80, nil
	}
	return 443, nil
}

// judge blocks a host and port by what they say themselves, whatever the host may resolve to.
func (g *Guard) judge(host string, port uint16) error {
	excepted := g.excepted(host, port)
	if !g.cfg.AnyPort && !slices.Contains(g.cfg.Ports, port) && !excepted {
		return g.block(host, "its port is not among those allowed")
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
	switch {
	case excepted:
		return nil
	case err == nil:
		return g.judgeIP(ip)
	case numeric(host):
		return g.block(host, "it is a number in disguise")
	}
	return nil
}

// excepted reports whether a host was allowed by its name. An entry with a port speaks for that port alone, one without for those that all have.
func (g *Guard) excepted(host string, port uint16) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, name := range g.cfg.Hosts {
		name = strings.ToLower(name)
		if name == net.JoinHostPort(host, strconv.Itoa(int(port))) || name == host && (g.cfg.AnyPort || slices.Contains(g.cfg.Ports, port)) {
			return true
		}
	}
	return false
}

// numeric reports whether a host that is no proper IP address might be read as one: 2130706433, 0x7f.1, 127.1. Some resolvers do.
func numeric(host string) bool {
	last := strings.TrimSuffix(host, ".")
	last = strings.ToLower(last[strings.LastIndexByte(last, '.')+1:])
	digits, hex := strings.CutPrefix(last, "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// judgeIP blocks everything that is not an address of the public internet, unless it was allowed.
func (g *Guard) judgeIP(ip netip.Addr) error {
	plain := ip.Unmap()
	if plain.Zone() != "" {
		return g.block(ip.String(), "it names an interface")
	}
	for _, p := range g.cfg.Allow {
		if p.Contains(plain) || p.Contains(ip) {
			return nil
		}
	}
	if err := g.ranges.SafeAddr(plain); err != nil {
		return g.block(ip.String(), err.Error())
	}
	return nil
}

func (g *Guard) block(what, why string) error {
	if g.cfg.Log != nil {
		g.cfg.Log.Warn("an address was blocked", "event", "address_blocked", "address", what, "reason", why)
	}
	return ErrBlocked
}

// dial connects to a host. Each address it resolves to is looked at at the last moment, when nothing can change it any more.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, errors.New("its port is none: give 1 to 65535")
	}
	if err := g.judge(host, uint16(port)); err != nil {
		return nil, err
	}
	blocked := make(chan struct{}, 1)
	dialer := &net.Dialer{Timeout: min(dialTimeout, g.cfg.Timeout)}
	if !g.excepted(host, uint16(port)) {
		dialer.Control = func(_, reached string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(reached)
			if err == nil {
				err = g.judgeIP(to.Addr())
			} else {
				err = g.block(reached, "it is no address")
			}
			if err != nil {
				select {
				case blocked <- struct{}{}:
				default:
				}
			}
			return err
		}
	}
	conn, err := g.connect(ctx, dialer, network, address)
	if err != nil && len(blocked) > 0 { // whatever else went wrong on the way to its other addresses
		return nil, ErrBlocked
	}
	return conn, withoutResolver(err)
}

// withoutResolver is the error of a failed lookup without the resolver's address: it is told to callers who chose the name.
func withoutResolver(err error) error {
	lookup := (*net.DNSError)(nil)
	if !errors.As(err, &lookup) {
		return err
	}
	plain := &net.DNSError{Err: "the name could not be resolved", Name: lookup.Name, IsTimeout: lookup.IsTimeout, IsTemporary: lookup.IsTemporary, IsNotFound: lookup.IsNotFound}
	switch {
	case lookup.IsNotFound:
		plain.Err = "no such host"
	case lookup.IsTimeout:
		plain.Err = "the resolver did not answer in time"
	}
	return plain
}

func (g *Guard) connect(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	host, port, _ := net.SplitHostPort(address)
	if _, err := netip.ParseAddr(host); err == nil || g.cfg.Lookup == nil {
		return dialer.DialContext(ctx, network, address)
	}
	found, err := g.cfg.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	for _, ip := range found {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(ip.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}
