package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/engine"
)

// roles are what one process does.
type roles struct{ web, worker, gateway bool }

// queues returns the queues that a process claims from. Web processes run the refusals that they create.
func (p roles) queues() (queues []string) {
	if p.web {
		queues = append(queues, queueRefuse)
	}
	if p.worker {
		queues = append(queues, queueConvert)
	}
	return queues
}

// serve runs the roles until ctx ends and then stops them in order: nothing new is accepted, work in progress finishes, the gateway ends after the last conversion, and
// the store is closed after the last write.
func serve(ctx context.Context, set settings, what roles, out io.Writer, log *slog.Logger) (err error) {
	if err := makeFolder(set.Store); err != nil {
		return err
	}
	a, err := open(ctx, set, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	worker, err := a.engine(what.queues()...)
	if err != nil {
		return err
	}
	var server *webServer
	if what.web {
		if server, err = a.newWebServer(ctx); err != nil {
			return err
		}
		defer server.close()
	}
	if what.gateway {
		gateway, err := a.ensureGateway(ctx, out)
		if err != nil {
			return err
		}
		defer gateway.stop()
	}
	if what.worker {
		fmt.Fprintf(out, "Worker %s uses the gateway at %s\n", worker.Worker(), shownURL(set.GatewayURL))
	}
	if server != nil {
		fmt.Fprintf(out, "The page is at %s\n", server.url())
	}
	return runAll(ctx, a, worker, server)
}

// runAll runs the engine, and the web server if there is one, until ctx ends or one of them fails.
func runAll(ctx context.Context, a *app, worker *engine.Engine, server *webServer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	run := func(name string, part func(context.Context) error) {
		go func() {
			err := part(ctx)
			cancel() // if one ends, the other stops too
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			ended <- err
		}()
	}
	run("the engine", worker.Run)
	if server == nil {
		return <-ended
	}
	run("the listener", server.run)
	context.AfterFunc(ctx, func() { a.log.Info("stopping, accepting nothing new", "event", "stopping") })
	return errors.Join(<-ended, <-ended)
}

// A webServer listens for requests and stops gracefully.
type webServer struct {
	handler  *webHandler
	server   *http.Server
	listener net.Listener
	grace    time.Duration
}

func (a *app) newWebServer(ctx context.Context) (*webServer, error) {
	handler, err := a.handler()
	if err != nil {
		return nil, err
	}
	s := &webServer{handler: handler.(*webHandler), grace: a.set.Grace}
	s.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // mostly errors of clients
	}
	s.server.RegisterOnShutdown(func() { _ = s.handler.Close() })
	s.listener, err = listen(ctx, "ADDR", a.set.Addr)
	return s, err
}

// listen listens on an address. The error names the setting and says what to do.
func listen(ctx context.Context, name, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s=%s: %w; if another program uses the port, stop it or choose another port: %s=127.0.0.1:0 takes any free one", name, address, err, name)
	}
	return listener, nil
}

func (s *webServer) url() string { return "http://" + s.listener.Addr().String() }

// run serves until ctx ends. Requests in progress then have the grace period to finish and are cut off after it. A client without an answer
// has to send its upload again.
func (s *webServer) run(ctx context.Context) error {
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

func (s *webServer) close() {
	_ = s.server.Close()
	_ = s.listener.Close()
}

// makeFolder creates the folder of an SQLite store.
func makeFolder(store string) error {
	if strings.Contains(store, "://") || strings.Contains(store, "=") { // a database server
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return fmt.Errorf("DATABASE_URL: cannot create the folder of the store: %w", err)
	}
	return nil
}
