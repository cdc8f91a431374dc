package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/config"
	"github.com/holdfastdev/holdfast/engine"
)

// demoSettings make things happen soon enough to be watched. What somebody set stays.
var demoSettings = map[string]string{
	"retry-base-delay": "2s", "retry-jitter-max": "1s", "http-allow": "127.0.0.0/8", "http-ports": "*", "auth": "off",
	"webhook-allow": "127.0.0.0/8", "webhook-http": "true", "grace": "2s",
}

// demoPolicy has breakers open and close while somebody watches.
const demoPolicy = `# How the demo deals with failures.
kinds:
  thumbnail: {max_attempts: 2}
  report: {give_up_after: 1h, backoff: {shape: fixed, delay: 5s}}
codes:
  RATE_LIMITED: {max_attempts: 5}
dependencies:
  "*":
    breaker: {window: 10, failure_rate: 50%, open_for: 8s, open_max: 12s, ramp: 8s}
`

// followPolicy has the demo go by its policy, unless somebody said what to go by.
func followPolicy(set config.Values, dir string) error {
	for _, name := range []string{"policy", "circuit-window", "circuit-fail-threshold", "circuit-cooldown"} {
		if set.Said(name) {
			return nil
		}
	}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(demoPolicy), 0o600); err != nil {
		return fmt.Errorf("the demo needs a temporary folder: %w", err)
	}
	return set.Set("policy", file)
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
	if err := followPolicy(set, dir); err != nil {
		return err
	}
	gateway, err := startMoody()
	if err != nil {
		return err
	}
	defer gateway.close()
	if !set.Said("http-dependencies") {
		if err := set.Set("http-dependencies", gateway.dependencies()); err != nil {
			return err
		}
	}
	s := &site{set: set, talk: io.Discard, codes: townCodes, shape: forgetSoon} // failures are what there is to see; the log would drown the invitation
	if set.Said("log") || set.Said("log-level") {
		s.talk = c.ErrOrStderr()
	}
	defer s.close()
	if err := s.open(c.Context(), filepath.Join(dir, "jobs.db")); err != nil {
		return err
	}
	t := &town{site: s, gateway: gateway, jobs: takesIn(s.store, s.names)}
	living, leave := context.WithCancel(c.Context())
	defer t.work.Wait() // before the store is closed
	defer leave()
	return s.run(c.Context(), func(context.Context) error {
		if err := t.settle(living); err != nil {
			return err
		}
		invite(c.OutOrStdout(), s, gateway.url)
		return nil
	})
}

// forgetSoon keeps the throw-away store small, however long somebody looks.
func forgetSoon(rules *engine.Config) {
	rules.Retention = []holdfast.Retain{
		{Name: "complete", State: holdfast.Complete, For: 15 * time.Minute}, {Name: "cancelled", State: holdfast.Cancelled, For: time.Hour},
		{Name: "failed", State: holdfast.Failed, For: time.Hour},
	}
	rules.RetentionWarning = -1
	rules.KeepFeed, rules.KeepStory, rules.KeepTallies, rules.KeepTombstones = time.Hour, holdfast.MinKeepStory, 24*time.Hour, 3*time.Hour
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

// invite says where to look, what for, and what there is to try.
func invite(out io.Writer, s *site, gateway string) {
	fmt.Fprintf(out, "holdfast serves a demo at %s\n", s.url())
	if pages := s.consoleURL(); pages != "" {
		fmt.Fprintf(out, `
  console  %s   open it in a browser

  A town of jobs calls a gateway that misbehaves. What to look for:
    Failures      what goes wrong, and how few different errors that is
    Breakers      billing is out for 40 seconds of every 80: its jobs are held, none is lost
    Dead letters  what gave up; once billing is back, bring its jobs back with a redrive
    Groups        "Spring postcards" is partial: retry what failed, the ink has come
    Queues        imports is paused: read who did it and why, and resume it
`, pages)
	}
	fmt.Fprintf(out, `
  The store is thrown away at the end (Ctrl-C). The gateway is at %[2]s.

Try, in another terminal:
  curl -s %[1]s/v1/queues
  curl -s %[1]s/v1/jobs -H 'Content-Type: application/json' -d '{"kind": "http", "args": {"url": "%[2]s/broken"}, "max_attempts": 2}'
  curl -s %[1]s/v1/jobs/JOB/story
  curl -s %[1]s/v1/breakers
  curl -s %[1]s/v1/dead-letters
  curl -s %[1]s/v1/redrives -H 'Content-Type: application/json' -d '{"filter": {"code": "DEPENDENCY_DOWN"}, "reason": "billing is back"}'
  holdfast tail --server %[1]s
  holdfast dead-letters --server %[1]s
  holdfast breakers --server %[1]s
`, s.url(), gateway)
}
