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
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/config"
)

// stdinLifeline is an environment variable. A gateway that has it set stops at the end of its standard input, that is, when its parent process has ended for any reason.
const stdinLifeline = "CONVERT_TIED"

// serveGateway implements `convert gateway`.
func serveGateway(ctx context.Context, set settings, out io.Writer, log *slog.Logger) error {
	handler, err := gateway.New(gateway.Config{Mappings: set.MappingsDir, Reader: set.GatewayReader, MaxBytes: set.MaxUpload, Timeout: set.GatewayTimeout, Slots: set.GatewaySlots, Log: log})
	if err != nil {
		return err
	}
	listener, err := web.Listen(ctx, "GATEWAY_ADDR", set.GatewayAddr)
	if err != nil {
		return err
	}
	if os.Getenv(stdinLifeline) != "" {
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
		graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), set.Grace)
		defer cancel()
		if server.Shutdown(graceCtx) != nil {
			_ = server.Close()
		}
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// A gatewayProcess is the gateway that `convert` without arguments starts as a separate process, so that a user can stop it, watch what happens, and start it again.
type gatewayProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer     // closing it stops the process
	ended chan struct{} // closed when the process has ended
	log   *slog.Logger
}

// ensureGateway starts a gateway unless one answers at the address already. It prints how to stop it and start it again. The result is nil if the gateway was running
// before.
func (a *app) ensureGateway(ctx context.Context, out io.Writer) (*gatewayProcess, error) {
	request, cancel := context.WithTimeout(ctx, mappingsTimeout)
	defer cancel()
	if _, err := a.requestMappings(request); err == nil {
		fmt.Fprintf(out, "A gateway is already running at %s. It is used, and keeps running when convert stops.\n", shownURL(a.set.GatewayURL))
		return nil, nil
	}
	if listener, err := web.Listen(ctx, "GATEWAY_ADDR", a.set.GatewayAddr); err != nil {
		return nil, err
	} else if err := listener.Close(); err != nil {
		return nil, err
	}
	c, err := startGateway(a.log)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "The gateway is process %d at %s\n", c.cmd.Process.Pid, shownURL(a.set.GatewayURL))
	fmt.Fprintf(out, "  to see what happens without it:  %s\n  to start it again:               %s\nIt does not restart by itself. Ctrl-C stops everything.\n", killCommand(c.cmd.Process.Pid), "convert gateway   (from the sources: cd apps && go run ./convert gateway)")
	return c, nil
}

// startGateway starts this program again as a gateway.
func startGateway(log *slog.Logger) (*gatewayProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot start the gateway: %w; start it with 'convert gateway' and set GATEWAY_URL", err)
	}
	c := &gatewayProcess{cmd: exec.Command(self, "gateway"), ended: make(chan struct{}), log: log}
	c.cmd.Env = append(os.Environ(), stdinLifeline+"=1")
	c.cmd.Stdout, c.cmd.Stderr = os.Stdout, os.Stderr
	setProcessGroup(c.cmd)
	stdin, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the gateway: %w", err)
	}
	c.stdin = stdin
	go c.wait()
	return c, nil
}

// wait logs the end of the gateway. The gateway is not restarted: conversions stay queued until a user starts it.
func (c *gatewayProcess) wait() {
	err := c.cmd.Wait()
	c.log.Info("gateway process ended, conversions stay queued; start it with 'convert gateway'", "event", "gateway_ended", "how", fmt.Sprint(err))
	close(c.ended)
}

// stop ends the gateway. Conversions in progress have 10 seconds to finish; then the process is killed.
func (c *gatewayProcess) stop() {
	if c == nil {
		return
	}
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// shownURL returns an address without a password.
func shownURL(address string) string { return config.Redacted(address) }
