package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Handler answers requests, and is notified when the process is about to stop.
type Handler interface {
	http.Handler
	Drain()       // requests are still answered; the readiness check says that the process stops
	Close() error // event streams end: they do not end by themselves
}

// A Server listens for requests and stops gracefully.
type Server struct {
	handler  Handler
	server   *http.Server
	listener net.Listener
	grace    time.Duration
}

// Listen listens on an address, which comes from the setting with that name.
func Listen(ctx context.Context, name, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s=%s: %w; if another program uses the port, stop it or choose another port: %s=127.0.0.1:0 takes any free one", name, address, err, name)
	}
	return listener, nil
}

// NewServer returns a server on a listener. grace is how long requests in progress may take when it stops.
func NewServer(listener net.Listener, handler Handler, grace time.Duration, log *slog.Logger) *Server {
	s := &Server{handler: handler, listener: listener, grace: grace}
	s.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // mostly errors of clients
	}
	s.server.RegisterOnShutdown(func() { _ = s.handler.Close() })
	return s
}

// URL returns the address of the page.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Run serves until ctx ends. Requests in progress then have the grace period to finish and are cut off after it.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.handler.Drain()
		graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
		defer cancel()
		if s.server.Shutdown(graceCtx) != nil {
			_ = s.server.Close()
		}
		stopped <- nil
	})
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}

// Close closes the listener and every connection.
func (s *Server) Close() {
	_ = s.server.Close()
	_ = s.listener.Close()
}

// RunAll runs parts of a process by their names until ctx ends or one of them ends; then the others are asked to stop. It returns their errors.
func RunAll(ctx context.Context, parts map[string]func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for name, part := range parts {
		go func() {
			err := part(ctx)
			cancel()
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			ended <- err
		}()
	}
	var all []error
	for range parts {
		all = append(all, <-ended)
	}
	return errors.Join(all...)
}

// IsLoopback reports whether an address can be reached from this machine only.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// KnownHost reports whether the Host of a request is a name of this site, which listens on address: one of hosts, or a loopback name; any name if there are no hosts
// and the address is not a loopback address. This refuses DNS rebinding: a page of another site whose name resolves to this address.
func KnownHost(r *http.Request, hosts []string, address string) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	at, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && at.Unmap().IsLoopback() {
		return true
	}
	if len(hosts) > 0 {
		return slices.Contains(hosts, host)
	}
	return !IsLoopback(address)
}
