package main

import (
	"net/netip"

	"github.com/holdfastdev/holdfast/notify/mail"
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
