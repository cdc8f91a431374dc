package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/config"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/internal/probe"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/nats"
	"github.com/holdfastdev/holdfast/notify/webhook"
)

// makeEngine makes the engine that performs duties, judges what remote workers report, and runs the built-in kinds.
func (s *site) makeEngine() (err error) {
	cfg := s.rules()
	cfg.Name, cfg.Queues, cfg.Slots, cfg.OwnerSlots = "server", s.set.List("queues"), s.set.Count("workers"), s.set.Count("owner-workers")
	cfg.Timeout, cfg.Around, cfg.Log = s.set.Span("timeout"), s.watch.around(), s.log
	if s.set.Text("exec-config") != "" && !s.set.Said("workers") {
		cfg.Slots = 10 // programs cost more than calls
	}
	cfg.Duties = append(cfg.Duties, engine.Duty{Name: "attend", Beat: 30 * time.Second, Round: s.desk.Attend})
	if s.engine, err = engine.New(s.pulse, cfg); err != nil {
		return &usageError{err}
	}
	if s.set.On("no-workers") || cfg.Slots == 0 {
		return nil
	}
	return s.registerKinds()
}

// rules are what both engines of a server go by: either may take over what a lost worker held, or move a breaker.
func (s *site) rules() engine.Config {
	cfg := engine.Config{
		Lease: s.set.Span("lease"), Grace: s.set.Span("grace"), Taxonomy: s.taxonomy, Policy: s.retries(), Policies: s.given, ProbeURL: probe.URL,
		Version: thisBuild().Version, Ended: s.watch.metrics.Ended,
	}
	if s.shape != nil {
		s.shape(&cfg)
	}
	return cfg
}

// retries is the policy of kinds that have none of their own.
func (s *site) retries() (p failure.Policy) {
	p.MaxAttempts = s.set.Count("retry-max-attempts")
	if s.set.Said("retry-base-delay") || s.set.Said("retry-jitter-max") {
		p.Backoff = failure.Exponential{Base: s.set.Span("retry-base-delay"), Factor: 2, Cap: time.Hour, Jitter: failure.Jitter{Plus: s.set.Span("retry-jitter-max")}}
	}
	return p
}

// policies is what the policy file says, or what the settings say of every dependency.
func (s *site) policies(ctx context.Context) (*policy.Set, error) {
	circuit := ""
	for _, one := range []struct{ name, word, text string }{
		{"circuit-window", "window", s.set.Text("circuit-window")},
		{"circuit-fail-threshold", "failure_rate", strconv.FormatFloat(100*s.set.Share("circuit-fail-threshold"), 'f', -1, 64) + "%"},
		{"circuit-cooldown", "open_for", s.set.Text("circuit-cooldown")},
	} {
		if s.set.Said(one.name) {
			circuit += fmt.Sprintf("%s: %s, ", one.word, one.text)
		}
	}
	text, name := []byte(nil), s.set.Text("policy")
	switch {
	case name != "" && circuit != "":
		return nil, &usageError{fmt.Errorf("a policy file and circuit settings: say in %s what breakers do", name)}
	case name != "":
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, &usageError{fmt.Errorf("the policy cannot be read: %w", err)}
		}
	case circuit != "":
		name, text = "the circuit settings", fmt.Appendf(nil, "dependencies: {\"*\": {breaker: {%s}}}\n", strings.TrimSuffix(circuit, ", "))
	default:
		return nil, nil
	}
	codes, err := s.desk.Codes(ctx)
	if err != nil {
		return nil, err
	}
	set, unknown, err := policy.ParseLenient(text, catalog.TaxonomyOf(codes))
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s cannot be used:\n%w", name, err)}
	}
	if len(unknown) > 0 {
		// Its workers may start after the server does, and publish them then.
		s.log.Warn("the policy names failure codes that nothing defines yet", "event", "policy", "file", name, "codes", unknown.Error())
	}
	return set, nil
}

// makeNotify makes what delivers to subscriptions, by the sinks that are set up.
func (s *site) makeNotify() error {
	if s.set.On("no-notify") {
		return nil
	}
	sinks, err := s.sinks()
	if err != nil {
		return &usageError{err}
	}
	cfg := s.rules()
	cfg.Name = "deliveries"
	s.notify, err = notify.New(s.store, notify.Config{Sinks: sinks, Source: s.set.Text("source"), Log: s.log, Engine: cfg})
	return err
}

func (s *site) sinks() (map[string]notify.Sink, error) {
	allow, err := networks(s.set.List("webhook-allow"))
	if err != nil {
		return nil, fmt.Errorf("--webhook-allow: %w", err)
	}
	hook, err := webhook.New(webhook.Config{Allow: allow, AllowHTTP: s.set.On("webhook-http")})
	if err != nil {
		return nil, err
	}
	sinks := map[string]notify.Sink{"webhook": hook}
	if host := s.set.Text("mail-host"); host != "" {
		cfg := mail.Config{Host: host, TLS: mail.TLS(s.set.Text("mail-tls")), From: s.set.Text("mail-from"), Username: s.set.Text("mail-user"), Password: s.set.Text("mail-password")}
		if name, port, err := net.SplitHostPort(host); err == nil {
			cfg.Host = name
			cfg.Port, _ = strconv.Atoi(port)
		}
		letters, err := mail.New(cfg)
		if err != nil {
			return nil, err
		}
		sinks["mail"] = letters
	}
	if address := s.set.Text("nats-url"); address != "" {
		events, err := nats.New(nats.Config{URL: address, Stream: s.set.Text("nats-stream")})
		if err != nil {
			return nil, err
		}
		sinks["stream"] = events
	}
	return sinks, nil
}

// networks reads networks as people write them: 10.0.0.0/8, or one address.
func networks(list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if ip, one := netip.ParseAddr(text); err != nil && one == nil {
			p, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%.60q is no network: write it such as 10.0.0.0/8", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// newLog makes the log: as text for people, as JSON for machines.
func newLog(set config.Values, to io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(set.Text("log-level"))) // it is one of the choices
	options := &slog.HandlerOptions{Level: level}
	if how := set.Text("log"); how == "text" || how == "auto" && isTerminal(to) {
		return slog.New(slog.NewTextHandler(to, options))
	}
	return slog.New(slog.NewJSONHandler(to, options))
}
