package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/inbox"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/ops"
)

// The third part of the demo: a group of fifty cards, three of which cannot be printed. A mail and a webhook report how the group ended.

const (
	cards      = 50
	demoSecret = "demo" // name of the webhook's secret; the secret itself is generated for each run
)

// cardArgs is one card of the campaign.
type cardArgs struct {
	Number int    `json:"number"`
	Ink    string `json:"ink"`
}

func (cardArgs) Kind() string { return "card" }

// demoReceivers are a mail server and a webhook receiver, with the notifier that delivers to them.
type demoReceivers struct {
	mailbox  *inbox.Mailbox
	hook     *inbox.Hook
	notifier *notify.Service
	ended    chan error
	mails    int // printed so far
	calls    int
}

// campaign runs the third part.
func (d *demo) campaign(ctx context.Context) error {
	d.out.title("A group: a campaign of fifty cards, three of which cannot be printed")
	r, err := d.openReceivers(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	group, err := d.enqueueCards(ctx)
	if err != nil {
		return err
	}
	if err := d.awaitOutcome(ctx, group, holdfast.GroupPartial, r); err != nil {
		return err
	}
	d.out.action("the missing ink is delivered; the failed members are retried with one command")
	d.gateway.deliverInk()
	sent, err := d.ops.RetryGroup(ctx, holdfast.Intervention{Group: group, Actor: "you", Reason: "the ink is in stock"})
	if err != nil {
		return err
	}
	d.out.say("%d cards are queued again; the campaign is processing", sent)
	return d.awaitOutcome(ctx, group, holdfast.GroupReady, r)
}

// openReceivers starts a mail server, a webhook receiver and the notifier, and subscribes both receivers to the outcomes of groups.
func (d *demo) openReceivers(ctx context.Context) (r *demoReceivers, err error) {
	secret := newDemoSecret()
	r = &demoReceivers{ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.mailbox, err = inbox.OpenMailbox(); err != nil {
		return r, err
	}
	if r.hook, err = inbox.OpenHook(secret); err != nil {
		return r, err
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	mails, err := mail.New(mail.Config{Host: r.mailbox.Host, Port: r.mailbox.Port, From: "holdfast@example.org", TLS: mail.NoTLS})
	if err != nil {
		return r, err
	}
	hooks, err := webhook.New(webhook.Config{Allow: loopback, AllowHTTP: true})
	if err != nil {
		return r, err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	r.notifier, err = notify.New(d.store, notify.Config{
		Sinks:  map[string]notify.Sink{"mail": mails, "webhook": hooks},
		Secret: func(string) (string, error) { return secret, nil },
		Engine: engine.Config{Name: "notifier", Lease: demoLease},
		Log:    quiet,
	})
	if err != nil {
		return r, err
	}
	notifying := context.WithoutCancel(ctx) // close stops the notifier gracefully
	go func() { r.ended <- r.notifier.Run(notifying) }()
	outcomes := []string{"group.ready", "group.partial", "group.failed"}
	for _, s := range []subscription.Subscription{
		{Name: "team mail", Sink: "mail", Target: "team@example.org", Events: outcomes},
		{Name: "shop webhook", Sink: "webhook", Target: r.hook.URL, Events: outcomes, Secrets: []string{demoSecret}},
	} {
		if _, err := d.ops.Subscribe(ctx, s, ops.By{Actor: "you"}); err != nil {
			return r, err
		}
	}
	d.out.say("mail     %s:%d, a mail server on loopback", r.mailbox.Host, r.mailbox.Port)
	d.out.say("webhook  %s, which verifies every signature", r.hook.URL)
	return r, nil
}

func newDemoSecret() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

func (r *demoReceivers) close() {
	if r.notifier != nil {
		stopping, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.notifier.Stop(stopping)
	}
	if r.hook != nil {
		_ = r.hook.Close()
	}
	if r.mailbox != nil {
		_ = r.mailbox.Close()
	}
}

// enqueueCards creates the group, adds its members and seals it.
func (d *demo) enqueueCards(ctx context.Context) (holdfast.ID, error) {
	group, err := d.store.Gather(ctx, holdfast.Group{Name: "spring campaign"})
	if err != nil {
		return holdfast.ID{}, err
	}
	drafts := make([]holdfast.Draft, cards)
	for i := range drafts {
		args := cardArgs{Number: i + 1, Ink: "black"}
		if i%20 == 7 {
			args.Ink = missingInk
		}
		if drafts[i], err = holdfast.NewDraft(args); err != nil {
			return holdfast.ID{}, err
		}
		drafts[i].Group = group.ID
	}
	if _, err := d.store.Enqueue(ctx, drafts); err != nil {
		return holdfast.ID{}, err
	}
	return group.ID, d.store.Seal(ctx, group.ID)
}

// awaitOutcome prints the progress of the group until it is settled as wanted, and the mail and the webhook that report it have arrived.
func (d *demo) awaitOutcome(ctx context.Context, group holdfast.ID, want holdfast.GroupState, r *demoReceivers) error {
	last := ""
	return d.waitUntil(ctx, fmt.Sprintf("the campaign is %s and both receivers are notified", want), func() (bool, error) {
		g, err := d.store.Group(ctx, group)
		if err != nil {
			return false, err
		}
		if now := fmt.Sprint(g.State, g.Members); now != last && (g.State.Settled() || time.Since(d.out.drawn) > time.Second) {
			last, d.out.drawn = now, time.Now()
			d.out.members(g.Name, g.State, g.Members)
		}
		if g.State.Settled() && g.State != want {
			return false, fmt.Errorf("the campaign is %s, expected %s", g.State, want)
		}
		return g.State == want && r.printArrived(d.out), nil // in this order: arrived messages are printed once
	})
}

// printArrived prints new messages. It reports whether both a mail and a webhook have arrived since the last outcome.
func (r *demoReceivers) printArrived(p *demoPrinter) bool {
	mails, calls := r.mailbox.Letters(), r.hook.Calls()
	if len(mails) <= r.mails || len(calls) <= r.calls {
		return false
	}
	for _, mail := range mails[r.mails:] {
		p.say("%s  %s to %s: %s", p.paint(dim, p.clock(mail.At)), p.paint(green, "✉ mail"), strings.Join(mail.To, ", "), p.paint(bold, mail.Subject))
	}
	for _, call := range calls[r.calls:] {
		p.say("%s  %s %s, signature verified, webhook-id %s", p.paint(dim, p.clock(call.At)), p.paint(green, "⇢ webhook"), p.paint(bold, call.Type), call.ID)
	}
	r.mails, r.calls = len(mails), len(calls)
	return true
}

// members prints the progress of a group.
func (p *demoPrinter) members(name string, state holdfast.GroupState, m holdfast.Members) {
	const width = 30
	complete, failed := width*m.Complete/max(m.Total, 1), (width*m.Failed+m.Total-1)/max(m.Total, 1)
	colour := dim
	switch state {
	case holdfast.GroupReady:
		colour = green
	case holdfast.GroupPartial, holdfast.GroupFailed:
		colour = red
	}
	p.say("%s  %s %s [%s%s%s] %d of %d complete, %d failed", p.paint(dim, p.clock(time.Now())), name, p.paint(colour, fmt.Sprintf("%-10s", strings.ToUpper(string(state)))),
		p.paint(green, strings.Repeat("█", complete)), p.paint(red, strings.Repeat("▒", failed)), strings.Repeat("·", max(0, width-complete-failed)), m.Complete, m.Total, m.Failed)
}
