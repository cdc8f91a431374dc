package main

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/telemetry"
)

const (
	healthFresh  = 5 * time.Second // so long an answer of /readyz is good: asking costs a file each time
	healthWithin = 5 * time.Second
)

// health is what was found out a moment ago.
type health struct {
	mu     sync.Mutex
	at     time.Time
	checks []check
}

// A check is how one part is. Why it is not well is in the log: everybody may ask.
type check struct {
	Name string `json:"name"`
	Well bool   `json:"well"`
}

// mountHealth mounts what watches over processes ask, and the page of metrics if it may be seen.
func (f *front) mountHealth() {
	f.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		_ = answer(w, http.StatusOK, map[string]string{"status": "ok"}) // a map of texts is always JSON
	})
	f.mux.HandleFunc("GET /readyz", f.ready)
	if f.set.Metrics || isLoopback(f.set.Addr) {
		f.mux.Handle("GET /metrics", f.watch.Handler())
	}
}

// ready says whether this process can take files and give them back. The gateway is told of and does not count: without it files wait, and that works.
func (f *front) ready(w http.ResponseWriter, r *http.Request) {
	told := struct {
		Status  string  `json:"status"`
		Checks  []check `json:"checks"`
		Gateway string  `json:"gateway"`
	}{"ok", f.check(r.Context()), "unknown"}
	status := http.StatusOK
	for _, c := range told.Checks {
		if !c.Well {
			told.Status, status = "not ready", http.StatusServiceUnavailable
		}
	}
	if g, err := f.gatewayState(r.Context()); err == nil {
		told.Gateway = g.State
	}
	if err := answer(w, status, told); err != nil {
		f.refused(w, r, err)
	}
}

// check asks all parts, unless that was done a moment ago.
func (f *front) check(ctx context.Context) []check {
	if f.draining.Load() {
		return []check{{Name: "serving"}}
	}
	h := &f.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks != nil && time.Since(h.at) < healthFresh {
		return h.checks
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthWithin) // who asks may go away, and others want to know too
	defer cancel()
	h.checks = nil
	for _, part := range []struct {
		name string
		ask  func(context.Context) error
	}{
		{"store", func(ctx context.Context) error { _, err := f.jobs.Holds(ctx); return err }},
		{"uploads", func(ctx context.Context) error { return writable(ctx, f.uploads, sourceKey) }},
		{"results", func(ctx context.Context) error { return writable(ctx, f.results, resultKey) }},
	} {
		err := part.ask(ctx)
		if err != nil {
			f.log.Warn("not ready", "event", "not_ready", "check", part.name, "error", err.Error())
		}
		h.checks = append(h.checks, check{Name: part.name, Well: err == nil})
	}
	h.at = time.Now()
	return h.checks
}

// writable makes a small file and removes it. It is named as that of a job that does not exist, so that the sweep removes it where we could not.
func writable(ctx context.Context, files blob.Store, key func(holdfast.ID) string) error {
	name := key(holdfast.NewID())
	if _, err := files.Put(ctx, name, strings.NewReader("ready?")); err != nil {
		return err
	}
	return files.Delete(ctx, name)
}

// tallied is a store that counts what is enqueued and new.
type tallied struct {
	holdfast.Store
	by *telemetry.Metrics
}

// Enqueue passes the drafts on, and counts those that became jobs.
func (c tallied) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	receipts, err := c.Store.Enqueue(ctx, drafts)
	for i, r := range receipts {
		if !r.Existing {
			c.by.Enqueued(drafts[i : i+1])
		}
	}
	return receipts, err
}

// watched has an engine's attempts tallied, beside whatever else is told of them.
func (a *app) watched(cfg engine.Config) engine.Config {
	told := cfg.Ended
	cfg.Ended = func(end engine.End) {
		a.watch.Ended(end)
		if told != nil {
			told(end)
		}
	}
	return cfg
}

// isLoopback reports whether an address can be reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
