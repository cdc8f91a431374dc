package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/internal/probe"
)

// makeEngine creates the engine that performs duties, decides about the outcomes that remote workers report, and runs the built-in kinds.
func (s *serverProcess) makeEngine() (err error) {
	cfg := s.engineConfig()
	cfg.Name, cfg.Slots, cfg.OwnerSlots = "server", s.set.Int("workers"), s.set.Int("owner-workers")
	if cfg.Queues, cfg.QueueSlots, err = queuesAndSlots(s.set.List("queues")); err != nil {
		return err
	}
	cfg.Timeout, cfg.Middleware, cfg.Log = s.set.Duration("timeout"), s.instruments.middleware(), s.log
	if s.set.Text("exec-config") != "" && !s.set.IsSet("workers") {
		cfg.Slots = 10 // programs cost more than HTTP calls
	}
	cfg.Duties = append(cfg.Duties, engine.Duty{Name: "attend", Interval: 30 * time.Second, Run: s.operator.Attend})
	if s.engine, err = engine.New(s.liveness, cfg); err != nil {
		return &usageError{err}
	}
	if s.set.Bool("no-workers") || cfg.Slots == 0 {
		return nil
	}
	return s.registerKinds()
}

// queuesAndSlots parses the setting queues: names, each with its slots if it has some (mail=5).
func queuesAndSlots(list []string) (queues []string, slots map[string]int, err error) {
	slots = make(map[string]int)
	for _, text := range list {
		queue, number, limited := strings.Cut(text, "=")
		queue = strings.TrimSpace(queue)
		queues = append(queues, queue)
		if !limited {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 1 {
			return nil, nil, &usageError{fmt.Errorf("--queues: %.60q: give a positive number of slots, such as mail=5", text)}
		}
		slots[queue] = n
	}
	return queues, slots, nil
}

// engineConfig returns the configuration that both engines of a server share. It must be the same, because either may reclaim the jobs of a lost worker or
// change the state of a breaker.
func (s *serverProcess) engineConfig() engine.Config {
	cfg := engine.Config{
		Lease: s.set.Duration("lease"), Grace: s.set.Duration("grace"), Taxonomy: s.taxonomy, Policy: s.retryPolicy(), Policies: s.policy, ProbeURL: probe.URL,
		Version: thisBuild().Version, OnAttemptEnd: s.instruments.metrics.ObserveAttempt,
	}
	if s.adjustEngine != nil {
		s.adjustEngine(&cfg)
	}
	return cfg
}

// retryPolicy returns the policy of kinds that have none of their own.
func (s *serverProcess) retryPolicy() (p failure.Policy) {
	p.MaxAttempts = s.set.Int("retry-max-attempts")
	if s.set.IsSet("retry-base-delay") || s.set.IsSet("retry-jitter-max") {
		p.Backoff = failure.Exponential{Base: s.set.Duration("retry-base-delay"), Factor: 2, Cap: time.Hour, Jitter: failure.Jitter{Plus: s.set.Duration("retry-jitter-max")}}
	}
	return p
}

// loadPolicy returns the policy of the policy file, or a policy made from the breaker settings, or nil if neither is set.
func (s *serverProcess) loadPolicy(ctx context.Context) (*policy.Set, error) {
	breaker := ""
	for _, one := range []struct{ name, key, value string }{
		{"breaker-window", "window", s.set.Text("breaker-window")},
		{"breaker-fail-threshold", "failure_rate", strconv.FormatFloat(100*s.set.Float("breaker-fail-threshold"), 'f', -1, 64) + "%"},
		{"breaker-cooldown", "open_for", s.set.Text("breaker-cooldown")},
	} {
		if s.set.IsSet(one.name) {
			breaker += fmt.Sprintf("%s: %s, ", one.key, one.value)
		}
	}
	text, name := []byte(nil), s.set.Text("policy")
	switch {
	case name != "" && breaker != "":
		return nil, &usageError{fmt.Errorf("a policy file and --breaker-* settings cannot be used together: configure breakers in %s", name)}
	case name != "":
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, &usageError{fmt.Errorf("cannot read the policy: %w", err)}
		}
	case breaker != "":
		name, text = "the breaker settings", fmt.Appendf(nil, "dependencies: {\"*\": {breaker: {%s}}}\n", strings.TrimSuffix(breaker, ", "))
	default:
		return nil, nil
	}
	codes, err := s.operator.Codes(ctx)
	if err != nil {
		return nil, err
	}
	set, unknown, err := policy.ParseLenient(text, catalog.TaxonomyOf(codes))
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s is invalid:\n%w", name, err)}
	}
	if len(unknown) > 0 {
		// Not an error: workers that start later may publish them.
		s.log.Warn("the policy uses failure codes that are not defined yet", "event", "policy", "file", name, "codes", unknown.Error())
	}
	return set, nil
}

// newLog creates the logger: text on a terminal, otherwise JSON, unless the setting log says which.
func newLog(set config.Values, to io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(set.Text("log-level"))) // already validated
	options := &slog.HandlerOptions{Level: level}
	if format := set.Text("log"); format == "text" || format == "auto" && isTerminal(to) {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}
