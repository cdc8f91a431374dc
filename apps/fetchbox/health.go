package main

import (
	"context"
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// newHealth returns the health of this process: whether it can accept jobs. While the object storage or the stream is down, jobs are accepted and wait, and dead letters
// wait in the store.
func (a *app) newHealth() *web.Health {
	return web.NewHealth(a.log,
		web.Check{Name: "store", Ask: func(ctx context.Context) error { _, err := a.jobs.Holds(ctx); return err }},
		web.Check{Name: "bucket", Ask: a.probeStorage, Optional: true},
		web.Check{Name: "stream", Ask: func(ctx context.Context) error { _, err := a.stream.Position(ctx); return err }, Optional: true},
		web.Check{Name: "ledger", Ask: func(context.Context) error { _, err := a.ledger.After(); return err }, Optional: true},
	)
}

// probeStorage asks the object storage whether it can be written.
func (a *app) probeStorage(ctx context.Context) error {
	return blob.Probe(ctx, a.transfer.bucket, "probe/"+holdfast.NewID().String())
}

// mountHealth mounts the health checks, and /metrics if it may be served.
func (f *api) mountHealth() {
	f.mux.HandleFunc("GET /healthz", f.health.Alive)
	f.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer, status := f.health.Ready(r.Context())
		_ = web.WriteJSON(w, status, answer) // it always marshals
	})
	if f.set.Metrics || web.IsLoopback(f.set.Addr) {
		f.mux.Handle("GET /metrics", f.metrics.handler())
	}
}
