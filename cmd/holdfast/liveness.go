package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/holdfastdev/holdfast"
)

// A pulse is a store that notes when the engine last said that it is alive: it does so on every third of a lease, also while the store is
// away. An engine that stands still does not.
type pulse struct {
	holdfast.Store
	last atomic.Int64
}

// Present notes that the engine moves, and passes its word on.
func (p *pulse) Present(ctx context.Context, presence holdfast.Presence) error {
	p.last.Store(time.Now().UnixNano())
	return p.Store.Present(ctx, presence)
}

// moves reports whether the engine has moved of late.
func (p *pulse) moves(lease time.Duration) (since time.Duration, ok bool) {
	last := p.last.Load()
	if last == 0 {
		return 0, false
	}
	since = time.Since(time.Unix(0, last))
	return since, since < 2*lease+10*time.Second // a store that does not answer is no standstill
}

// check is the engine's line of the server's health.
func (p *pulse) check(lease time.Duration) func(context.Context) (any, error) {
	return func(context.Context) (any, error) {
		since, ok := p.moves(lease)
		detail := map[string]any{"moved": since.Round(time.Millisecond).String() + " ago"}
		if !ok {
			return detail, errors.New("the engine does not move: duties are not performed")
		}
		return detail, nil
	}
}

// feed tells systemd's watchdog that all is well, only while the engine really moves.
func (p *pulse) feed(ctx context.Context, lease time.Duration) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		if _, ok := p.moves(lease); ok || p.last.Load() == 0 {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sayReady tells systemd that requests are answered from now on. Elsewhere it does nothing.
func sayReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }

// sayStopping tells systemd that the stop was heard.
func sayStopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }
