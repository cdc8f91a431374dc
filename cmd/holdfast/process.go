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
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/kind/httpjob"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A serverProcess holds the parts of a server and connects them: store, engine, notifier, HTTP server and console.
type serverProcess struct {
	set          config.Values
	logOutput    io.Writer
	log          *slog.Logger
	codes        []failure.Code           // failure codes of kinds that run in this process and are not built in
	adjustEngine func(cfg *engine.Config) // changes the configuration of the engines; nil: no changes

	taxonomy    *failure.Taxonomy
	httpNames   httpjob.Dependencies // names of the hosts that http jobs call
	policy      *policy.Set          // from the policy file or the breaker settings; nil: none
	store       store.Store
	liveness    *livenessStore
	operator    *ops.Service
	engine      *engine.Engine
	notify      *notify.Service // nil: this process does not deliver to subscriptions
	instruments *instrumentation
	server      *server.Server
	console     *console.Console // nil: the console is off
	listener    net.Listener
	http        *http.Server

	keyless bool // callers need no key until the first key is created
}

// open creates every part and starts to listen, but does not serve yet. It returns an error for every invalid setting.
func (s *serverProcess) open(ctx context.Context, address string) (err error) {
	s.log = newLog(s.set, s.logOutput)
	if rawOf(s.logOutput) == any(os.Stderr) { // this server is the whole process, so the log lines of its store belong here too
		slog.SetDefault(s.log)
	}
	if s.taxonomy, err = failure.NewTaxonomy(s.codes...); err != nil {
		return err
	}
	if s.httpNames, err = httpDependencies(s.set.List("http-dependencies")); err != nil {
		return err
	}
	if s.store, err = anystore.Open(ctx, address); err != nil {
		return err
	}
	if warning := exposureWarning(address); warning != "" {
		s.log.Warn(warning, "event", "store_exposed")
	}
	s.liveness = &livenessStore{Store: s.store}
	s.operator = newOperator(s.store, ops.Config{Taxonomy: s.taxonomy}, s.httpNames)
	if s.policy, err = s.loadPolicy(ctx); err != nil {
		return err
	}
	s.operator = newOperator(s.store, ops.Config{Taxonomy: s.taxonomy, Policies: s.policy, CheckSubscription: s.checkSubscription}, s.httpNames)
	if err := s.decideAuth(ctx); err != nil {
		return err
	}
	if s.instruments, err = s.newInstrumentation(ctx); err != nil {
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

// decideAuth decides whether callers need a key. It returns an error if the server would accept callers from other machines without one.
func (s *serverProcess) decideAuth(ctx context.Context) error {
	loopback := isLoopback(s.set.Text("listen"))
	keys, err := s.operator.Keys(ctx)
	if err != nil {
		return err
	}
	switch s.set.Text("auth") {
	case "off":
		if !loopback {
			return &usageError{fmt.Errorf("--auth off on %s: other machines can reach this address and could do everything without a key; listen on 127.0.0.1, or use --auth keys", s.set.Text("listen"))}
		}
		s.keyless = true
	case "auto":
		s.keyless = loopback && len(keys) == 0
	}
	if !s.keyless && len(keys) == 0 {
		return &usageError{fmt.Errorf("%s requires a key, and there is none: create the first with 'holdfast keys create --store %s --scope admin --name %s'",
			s.set.Text("listen"), storeArgument(s.set.Text("store")), currentUser())}
	}
	return nil
}

// storeArgument returns the store as it would be named on the command line, without a password.
func storeArgument(address string) string {
	if address == "" {
		address, _ = defaultStore()
	}
	return config.Redacted(address)
}

// isLoopback reports whether only this machine can reach an address.
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

func (s *serverProcess) makeServer() (err error) {
	s.server, err = server.New(server.Config{
		Store: s.store, Operator: s.operator, Settler: s.engine, Engine: s.engineConfig(), Enqueue: s.instruments.enqueuer(enqueuerOf(s.store, s.httpNames)),
		Prepare: prepareBuiltIn(s.httpNames), Watch: s.instruments.metrics, Metrics: s.instruments.metrics.Handler(),
		Checks: []server.Check{{Name: "engine", Ask: s.liveness.healthCheck(s.set.Duration("lease"))}},
		Open:   s.keyless, IgnoreKeys: s.set.Text("auth") == "off", TrustProxy: s.set.Bool("trust-proxy"), Log: s.log, Listen: s.events(),
		Limits: server.Limits{PerSecond: float64(s.set.Int("rate-per-key")), InFlight: s.set.Int("in-flight-per-key"), Running: s.set.Int("in-flight")},
	})
	return err
}

// events returns the events of jobs that are written to the feed for readers of this server.
func (s *serverProcess) events() []string {
	if events := s.set.List("events"); !slices.Equal(events, []string{"none"}) {
		return events
	}
	return nil
}

func (s *serverProcess) listen(ctx context.Context) (err error) {
	s.http = s.server.HTTP(s.set.Text("listen"))
	s.http.Handler = s.instruments.handler(s.http.Handler)
	var cfg net.ListenConfig
	if s.listener, err = cfg.Listen(ctx, "tcp", s.set.Text("listen")); err != nil {
		return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf("cannot listen on %s: %v; check that no other server uses the address and that it belongs to this machine", s.set.Text("listen"), err), Cause: err}
	}
	cert, key := s.set.Text("tls-cert"), s.set.Text("tls-key")
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return &usageError{fmt.Errorf("the TLS certificate is invalid: %w; check --tls-cert and --tls-key", err)}
	}
	s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return nil
}

