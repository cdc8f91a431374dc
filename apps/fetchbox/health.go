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
func (f *api) mountHealth() {
	f.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = web.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"}) // a map of strings always encodes
	})
	f.mux.HandleFunc("GET /readyz", f.ready)
	if f.set.Metrics || web.IsLoopback(f.set.Addr) {
		f.mux.Handle("GET /metrics", f.metrics.handler())
	}
}

// ready answers GET /readyz: whether this process can accept jobs. Object storage and stream are part of the answer and do not decide it: while one is down, jobs are
// accepted and wait, and dead letters wait in the store.
func (f *api) ready(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Status string  `json:"status"`
		Checks []check `json:"checks"`
	}{"ok", f.check(r.Context())}
	status := http.StatusOK
	for _, c := range body.Checks {
		if !c.Well && (c.Name == "store" || c.Name == "serving") {
			body.Status, status = "not ready", http.StatusServiceUnavailable
		} else if !c.Well && body.Status == "ok" {
			body.Status = "degraded"
		}
	}
	if err := web.WriteJSON(w, status, body); err != nil {
		f.handleError(w, r, err)
	}
}

// check runs all checks, or returns the last result if it is recent.
func (f *api) check(ctx context.Context) []check {
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
		{"bucket", func(ctx context.Context) error { return writable(ctx, f.transfer.bucket) }},
		{"stream", func(ctx context.Context) error { _, err := f.stream.Position(ctx); return err }},
		{"ledger", func(context.Context) error { _, err := f.ledger.After(); return err }},
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

// writable writes a small object and deletes it.
func writable(ctx context.Context, bucket blob.Store) error {
	name := "probe/" + holdfast.NewID().String()
	if _, err := bucket.Put(ctx, name, strings.NewReader("ready?")); err != nil {
		return err
	}
	return bucket.Delete(ctx, name)
}
