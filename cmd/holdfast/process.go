package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/config"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/kind/httpjob"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

// A site is a server process: everything it is made of.
type site struct {
	set   config.Values
	talk  io.Writer // where log lines go
	log   *slog.Logger
	codes []failure.Code             // of kinds that run in this process and are not built in
	shape func(rules *engine.Config) // changes what engines here go by; nil: nothing does

	taxonomy *failure.Taxonomy
	names    httpjob.Dependencies // of the hosts that http jobs call
	given    *policy.Set          // what the policy file or the settings say; nil: nothing
	store    holdfast.Store
	pulse    *pulse
	desk     *ops.Service
	engine   *engine.Engine
	notify   *notify.Service // nil: others serve subscriptions
	watch    *watch
	server   *server.Server
	console  *console.Console // nil: it is off
	listener net.Listener
	http     *http.Server

	unlocked bool // no keys are asked for, until the first is made
}

// open makes everything that serving needs, and serves nothing yet. What cannot work is refused here.
func (s *site) open(ctx context.Context, address string) (err error) {
	s.log = newLog(s.set, s.talk)
	if rawOf(s.talk) == any(os.Stderr) { // the process is this server's alone: what a store logs belongs here too
		slog.SetDefault(s.log)
	}
	if s.taxonomy, err = failure.NewTaxonomy(s.codes...); err != nil {
		return err
	}
	if s.names, err = httpDependencies(s.set.List("http-dependencies")); err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, address); err != nil {
		return err
	}
	if warning := exposed(address); warning != "" {
		s.log.Warn(warning, "event", "store_exposed")
	}
	s.pulse = &pulse{Store: s.store}
	s.desk = deskOf(s.store, ops.Config{Taxonomy: s.taxonomy}, s.names)
	if s.given, err = s.policies(ctx); err != nil {
		return err
	}
	s.desk = deskOf(s.store, ops.Config{Taxonomy: s.taxonomy, Policies: s.given}, s.names)
	if err := s.decideAuth(ctx); err != nil {
		return err
	}
	if s.watch, err = s.newWatch(ctx); err != nil {
		return err
	}
	if err := s.makeEngine(); err != nil {
		return err
	}
	if err := s.makeNotify(); err != nil {
		return err
	}
	if err := s.makeServer(); err != nil {
		return err
	}
	if err := s.makeConsole(); err != nil {
		return err
	}
	return s.listen(ctx)
}

// decideAuth finds out whether callers need a key, and refuses to be open to others.
func (s *site) decideAuth(ctx context.Context) error {
	loopback := isLoopback(s.set.Text("listen"))
	keys, err := s.desk.Keys(ctx)
	if err != nil {
		return err
	}
	switch s.set.Text("auth") {
	case "off":
		if !loopback {
			return &usageError{fmt.Errorf("--auth off on %s: others can reach that address, and everybody could do everything; listen on 127.0.0.1, or use --auth keys", s.set.Text("listen"))}
		}
		s.unlocked = true
	case "auto":
		s.unlocked = loopback && len(keys) == 0
	}
	if !s.unlocked && len(keys) == 0 {
		return &usageError{fmt.Errorf("%s asks for keys, and there is none: make the first with 'holdfast keys create --store %s --scope admin --name %s'",
			s.set.Text("listen"), orHome(s.set.Text("store")), me())}
	}
	return nil
}

// orHome is the store as somebody would name it on the command line.
func orHome(address string) string {
	if address == "" {
		address, _ = homeStore()
	}
	return config.Redacted(address)
}

// isLoopback reports whether an address can be reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func (s *site) makeServer() (err error) {
	s.server, err = server.New(server.Config{
		Store: s.store, Desk: s.desk, Judge: s.engine, Engine: s.rules(), Enqueue: s.watch.enqueuer(takesIn(s.store, s.names)), Watch: s.watch.metrics, Metrics: s.watch.metrics.Handler(),
		Checks: []server.Check{{Name: "engine", Ask: s.pulse.check(s.set.Span("lease"))}},
		Open:   s.unlocked, IgnoreKeys: s.set.Text("auth") == "off", TrustProxy: s.set.On("trust-proxy"), Log: s.log, Listen: s.events(),
		Limits: server.Limits{PerSecond: float64(s.set.Count("rate-per-key")), InFlight: s.set.Count("in-flight-per-key"), Running: s.set.Count("in-flight")},
	})
	return err
}

// events are those of jobs that whoever follows the feed here is told.
func (s *site) events() []string {
	if events := s.set.List("events"); !slices.Equal(events, []string{"none"}) {
		return events
	}
	return nil
}

func (s *site) listen(ctx context.Context) (err error) {
	s.http = s.server.HTTP(s.set.Text("listen"))
	s.http.Handler = s.watch.handler(s.http.Handler)
	var how net.ListenConfig
	if s.listener, err = how.Listen(ctx, "tcp", s.set.Text("listen")); err != nil {
		return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: fmt.Sprintf("nobody can listen on %s: %v; is another server running, or is the address of another machine?", s.set.Text("listen"), err), Cause: err}
	}
	cert, key := s.set.Text("tls-cert"), s.set.Text("tls-key")
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return &usageError{fmt.Errorf("the certificate cannot be used: %w; give --tls-cert and --tls-key", err)}
	}
	s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return nil
}

// answer answers requests until the server is shut down.
func (s *site) answer() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// url is where the server is found.
func (s *site) url() string {
	scheme := "http://"
	if s.set.Text("tls-cert") != "" {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// run serves until ctx ends, then stops in order: it says that it is not ready, claims nothing more and lets work finish, while workers elsewhere
// can still settle; then it stops listening.
func (s *site) run(ctx context.Context, ready func(context.Context) error) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var work sync.WaitGroup
	failed := make(chan error, 3) // each of those who work may say one thing
	work.Go(func() { failed <- blame("the engine", s.engine.Run(working)) })
	if s.notify != nil {
		work.Go(func() { failed <- blame("subscriptions", s.notify.Run(working)) })
	}
	go func() {
		if err := s.answer(); !errors.Is(err, http.ErrServerClosed) {
			failed <- blame("the listener", err)
		}
	}()
	err := ready(ctx)
	sayReady()
	alive, stopPulse := context.WithCancel(working)
	go s.pulse.feed(alive, s.set.Span("lease"))
	defer stopPulse()
	if err == nil {
		select {
		case <-ctx.Done():
			s.log.Info("asked to stop: not ready any more, claiming nothing more", "event", "stopping")
		case err = <-failed:
		}
	}
	sayStopping()
	s.server.Drain()
	stopWork()
	work.Wait()
	for len(failed) > 0 {
		err = errors.Join(err, <-failed) // what could not be written at the end
	}
	return errors.Join(err, s.hangUp(ctx))
}

// hangUp stops listening. Requests under way are given a while.
func (s *site) hangUp(ctx context.Context) error {
	ctx, enough := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer enough()
	if s.console != nil {
		s.console.Close() // first: pages that listen would hold it up
	}
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // streams of events do not end by themselves
	}
	return errors.Join(s.server.Close(), s.watch.close(ctx))
}

// blame says who failed.
func blame(who string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", who, err)
}

// close lets go of everything. It is safe on a site that was never opened.
func (s *site) close() {
	if s.http != nil {
		_ = s.http.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.store != nil {
		_ = s.store.Close()
	}
}
