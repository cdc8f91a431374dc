package egress

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Limits are what a program may do with one credential. Zero numbers have defaults.
type Limits struct {
	Open        int   // connections at the same time; 128 when zero
	Connections int   // connections in all; 2,000 when zero
	Names       int   // different hosts and ports; 500 when zero
	Bytes       int64 // sent and received in all; 256 MiB when zero

	// Deny reports whether a host, without its port, must not be called although its address is public: a list of hosts with advertisements.
	Deny func(host string) bool
	// Local answers requests of plain HTTP to the host LocalHost, instead of a server of that name.
	Local     http.Handler
	LocalHost string
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	set(&l.Open, 128)
	set(&l.Connections, 2000)
	set(&l.Names, 500)
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	return l
}

// A Client is a credential of the proxy.
type Client struct {
	User, Password string

	proxy     *Proxy
	limits    Limits
	transport *http.Transport
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc

	mu     sync.Mutex
	names  map[string]*lookup // by host:port
	conns  map[net.Conn]bool
	report Report
}

// A lookup is what one name resolved to. done is closed when addresses and err are known.
type lookup struct {
	done      chan struct{}
	addresses []netip.AddrPort
	err       error
}

// Close ends the credential and all its connections.
func (c *Client) Close() {
	c.proxy.mu.Lock()
	delete(c.proxy.clients, c.User)
	c.proxy.mu.Unlock()
	c.cancel()
	c.closeConns()
	c.transport.CloseIdleConnections()
}

func (c *Client) closeConns() {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
}

// connect makes a connection to a host:port, to an address that its name resolved to when it was first used.
func (c *Client) connect(ctx context.Context, host string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	if c.limits.Deny != nil && c.limits.Deny(strings.ToLower(strings.TrimSuffix(name, "."))) {
		return nil, errDenied
	}
	found, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.proxy.cfg.Connect)
	defer cancel()
	for _, address := range found {
		var conn net.Conn
		if conn, err = c.connectTo(ctx, address); err == nil || errors.Is(err, errTooMany) || errors.Is(err, errTooLarge) {
			return conn, err
		}
	}
	return nil, err
}

// resolve returns the addresses of a host:port that may be called. Every use of a name with this credential gets the addresses of the first.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.AddrPort, error) {
	c.mu.Lock()
	known, again := c.names[host]
	if !again && len(c.names) >= c.limits.Names {
		c.mu.Unlock()
		return nil, errTooMany
	}
	if !again {
		known = &lookup{done: make(chan struct{})}
		c.names[host] = known
	}
	c.mu.Unlock()
	if !again {
		go func() { // of the credential, not of the request that happens to be first
			own, cancel := context.WithTimeout(c.ctx, c.proxy.cfg.Resolve)
			defer cancel()
			known.addresses, known.err = c.proxy.cfg.Guard.Resolve(own, host)
			if errors.Is(known.err, context.DeadlineExceeded) {
				known.err = &net.DNSError{Err: "the resolver did not answer in time", Name: host, IsTimeout: true}
			}
			close(known.done)
		}()
	}
	select {
	case <-known.done:
		return known.addresses, known.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connectTo connects to an address, within the limits.
func (c *Client) connectTo(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	c.mu.Lock()
	err := error(nil)
	switch {
	case c.report.Bytes >= c.limits.Bytes:
		err = errTooLarge
	case len(c.conns) >= c.limits.Open, c.report.Connections >= c.limits.Connections:
		err = errTooMany
	default:
		c.report.Connections++
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	conn := &counted{Conn: raw, client: c}
	c.mu.Lock()
	c.conns[conn] = true
	c.mu.Unlock()
	if c.ctx.Err() != nil { // Close did not see it
		_ = conn.Close()
		return nil, c.ctx.Err()
	}
	return conn, nil
}

// A counted connection adds its bytes to the report of its credential, and ends when the credential has none left.
type counted struct {
	net.Conn
	client *Client
	once   sync.Once
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if !c.client.count(n) {
		return n, errTooLarge
	}
	return n, err
}

func (c *counted) Write(from []byte) (int, error) {
	n, err := c.Conn.Write(from)
	if !c.client.count(n) {
		return n, errTooLarge
	}
	return n, err
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.client.mu.Lock()
		defer c.client.mu.Unlock()
		delete(c.client.conns, c)
	})
	return c.Conn.Close()
}

// count adds bytes, and reports whether there are more.
func (c *Client) count(n int) bool {
	c.mu.Lock()
	before := c.report.Bytes
	c.report.Bytes += int64(n)
	spent := c.report.Bytes >= c.limits.Bytes
	c.mu.Unlock()
	if spent && before < c.limits.Bytes {
		c.refuse("", TooLarge, errTooLarge)
	}
	return !spent
}
