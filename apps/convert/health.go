package main

import (
	"context"
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/telemetry"
)

// newHealth returns the health of this process: whether it can accept files and serve results.
func (f *webHandler) newHealth() *web.Health {
	return web.NewHealth(f.log,
		web.Check{Name: "store", Ask: func(ctx context.Context) error { _, err := f.jobs.Holds(ctx); return err }},
		// The names are those of a job that does not exist, so that the sweep deletes a file that the check could not delete.
		web.Check{Name: "uploads", Ask: func(ctx context.Context) error { return blob.Probe(ctx, f.uploads, sourceKey(holdfast.NewID())) }},
		web.Check{Name: "results", Ask: func(ctx context.Context) error { return blob.Probe(ctx, f.results, resultKey(holdfast.NewID())) }},
	)
}

// mountHealth mounts the health checks, and /metrics if it may be served.
func (f *webHandler) mountHealth() {
	f.mux.HandleFunc("GET /healthz", f.health.Alive)
	f.mux.HandleFunc("GET /readyz", f.ready)
	if f.set.Metrics || web.IsLoopback(f.set.Addr) {
		f.mux.Handle("GET /metrics", f.metrics.Handler())
	}
}

// ready answers GET /readyz. The gateway's state is part of the answer and does not decide it: without a gateway, files are accepted and wait.
func (f *webHandler) ready(w http.ResponseWriter, r *http.Request) {
	answer, status := f.health.Ready(r.Context())
	body := struct {
		web.Readiness
		Gateway string `json:"gateway"`
	}{answer, "unknown"}
	if g, err := f.gatewayState(r.Context()); err == nil {
		body.Gateway = g.State
	}
	if err := web.WriteJSON(w, status, body); err != nil {
		f.handleError(w, r, err)
	}
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
