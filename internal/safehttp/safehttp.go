// Package safehttp is an HTTP client for addresses that others chose: it calls public addresses and nothing else (SSRF protection).
//
// The address is checked when the connection is made, after the name was resolved, so that no redirect, second DNS answer or unusual spelling leads into a private
// network. No proxy is taken from the environment, redirects are followed only on request, and answers are limited in time and size. The caller gets the same error
// for every address that may not be called.
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
)

// ErrBlocked is the error for every address that may not be called. The reason is only logged, because the answer would let a caller map a network.
var ErrBlocked = errors.New("the address may not be called: use a public address, or allow its network or host in the configuration of the workers")

// Config says what may be called. The zero value allows public addresses on ports 80 and 443.
type Config struct {
	// Allow are private networks that may be called, such as that of an internal service, or loopback in a test.
	Allow []netip.Prefix
	// Hosts are names that may be called wherever they resolve to, as host, or as host:port for a port that is not in Ports. The owner of such a name decides what
	// is called.
	Hosts   []string
	Ports   []uint16 // 80 and 443 when empty
	AnyPort bool     // all ports

	Redirects int // the most redirects that Do follows; MaxRedirects when zero

	Timeout time.Duration // time limit of a request with its answer, even if its context has longer; 1 min when zero
	MaxBody int64         // maximum size of an answer in bytes, after decompression; 10 MiB when zero

	// Lookup resolves names; the system resolver when nil. Its answers are checked like any other.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Log    *slog.Logger // gets the address and the reason of each refusal; nil: no log
}

const (
	defaultTimeout = time.Minute
	defaultBody    = 10 << 20
	dialTimeout    = 5 * time.Second
)

// A Guard calls the addresses that may be called. It is safe for concurrent use.
type Guard struct {
	cfg       Config
	transport http.RoundTripper
}

// New makes a guard. A bad Config is an error.
func New(cfg Config) (*Guard, error) {
	for _, p := range cfg.Allow {
		if !p.IsValid() {
			return nil, errors.New("Allow has an invalid network: use netip.ParsePrefix")
		}
	}
	if cfg.Timeout < 0 || cfg.MaxBody < 0 {
		return nil, fmt.Errorf("Timeout is %v and MaxBody %d: give positive values, or 0 for %v and %d", cfg.Timeout, cfg.MaxBody, defaultTimeout, defaultBody)
	}
	if cfg.Redirects < 0 {
		return nil, fmt.Errorf("Redirects is %d: give a positive number, or 0 for %d", cfg.Redirects, MaxRedirects)
	}
	if cfg.Redirects == 0 {
		cfg.Redirects = MaxRedirects
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
	g := &Guard{cfg: cfg}
	g.transport = &http.Transport{
		DialContext: g.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: 4, MaxIdleConns: 100, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	return g, nil
}

// Via returns a guard with the same rules that sends its requests through another transport: one that reaches public addresses through a proxy. The transport must
// call Resolve before it asks a proxy for an address, or connect with DialContext.
func (g *Guard) Via(transport http.RoundTripper) *Guard { return &Guard{g.cfg, transport} }

// Close closes idle connections.
func (g *Guard) Close() {
	if t, ok := g.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Check parses a URL, and refuses what can be refused before its name is resolved. Its errors never contain the URL, which may hold a secret.
func (g *Guard) Check(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL: give one such as https://example.org/path")
	}
	return u, g.check(u)
}

func (g *Guard) check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("it begins with %.20q: give a URL that begins with https: or http:", u.Scheme+":")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("it has no host: give a URL such as https://example.org/path")
	case u.User != nil:
		return errors.New("it contains a user name or password: send them in a header")
	case strings.ContainsFunc(u.Host, func(c rune) bool { return c <= ' ' || c > '~' }):
		return errors.New("its host is not ASCII: write an international name in its xn-- form")
	}
	port, err := portOf(u)
	if err != nil {
		return err
	}
	return g.checkHost(u.Hostname(), port)
}

func portOf(u *url.URL) (uint16, error) {
	switch {
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return 0, errors.New("its port is not valid: give 1 to 65535, or leave it out")
		}
		return uint16(port), nil
	case u.Scheme == "http":
		return 80, nil
	}
	return 443, nil
}

