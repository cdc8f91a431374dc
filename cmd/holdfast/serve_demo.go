package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/config"
	"github.com/holdfastdev/holdfast/kind/call"
)

// demoSettings make things happen soon enough to be watched. What somebody set stays.
var demoSettings = map[string]string{
	"retry-base-delay": "2s", "retry-jitter-max": "1s", "circuit-window": "10", "circuit-cooldown": "8s", "http-allow": "127.0.0.0/8", "http-ports": "*", "auth": "off",
}

// serveDemo serves a throw-away store with something to see in it.
func serveDemo(c *cobra.Command, set config.Values) error {
	if set.Of("store").From == "--store" {
		return usage(c, fmt.Errorf("--demo and --store: the demo has a store of its own, which is thrown away"))
	}
	for name, text := range demoSettings {
		if set.Said(name) {
			continue
		}
		if err := set.Set(name, text); err != nil {
			return err
		}
	}
	if !set.Said("listen") && taken(set.Text("listen")) {
		if err := set.Set("listen", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return fmt.Errorf("the demo needs a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	gateway, err := startMoody()
	if err != nil {
		return err
	}
	defer gateway.close()
	s := &site{set: set, talk: io.Discard} // failures are what there is to see; the log would drown the invitation
	if set.Said("log") || set.Said("log-level") {
		s.talk = c.ErrOrStderr()
	}
	defer s.close()
	if err := s.open(c.Context(), filepath.Join(dir, "jobs.db")); err != nil {
		return err
	}
	return s.run(c.Context(), func(ctx context.Context) error {
		if err := enqueueSome(ctx, s, gateway.url, 40); err != nil {
			return err
		}
		go keepEnqueueing(ctx, s, gateway.url)
		invite(c.OutOrStdout(), s.url(), gateway.url)
		return nil
	})
}

// taken reports whether somebody listens there already.
func taken(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	_ = listener.Close()
	return false
}

// invite says what there is to try.
func invite(out io.Writer, url, gateway string) {
	fmt.Fprintf(out, `holdfast serves a demo at %[1]s
  A gateway at %[2]s misbehaves, and jobs call it; the store is thrown away at the end (Ctrl-C).

Try, in another terminal:
  curl -s %[1]s/v1/queues
  curl -s %[1]s/v1/jobs -H 'Content-Type: application/json' -d '{"kind": "http", "args": {"url": "%[2]s/broken"}, "max_attempts": 2}'
  curl -s %[1]s/v1/jobs/JOB/story
  curl -s %[1]s/v1/breakers
  curl -s %[1]s/v1/dead-letters
  curl -s %[1]s/v1/redrives -H 'Content-Type: application/json' -d '{"filter": {"code": "HTTP_5XX"}, "reason": "repaired"}'
  holdfast tail --server %[1]s
  holdfast dead-letters --server %[1]s
  holdfast breakers --server %[1]s
`, url, gateway)
}

// demoCalls are what jobs of the demo call: where, on whose account, and what a breaker knows it as.
var demoCalls = []struct{ path, owner, dependency string }{
	{"/fine", "acme", "shop"}, {"/fine", "initech", "shop"}, {"/fine", "acme", "mailer"}, {"/flaky", "acme", "mailer"}, {"/flaky", "initech", "mailer"},
	{"/tides", "acme", "billing"}, {"/tides", "initech", "billing"}, {"/missing", "initech", "shop"}, {"/busy", "acme", "search"},
}

func enqueueSome(ctx context.Context, s *site, gateway string, n int) error {
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		what := demoCalls[rand.IntN(len(demoCalls))]
		d, err := call.Draft(call.Request{Method: http.MethodPost, URL: gateway + what.path, Body: "please"})
		if err != nil {
			return err
		}
		d.Owner, d.Dependency = what.owner, what.dependency
		drafts[i] = d
	}
	_, err := takesIn(s.store, s.taxonomy).Enqueue(ctx, drafts)
	return err
}

// keepEnqueueing keeps things moving. What cannot be enqueued now is left out: it is only a demo.
func keepEnqueueing(ctx context.Context, s *site, gateway string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = enqueueSome(ctx, s, gateway, 1+rand.IntN(3))
		}
	}
}

// A moody gateway is well, unwell, or away by turns.
type moody struct {
	url    string
	server *http.Server
	began  time.Time
	asked  atomic.Int64
}

func startMoody() (*moody, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the demo needs a port on loopback: %w", err)
	}
	m := &moody{url: "http://" + listener.Addr().String(), began: time.Now()}
	m.server = &http.Server{Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: 5 * time.Second}
	go m.server.Serve(listener) //nolint:errcheck // ends with Close
	return m, nil
}

func (m *moody) close() { _ = m.server.Close() }

// answer answers by the path. The tides are out for the first forty seconds of every eighty.
func (m *moody) answer(w http.ResponseWriter, r *http.Request) {
	n := m.asked.Add(1)
	status := http.StatusOK
	switch r.URL.Path {
	case "/broken":
		status = http.StatusInternalServerError
	case "/missing":
		status = http.StatusNotFound
	case "/flaky":
		if n%5 == 0 {
			status = http.StatusBadGateway
		}
	case "/busy":
		if n%4 == 0 {
			w.Header().Set("Retry-After", "3")
			status = http.StatusTooManyRequests
		}
	case "/tides":
		if time.Since(m.began)%(80*time.Second) < 40*time.Second {
			status = http.StatusServiceUnavailable
		}
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s after %d requests\n", http.StatusText(status), n)
}
