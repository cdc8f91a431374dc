package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/telemetry"
)

const (
	healthMaxAge = 5 * time.Second // how long /readyz reuses a result: each check writes a file
	checkTimeout = 5 * time.Second // for all checks together
)

// A healthCache holds the last result of the checks.
type healthCache struct {
	mu     sync.Mutex
	at     time.Time
	checks []check
}

// A check is the result for one part. The cause of a failure is only logged: /readyz is public.
type check struct {
	Name string `json:"name"`
	Well bool   `json:"well"`
}

// mountHealth mounts the health checks, and /metrics if it may be served.
func (f *webHandler) mountHealth() {
	f.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		_ = web.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"}) // a map of strings always encodes
	})
	f.mux.HandleFunc("GET /readyz", f.ready)
	if f.set.Metrics || web.IsLoopback(f.set.Addr) {
		f.mux.Handle("GET /metrics", f.metrics.Handler())
	}
}

// ready answers GET /readyz: whether this process can accept files and serve results. The gateway's state is part of the answer and does not decide it: without a
// gateway, files are accepted and wait.
func (f *webHandler) ready(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Status  string  `json:"status"`
		Checks  []check `json:"checks"`
		Gateway string  `json:"gateway"`
	}{"ok", f.check(r.Context()), "unknown"}
	status := http.StatusOK
	for _, c := range body.Checks {
		if !c.Well {
			body.Status, status = "not ready", http.StatusServiceUnavailable
		}
	}
	if g, err := f.gatewayState(r.Context()); err == nil {
		body.Gateway = g.State
	}
	if err := web.WriteJSON(w, status, body); err != nil {
		f.handleError(w, r, err)
	}
}

// check runs all checks, or returns the last result if it is recent.
func (f *webHandler) check(ctx context.Context) []check {
	if f.draining.Load() {
		return []check{{Name: "serving"}}
	}
	h := &f.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks != nil && time.Since(h.at) < healthMaxAge {
		return h.checks
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout) // the result is shared: it does not depend on this client staying connected
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

// writable writes a small file and deletes it. Its name is that of a job that does not exist, so that the sweep deletes the file if this call cannot.
func writable(ctx context.Context, files blob.Store, key func(holdfast.ID) string) error {
	name := key(holdfast.NewID())
	if _, err := files.Put(ctx, name, strings.NewReader("ready?")); err != nil {
		return err
	}
	return files.Delete(ctx, name)
}

// A countingStore is a store that counts new jobs in the metrics.
type countingStore struct {
	store.Store
	by *telemetry.Metrics
}

// Enqueue enqueues the drafts and counts those that became new jobs.
func (c countingStore) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	receipts, err := c.Store.Enqueue(ctx, drafts)
	for i, r := range receipts {
		if !r.Existing {
			c.by.ObserveEnqueue(drafts[i : i+1])
		}
	}
	return receipts, err
}

// withMetrics counts the attempts of an engine, and still calls the Ended hook of the config.
func (a *app) withMetrics(cfg engine.Config) engine.Config {
	next := cfg.OnAttemptEnd
	cfg.OnAttemptEnd = func(end engine.AttemptEnd) {
		a.metrics.ObserveAttempt(end)
		if next != nil {
			next(end)
		}
	}
	return cfg
}
