package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/nats"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
)

// checkSink refuses a subscription that no process can deliver to. It does not check what only the delivering process knows: the networks that it may call,
// its mail templates, and sinks with other names.
func checkSink(s subscription.Subscription) error {
	switch s.Sink {
	case "webhook":
		everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		sink, err := webhook.New(webhook.Config{Allow: everywhere, AllowHTTP: true})
		if err != nil {
			return err
		}
		return sink.Check(s)
	case "mail":
		sink, err := mail.New(mail.Config{Host: "localhost", From: "holdfast@localhost"})
		if err != nil {
			return err
		}
		plain := s
		plain.Options = nil
		return sink.Check(plain)
	}
	return nil
}

// checkSubscription refuses a subscription that could not work, also one whose secrets this server cannot find or use.
func (s *serverProcess) checkSubscription(sub subscription.Subscription) error {
	if err := checkSink(sub); err != nil || s.notify == nil {
		return err
	}
	return s.notify.CheckSecrets(sub)
}

// makeNotify creates the notifier, which delivers events to subscriptions through the configured sinks.
func (s *serverProcess) makeNotify() error {
	if s.set.Bool("no-notify") {
		return nil
	}
	sinks, err := s.sinks()
	if err != nil {
		return &usageError{err}
	}
	cfg := s.engineConfig()
	cfg.Name = "deliveries"
	s.notify, err = notify.New(s.store, notify.Config{Sinks: sinks, Source: s.set.Text("source"), Log: s.log, Engine: cfg})
	return err
}

// sinks creates the sinks that the settings configure: webhook always, mail with mail-host, stream with nats-url.
func (s *serverProcess) sinks() (map[string]notify.Sink, error) {
	allow, err := networks(s.set.List("webhook-allow"))
	if err != nil {
		return nil, fmt.Errorf("--webhook-allow: %w", err)
	}
	hook, err := webhook.New(webhook.Config{Allow: allow, AllowHTTP: s.set.Bool("webhook-http")})
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
		sink, err := mail.New(cfg)
		if err != nil {
			return nil, err
		}
		sinks["mail"] = sink
	}
	if address := s.set.Text("nats-url"); address != "" {
		sink, err := nats.New(nats.Config{URL: address, Stream: s.set.Text("nats-stream")})
		if err != nil {
			return nil, err
		}
		sinks["stream"] = sink
	}
	return sinks, nil
}

// networks parses networks such as 10.0.0.0/8, or single addresses.
func networks(list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if ip, one := netip.ParseAddr(text); err != nil && one == nil {
			p, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%.60q is not a network: give one such as 10.0.0.0/8", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}