// serveHTTP answers requests until the HTTP server is shut down.
func (s *serverProcess) serveHTTP() error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(s.listener, "", "")
	}
	return s.http.Serve(s.listener)
}

// url is the address of the server.
func (s *serverProcess) url() string {
	scheme := "http://"
	if s.set.Text("tls-cert") != "" {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// run serves until ctx ends or a part fails. It calls ready when requests are answered. It stops in this order: the server reports that it is not ready; the
// engines claim no more jobs and let running ones finish, while remote workers can still settle; then it stops listening.
func (s *serverProcess) run(ctx context.Context, ready func(context.Context) error) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var work sync.WaitGroup
	failed := make(chan error, 3) // engine, notifier and listener send at most one error each
	work.Go(func() { failed <- wrap("the engine", s.engine.Run(working)) })
	if s.notify != nil {
		work.Go(func() { failed <- wrap("subscriptions", s.notify.Run(working)) })
	}
	go func() {
		if err := s.serveHTTP(); !errors.Is(err, http.ErrServerClosed) {
			failed <- wrap("the listener", err)
		}
	}()
	err := ready(ctx)
	notifyReady()
	watching, stopWatchdog := context.WithCancel(working)
	go s.liveness.notifyWatchdog(watching, s.set.Duration("lease"))
	defer stopWatchdog()
	if err == nil {
		select {
		case <-ctx.Done():
			s.log.Info("stopping: no longer ready, claiming no more jobs", "event", "stopping")
		case err = <-failed:
		}
	}
	notifyStopping()
	s.server.Drain()
	stopWork()
	work.Wait()
	for len(failed) > 0 {
		err = errors.Join(err, <-failed) // for example results that could not be settled
	}
	return errors.Join(err, s.shutdown(ctx))
}

// shutdown stops listening. Requests in progress have five seconds to finish.
func (s *serverProcess) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if s.console != nil {
		s.console.Close() // first: open event streams of pages would delay the shutdown
	}
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // event streams do not end by themselves
	}
	return errors.Join(s.server.Close(), s.instruments.close(ctx))
}

// wrap adds the name of the part that failed to an error. A nil error stays nil.
func wrap(part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", part, err)
}

// close releases the listener and the store. It is safe after a failed open.
func (s *serverProcess) close() {
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
