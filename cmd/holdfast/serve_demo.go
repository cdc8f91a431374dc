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
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/store"
)

// demoSettings make events happen soon enough to watch. Settings that the user gives take precedence.
var demoSettings = map[string]string{
	"retry-base-delay": "2s", "retry-jitter-max": "1s", "http-allow": "127.0.0.0/8", "http-ports": "*", "auth": "off",
	"webhook-allow": "127.0.0.0/8", "webhook-http": "true", "grace": "2s",
}

// demoPolicy makes breakers open and close quickly.
const demoPolicy = `# The policy of the demo.
kinds:
  thumbnail: {max_attempts: 2}
  report: {give_up_after: 1h, backoff: {shape: fixed, delay: 5s}}
codes:
  RATE_LIMITED: {max_attempts: 5}
dependencies:
  "*":
    breaker: {window: 10, failure_rate: 50%, open_for: 8s, open_max: 12s, ramp: 8s}
`

// setDemoPolicy uses demoPolicy, unless the user gives a policy or breaker settings.
func setDemoPolicy(set config.Values, dir string) error {
	for _, name := range []string{"policy", "breaker-window", "breaker-fail-threshold", "breaker-cooldown"} {
		if set.IsSet(name) {
			return nil
		}
	}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(demoPolicy), 0o600); err != nil {
		return fmt.Errorf("cannot create a temporary folder for the demo: %w", err)
	}
	return set.Set("policy", file)
}

// serveDemo serves a temporary store in which a live demo runs.
func serveDemo(c *cobra.Command, set config.Values) error {
	if set.Of("store").From == "--store" {
		return usage(c, fmt.Errorf("--demo and --store cannot be used together: the demo uses a temporary store"))
	}
	for name, text := range demoSettings {
		if set.IsSet(name) {
			continue
		}
		if err := set.Set(name, text); err != nil {
			return err
		}
	}
	if !set.IsSet("listen") && inUse(set.Text("listen")) {
		if err := set.Set("listen", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return fmt.Errorf("cannot create a temporary folder for the demo: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := setDemoPolicy(set, dir); err != nil {
		return err
	}
	gateway, err := startDemoGateway()
	if err != nil {
		return err
	}
	defer gateway.close()
	if !set.IsSet("http-dependencies") {
		if err := set.Set("http-dependencies", gateway.dependencies()); err != nil {
			return err
		}
	}
	s := &serverProcess{set: set, logOutput: io.Discard, codes: liveCodes, adjustEngine: shortRetention} // the log of many failures would hide the introduction
	if set.IsSet("log") || set.IsSet("log-level") {
		s.logOutput = c.ErrOrStderr()
	}
	defer s.close()
	if err := s.open(c.Context(), filepath.Join(dir, "jobs.db")); err != nil {
		return err
	}
	d := &demo{process: s, gateway: gateway, jobs: enqueuerOf(s.store, s.httpNames)}
	demoCtx, cancel := context.WithCancel(c.Context())
	defer d.work.Wait() // before the store is closed
	defer cancel()
	return s.run(c.Context(), func(context.Context) error {
		if err := d.start(demoCtx); err != nil {
			return err
		}
		printIntroduction(c.OutOrStdout(), s, gateway.url)
		return nil
	})
}

// shortRetention keeps the temporary store small, however long the demo runs.
func shortRetention(cfg *engine.Config) {
	cfg.Retention = []store.RetentionRule{
		{Name: "complete", State: holdfast.Complete, For: 15 * time.Minute}, {Name: "cancelled", State: holdfast.Cancelled, For: time.Hour},
		{Name: "failed", State: holdfast.Failed, For: time.Hour},
	}
	cfg.RetentionWarning = -1
	cfg.KeepFeed, cfg.KeepStories, cfg.KeepCounts, cfg.KeepTombstones = time.Hour, store.MinKeepStories, 24*time.Hour, 3*time.Hour
}

// inUse reports whether another process listens on an address.
func inUse(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	_ = listener.Close()
	return false
}

// printIntroduction prints where the demo is served, what to look at, and which commands to try.
func printIntroduction(out io.Writer, s *serverProcess, gateway string) {
	fmt.Fprintf(out, "holdfast serves a demo at %s\n", s.url())
	if pages := s.consoleURL(); pages != "" {
		fmt.Fprintf(out, `
  console  %s   open it in a browser

  Demo jobs call a gateway that is unreliable. What to look at:
    Errors        many failures, but few error groups
    Breakers      billing is down for 40 seconds of every 80: its jobs are held, none is lost
    Dead letters  jobs that gave up; when billing is up again, redrive its jobs
    Groups        "Spring postcards" is partial: retry its failed members, the ink is in stock now
    Queues        imports is paused: see by whom and why, and resume it
`, pages)
	}
	fmt.Fprintf(out, `
  Ctrl-C ends the demo and deletes its store. The gateway is at %[2]s.

Try, in another terminal:
  curl -s %[1]s/v1/queues
  curl -s %[1]s/v1/jobs -H 'Content-Type: application/json' -d '{"kind": "http", "args": {"url": "%[2]s/broken"}, "max_attempts": 2}'
  curl -s %[1]s/v1/jobs/JOB/story
  curl -s %[1]s/v1/breakers
  curl -s %[1]s/v1/dead-letters
  curl -s %[1]s/v1/redrives -H 'Content-Type: application/json' -d '{"filter": {"code": "DEPENDENCY_DOWN"}, "reason": "billing is up again"}'
  holdfast tail --server %[1]s
  holdfast dead-letters --server %[1]s
  holdfast breakers --server %[1]s
`, s.url(), gateway)
}
