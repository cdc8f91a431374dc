package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/holdfastdev/holdfast/store"
)

// A livenessStore is a store that records when the engine last announced its presence. A live engine does so every third of a lease, also while the
// store is unavailable. An engine that hangs does not.
type livenessStore struct {
	store.Store
	last atomic.Int64 // Unix time in nanoseconds; 0: never
}

// ReportWorker records the time and passes the call on.
func (l *livenessStore) ReportWorker(ctx context.Context, presence store.WorkerInfo) error {
	l.last.Store(time.Now().UnixNano())
	return l.Store.ReportWorker(ctx, presence)
}

// alive reports whether the engine has announced its presence within two leases and ten seconds, and how long ago that was.
func (l *livenessStore) alive(lease time.Duration) (since time.Duration, ok bool) {
	last := l.last.Load()
	if last == 0 {
		return 0, false
	}
	since = time.Since(time.Unix(0, last))
	return since, since < 2*lease+10*time.Second // a store that answers slowly does not make the engine count as hung
}

// healthCheck returns the engine's check for the server's health endpoint.
func (l *livenessStore) healthCheck(lease time.Duration) func(context.Context) (any, error) {
	return func(context.Context) (any, error) {
		since, ok := l.alive(lease)
		detail := map[string]any{"moved": since.Round(time.Millisecond).String() + " ago"}
		if !ok {
			return detail, errors.New("the engine hangs: it performs no duties")
		}
		return detail, nil
	}
}

// notifyWatchdog notifies systemd's watchdog until ctx ends, but only while the engine is alive or has not started yet.
func (l *livenessStore) notifyWatchdog(ctx context.Context, lease time.Duration) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		if _, ok := l.alive(lease); ok || l.last.Load() == 0 {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// notifyReady tells systemd that the server answers requests. Without systemd it does nothing.
func notifyReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }

// notifyStopping tells systemd that the server is stopping. Without systemd it does nothing.
func notifyStopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }
