// Package egress is an HTTP proxy for programs that run what others wrote, such as a browser: every connection of the program goes through it, and it connects to public
// addresses and nothing else (SSRF protection). A check above such a program is not enough: scripts, redirects, iframes and second DNS answers are only seen here.
//
// A program needs a credential. Open makes one for a piece of work, such as one picture, with its own limits and its own report, and Close ends all its connections. A
// name is resolved once for each credential: the addresses that were checked are the addresses that are called, also when the resolver later answers differently.
//
// Requests of plain HTTP are forwarded, and CONNECT makes a tunnel, which HTTPS and WebSockets use. The rules for addresses are those of internal/safehttp.
package egress

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/internal/safehttp"
)

// Config is what all credentials of a proxy have in common. Only Guard is required.
type Config struct {
	Guard   *safehttp.Guard // what may be called
	Resolve time.Duration   // how long the resolver may take; 5 s when zero
	Connect time.Duration   // how long a connection may take to be made; 10 s when zero
	Log     *slog.Logger    // gets a line for each refusal; nil: no log
}

const (
	defaultResolve = 5 * time.Second
	defaultConnect = 10 * time.Second
	headerTimeout  = 10 * time.Second // for the header of a request, from a program on this machine
	maxHeader      = 256 << 10
)

// A Proxy listens on the loopback address. It is safe for concurrent use.
type Proxy struct {
	cfg      Config
	listener net.Listener
	server   *http.Server

	mu      sync.Mutex
	clients map[string]*Client // by user name
}

// Listen starts a proxy on a free port of 127.0.0.1.
func Listen(cfg Config) (*Proxy, error) {
	if cfg.Guard == nil {
		return nil, errors.New("egress: Config.Guard is nil: make one with safehttp.New")
	}
	if cfg.Resolve <= 0 {
		cfg.Resolve = defaultResolve
	}
	if cfg.Connect <= 0 {
		cfg.Connect = defaultConnect
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("egress: cannot listen on the loopback address: %w", err)
	}
	p := &Proxy{cfg: cfg, listener: listener, clients: map[string]*Client{}}
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // what a program sends wrongly is its own affair
	}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Address returns the address of the proxy, as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends the proxy, all credentials and all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	clients := p.clients
	p.clients = map[string]*Client{}
	p.mu.Unlock()
	for _, c := range clients {
		c.Close()
	}
	_ = p.server.Close()
}

// Open makes a credential. The caller closes it.
func (p *Proxy) Open(limits Limits) *Client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		User: rand.Text(), Password: rand.Text(), proxy: p, limits: limits.withDefaults(),
		ctx: ctx, cancel: cancel, names: map[string]*lookup{}, conns: map[net.Conn]bool{},
	}
	c.transport = &http.Transport{
		DialContext: c.dialPlain, DisableCompression: true, MaxIdleConnsPerHost: 6, MaxIdleConns: 32,
		MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: 30 * time.Second,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[c.User] = c
	return c
}

// client returns the credential of a request, or nil.
func (p *Proxy) client(r *http.Request) *Client {
	user, password, ok := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	if !ok {
		return nil
	}
	p.mu.Lock()
	c := p.clients[user]
	p.mu.Unlock()
	if c == nil || subtle.ConstantTimeCompare([]byte(password), []byte(c.Password)) != 1 {
		return nil
	}
	return c
}

// ServeHTTP answers a request to the proxy.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := p.client(r)
	switch {
	case c == nil:
		w.Header().Set("Proxy-Authenticate", `Basic realm="egress"`)
		http.Error(w, "this proxy needs a credential", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		c.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		c.forward(w, r)
	default: // not a request to a proxy, or another protocol
		c.refuse(r.URL.Host, Protocol, errors.New("the request is neither plain HTTP nor CONNECT"))
		http.Error(w, "this proxy forwards http and CONNECT", http.StatusBadRequest)
	}
}
