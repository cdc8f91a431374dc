package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// A healthCache holds the last health check. A check starts a process, so its result is reused for a few seconds.
type healthCache struct {
	mu      sync.Mutex
	at      time.Time
	err     error
	checked bool
}

const (
	healthMaxAge  = 3 * time.Second
	healthTimeout = 10 * time.Second // for a process to start and answer
)

// healthz reports whether a PDF could be read now: it starts a child process that does everything but that.
func (g *gateway) healthz(w http.ResponseWriter, r *http.Request) {
	if err := g.checkHealth(); err != nil {
		g.cfg.Log.Error("health check failed", "error", err)
		refuse(codeBusy, "The gateway cannot read PDFs at the moment.").answer(w)
		return
	}
	writeJSON(w, map[string]string{"status": "ok", "reader": g.cfg.Reader})
}

// checkHealth runs the check, or returns the last result. Concurrent requests share one check, which does not end when one of them is cancelled.
func (g *gateway) checkHealth() error {
	h := &g.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checked && time.Since(h.at) < healthMaxAge {
		return h.err
	}
	h.err = g.probe()
	h.at, h.checked = time.Now(), true
	return h.err
}

func (g *gateway) probe() error {
	at, remove, err := g.temp.create()
	if err != nil {
		return err
	}
	defer func() { _ = remove() }() // if this fails, the sweep deletes it later
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	o := g.request(at, mapping{Name: "text"})
	o.Probe = true
	_, err = g.run(ctx, o)
	return err
}
