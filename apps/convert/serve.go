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

// parts are what one process does.
type parts struct{ web, worker, gateway bool }

// queues are those that a process works on. Refusals are written down by those who refuse.
func (p parts) queues() (queues []string) {
	if p.web {
		queues = append(queues, queueRefuse)
	}
	if p.worker {
		queues = append(queues, queueConvert)
	}
	return queues
}

// serve runs the parts until ctx ends, then stops them in order: nothing new is taken, what is under way finishes, the gateway ends when nobody needs it any
// more, and the store is closed after the last word was written.
func serve(ctx context.Context, set settings, what parts, out io.Writer, log *slog.Logger) (err error) {
	if err := makeFolder(set.Store); err != nil {
		return err
	}
	a, err := open(ctx, set, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	work, err := a.engine(what.queues()...)
	if err != nil {
		return err
	}
	var site *site
	if what.web {
		if site, err = a.newSite(ctx); err != nil {
			return err
		}
		defer site.close()
	}
	if what.gateway {
		child, err := a.ownGateway(ctx, out)
		if err != nil {
			return err
		}
		defer child.stop()
	}
	if what.worker {
		fmt.Fprintf(out, "Worker %s asks the gateway at %s\n", work.Worker(), shownURL(set.GatewayURL))
	}
	if site != nil {
		fmt.Fprintf(out, "The page is at %s\n", site.url())
	}
	return together(ctx, a, work, site)
}

// together runs the engine, and the site if there is one, until ctx ends or one of them fails.
func together(ctx context.Context, a *app, work *engine.Engine, site *site) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	run := func(name string, part func(context.Context) error) {
		go func() {
			err := part(ctx)
			cancel() // one without the other is of no use
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			ended <- err
		}()
	}
	run("the engine", work.Run)
	if site == nil {
		return <-ended
	}
	run("the listener", site.run)
	context.AfterFunc(ctx, func() { a.log.Info("asked to stop: nothing new is taken", "event", "stopping") })
	return errors.Join(<-ended, <-ended)
}

// A site is what listens.
type site struct {
	front    *front
	server   *http.Server
	listener net.Listener
	grace    time.Duration
}

func (a *app) newSite(ctx context.Context) (*site, error) {
	handler, err := a.handler()
	if err != nil {
		return nil, err
	}
	s := &site{front: handler.(*front), grace: a.set.Grace}
	s.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // it complains mostly of what clients do
	}
	s.server.RegisterOnShutdown(func() { _ = s.front.Close() })
	s.listener, err = listen(ctx, "ADDR", a.set.Addr)
	return s, err
}

// listen takes an address, or says what to do.
func listen(ctx context.Context, name, address string) (net.Listener, error) {
	var how net.ListenConfig
	listener, err := how.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s=%s cannot be listened on: %w; if another program has that port, end it, or choose another one: %s=127.0.0.1:0 takes any", name, address, err, name)
	}
	return listener, nil
}

func (s *site) url() string { return "http://" + s.listener.Addr().String() }

// run answers until ctx ends. Requests under way are given the grace then, and are cut off after it: an upload that was not answered is not there.
func (s *site) run(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.front.Drain()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
		defer cancel()
		if s.server.Shutdown(patience) != nil {
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

func (s *site) close() {
	_ = s.server.Close()
	_ = s.listener.Close()
}

// makeFolder makes the folder of a store that is a file.
func makeFolder(store string) error {
	if strings.Contains(store, "://") || strings.Contains(store, "=") { // an address of a server
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return fmt.Errorf("DATABASE_URL: the folder of the store cannot be made: %w", err)
	}
	return nil
}