// checkHost checks a host and port as they are written, without resolving the host.
func (g *Guard) checkHost(host string, port uint16) error {
	allowed := g.allowedByName(host, port)
	if !g.cfg.AnyPort && !slices.Contains(g.cfg.Ports, port) && !allowed {
		return g.block(host, "the port is not allowed")
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
	switch {
	case allowed:
		return nil
	case err == nil:
		return g.checkIP(ip)
	case numeric(host):
		return g.block(host, "the host is a number that resolvers may take for an IP address")
	}
	return nil
}

// allowedByName reports whether a host is allowed by its name. An entry with a port allows only that port, one without a port the ports of the Config.
func (g *Guard) allowedByName(host string, port uint16) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, name := range g.cfg.Hosts {
		name = strings.ToLower(name)
		if name == net.JoinHostPort(host, strconv.Itoa(int(port))) || name == host && (g.cfg.AnyPort || slices.Contains(g.cfg.Ports, port)) {
			return true
		}
	}
	return false
}

// numeric reports whether a host that is not an IP address in standard form might be read as one: 2130706433, 0x7f.1, 127.1. Some resolvers do.
func numeric(host string) bool {
	last := strings.TrimSuffix(host, ".")
	last = strings.ToLower(last[strings.LastIndexByte(last, '.')+1:])
	digits, hex := strings.CutPrefix(last, "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// checkIP refuses every address that is not public, unless it is allowed.
func (g *Guard) checkIP(ip netip.Addr) error {
	plain := ip.Unmap()
	if plain.Zone() != "" {
		return g.block(ip.String(), "the address has a zone")
	}
	for _, p := range g.cfg.Allow {
		if p.Contains(plain) || p.Contains(ip) {
			return nil
		}
	}
	if why := special(plain); why != "" {
		return g.block(ip.String(), why)
	}
	return nil
}

func (g *Guard) block(what, why string) error {
	if g.cfg.Log != nil {
		g.cfg.Log.Warn("address blocked", "event", "address_blocked", "address", what, "reason", why)
	}
	return ErrBlocked
}

// DialContext connects to a host. Each address it resolves to is checked by the dialer's Control function, immediately before the connection is made, so that nothing can
// change between check and use.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := g.checkAddress(address)
	if err != nil {
		return nil, err
	}
	blocked := make(chan struct{}, 1)
	dialer := &net.Dialer{Timeout: min(dialTimeout, g.cfg.Timeout)}
	if !g.allowedByName(host, port) {
		dialer.Control = func(_, reached string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(reached)
			if err == nil {
				err = g.checkIP(to.Addr())
			} else {
				err = g.block(reached, "it is not an IP address")
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
	if err != nil && len(blocked) > 0 { // whatever else failed with its other addresses
		return nil, ErrBlocked
	}
	return conn, withoutResolver(err)
}

// checkAddress splits an address, host:port, and checks it as it is written.
func (g *Guard) checkAddress(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, errors.New("its port is not valid: give 1 to 65535")
	}
	return host, uint16(number), g.checkHost(host, uint16(number))
}

// Resolve returns the addresses of a host:port that may be called, IPv4 before IPv6, for a caller that asks a proxy to connect. It returns ErrBlocked if the host has
// addresses and none of them may be called.
func (g *Guard) Resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, port, err := g.checkAddress(address)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), port)}, nil // checkHost has checked it
	}
	lookup := g.cfg.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	found, err := lookup(ctx, host)
	if err != nil {
		return nil, withoutResolver(err)
	}
	byName := g.allowedByName(host, port)
	var four, six []netip.AddrPort
	for _, ip := range found {
		switch ip = ip.Unmap(); {
		case !byName && g.checkIP(ip) != nil:
		case ip.Is4():
			four = append(four, netip.AddrPortFrom(ip, port))
		default:
			six = append(six, netip.AddrPortFrom(ip, port))
		}
	}
	all := append(four, six...)
	switch {
	case len(all) > 0:
		return all, nil
	case len(found) > 0:
		return nil, ErrBlocked
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// withoutResolver removes the resolver's address from the error of a failed lookup, because the caller who chose the name gets it.
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
