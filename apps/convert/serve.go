package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/internal/web"
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
	if err := setting.MakeFolder(set.Store); err != nil {
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
	var server *web.Server
	if what.web {
		if server, err = a.newWebServer(ctx); err != nil {
			return err
		}
		defer server.Close()
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
		fmt.Fprintf(out, "The page is at %s\n", server.URL())
	}
	parts := map[string]func(context.Context) error{"the engine": worker.Run}
	if server != nil {
		parts["the listener"] = server.Run
	}
	context.AfterFunc(ctx, func() { log.Info("stopping, accepting nothing new", "event", "stopping") })
	return web.RunAll(ctx, parts)
}

// newWebServer listens on ADDR.
func (a *app) newWebServer(ctx context.Context) (*web.Server, error) {
	handler, err := a.handler()
	if err != nil {
		return nil, err
	}
	listener, err := web.Listen(ctx, "ADDR", a.set.Addr)
	if err != nil {
		return nil, err
	}
	return web.NewServer(listener, handler.(*webHandler), a.set.Grace, a.log), nil
}
