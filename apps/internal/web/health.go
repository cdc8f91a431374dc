package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	healthMaxAge = 5 * time.Second // how long a result is reused: checks may write files
	checkTimeout = 5 * time.Second // for all checks together
)

// A Check asks whether one part of an application works.
type Check struct {
	Name     string
	Ask      func(ctx context.Context) error
	Optional bool // while only this part does not work, the process is degraded and still ready
}

// Health answers whether this process is alive and ready.
type Health struct {
	checks   []Check
	log      *slog.Logger
	draining atomic.Bool

	mu   sync.Mutex
	at   time.Time
	last []Checked
}

// NewHealth returns the health of a process. /readyz lists the checks in their order.
func NewHealth(log *slog.Logger, checks ...Check) *Health { return &Health{log: log, checks: checks} }

// Checked is the result for one part. The cause of a failure is only logged: /readyz is public.
type Checked struct {
	Name string `json:"name"`
	Well bool   `json:"well"`
}

// Readiness is the answer to GET /readyz.
type Readiness struct {
	Status string    `json:"status"` // ok, degraded or not ready
	Checks []Checked `json:"checks"`
}

// Alive answers GET /healthz: this process answers requests.
func (h *Health) Alive(w http.ResponseWriter, _ *http.Request) {
	_ = WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"}) // a map of strings always encodes
}

// Drain makes the process report that it is about to stop.
func (h *Health) Drain() { h.draining.Store(true) }

// Draining reports whether Drain was called.
func (h *Health) Draining() bool { return h.draining.Load() }

// Ready returns the answer to GET /readyz with its HTTP status: all checks, or their last results if these are recent.
func (h *Health) Ready(ctx context.Context) (Readiness, int) {
	if h.draining.Load() {
		return Readiness{Status: "not ready", Checks: []Checked{{Name: "serving"}}}, http.StatusServiceUnavailable
	}
	answer, status := Readiness{Status: "ok", Checks: h.results(ctx)}, http.StatusOK
	for i, c := range answer.Checks {
		switch {
		case c.Well:
		case !h.checks[i].Optional:
			answer.Status, status = "not ready", http.StatusServiceUnavailable
		case status == http.StatusOK:
			answer.Status = "degraded"
		}
	}
	return answer, status
}

func (h *Health) results(ctx context.Context) []Checked {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && time.Since(h.at) < healthMaxAge {
		return h.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout) // the result is shared: it does not depend on this client staying connected
	defer cancel()
	h.last = make([]Checked, 0, len(h.checks))
	for _, c := range h.checks {
		err := c.Ask(ctx)
		if err != nil {
			h.log.Warn("not ready", "event", "not_ready", "check", c.Name, "error", err.Error())
		}
		h.last = append(h.last, Checked{Name: c.Name, Well: err == nil})
	}
	h.at = time.Now()
	return h.last
}
