package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/holdfastdev/holdfast/apps/convert/gateway"
	"github.com/holdfastdev/holdfast/config"
)

// tied tells a gateway that it ends when its standard input does: that is when whoever started it has ended, however that came about.
const tied = "CONVERT_TIED"

// serveGateway is `convert gateway`.
func serveGateway(ctx context.Context, set settings, out io.Writer, log *slog.Logger) error {
	handler, err := gateway.New(gateway.Config{Mappings: set.MappingsDir, Reader: set.GatewayReader, MaxBytes: set.MaxUpload, Timeout: set.GatewayTimeout, Slots: set.GatewaySlots, Log: log})
	if err != nil {
		return err
	}
	listener, err := listen(ctx, "GATEWAY_ADDR", set.GatewayAddr)
	if err != nil {
		return err
	}
	if os.Getenv(tied) != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	} else {
		fmt.Fprintf(out, "The gateway is at http://%s\n", listener.Addr())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), set.Grace)
		defer cancel()
		if server.Shutdown(patience) != nil {
			_ = server.Close()
		}
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// A child is the gateway that `convert` alone starts, as a process of its own: so that it can be stopped, and started again, by whoever wants to see what happens.
type child struct {
	cmd   *exec.Cmd
	tie   io.Closer     // its standard input
	ended chan struct{} // closed when it has
	log   *slog.Logger
}

// ownGateway starts one, unless somebody did so before, and says how it can be stopped and started again.
func (a *app) ownGateway(ctx context.Context, out io.Writer) (*child, error) {
	asking, cancel := context.WithTimeout(ctx, offerWithin)
	defer cancel()
	if _, err := a.askMappings(asking); err == nil {
		fmt.Fprintf(out, "A gateway is at %s already: it is used, and not ours to stop.\n", shownURL(a.set.GatewayURL))
		return nil, nil
	}
	if listener, err := listen(ctx, "GATEWAY_ADDR", a.set.GatewayAddr); err != nil {
		return nil, err
	} else if err := listener.Close(); err != nil {
		return nil, err
	}
	c, err := startGateway(a.log)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "The gateway is process %d at %s\n", c.cmd.Process.Pid, shownURL(a.set.GatewayURL))
	fmt.Fprintf(out, "  to see what happens without it:  %s\n  to start it again:               %s\nIt is not started again by itself. Ctrl-C stops everything.\n", killing(c.cmd.Process.Pid), "convert gateway   (from the sources: cd apps && go run ./convert gateway)")
	return c, nil
}

// startGateway starts this program as a gateway.
func startGateway(log *slog.Logger) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the gateway cannot be started: %w; start it with 'convert gateway' and set GATEWAY_URL", err)
	}
	c := &child{cmd: exec.Command(self, "gateway"), ended: make(chan struct{}), log: log}
	c.cmd.Env = append(os.Environ(), tied+"=1")
	c.cmd.Stdout, c.cmd.Stderr = os.Stdout, os.Stderr
	apart(c.cmd)
	tie, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("the gateway cannot be started: %w", err)
	}
	c.tie = tie
	go c.watch()
	return c, nil
}

// watch says so when the gateway ends. Nobody starts it again: files wait until somebody does.
func (c *child) watch() {
	err := c.cmd.Wait()
	c.log.Info("the gateway has ended: conversions wait until there is one again; start it with 'convert gateway'", "event", "gateway_ended", "how", fmt.Sprint(err))
	close(c.ended)
}

// stop ends the gateway. It is given a while for what it has begun.
func (c *child) stop() {
	if c == nil {
		return
	}
	_ = c.tie.Close()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// shownURL is an address without what may be a password in it.
func shownURL(address string) string { return config.Redacted(address) }
