package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// health is what the last look found. A look starts a process, so it is good for a few seconds.
type health struct {
	mu     sync.Mutex
	at     time.Time
	err    error
	looked bool
}

const (
	healthGood = 3 * time.Second
	healthTime = 10 * time.Second // for a process to start and say so
)

// healthz says whether a PDF could be read now: it has a process do all but that.
func (g *gateway) healthz(w http.ResponseWriter, r *http.Request) {
	if err := g.look(); err != nil {
		g.cfg.Log.Error("the gateway is not well", "error", err)
		refuse(codeBusy, "No PDF can be read at the moment.").answer(w)
		return
	}
	answerJSON(w, map[string]string{"status": "ok", "reader": g.cfg.Reader})
}

// look looks once for all who ask at the same time. It does not end with the request of one of them.
func (g *gateway) look() error {
	h := &g.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looked && time.Since(h.at) < healthGood {
		return h.err
	}
	h.err = g.try()
	h.at, h.looked = time.Now(), true
	return h.err
}

func (g *gateway) try() error {
	at, remove, err := g.desk.lay()
	if err != nil {
		return err
	}
	defer func() { _ = remove() }() // swept later when it cannot be now
	ctx, cancel := context.WithTimeout(context.Background(), healthTime)
	defer cancel()
	o := g.order(at, mapping{Name: "text"})
	o.Probe = true
	_, err = g.run(ctx, o)
	return err
}
