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

// The third act: a campaign of fifty cards, three of which cannot be printed. Somebody must be told how it ended.

const (
	cards      = 50
	demoSecret = "demo" // the name of the webhook's secret; the secret itself is made anew each time
)

// cardArgs is one card of the campaign.
type cardArgs struct {
	Number int    `json:"number"`
	Ink    string `json:"ink"`
}

func (cardArgs) Kind() string { return "card" }

// An audience is who wants to know: a mailbox and a receiver of webhooks, and what sends to them.
type audience struct {
	mailbox  *inbox.Mailbox
	hook     *inbox.Hook
	notifier *notify.Service
	ended    chan error
	letters  int // shown so far
	calls    int
}

// campaign plays the third act.
func (d *demo) campaign(ctx context.Context) error {
	d.stage.title("A campaign: fifty cards, three of which nobody can print")
	a, err := d.openAudience(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	group, err := d.gatherCards(ctx)
	if err != nil {
		return err
	}
	if err := d.awaitOutcome(ctx, group, holdfast.GroupPartial, a); err != nil {
		return err
	}
	d.stage.aside("the missing ink is delivered; what failed is retried by hand, in one word")
	d.gateway.deliverInk()
	sent, err := d.ops.RetryGroup(ctx, holdfast.Intervention{Group: group, Actor: "you", Reason: "the ink is there"})
	if err != nil {
		return err
	}
	d.stage.say("%d cards go round again; the campaign is processing", sent)
	return d.awaitOutcome(ctx, group, holdfast.GroupReady, a)
}

// openAudience starts a mail server, a receiver and the notifier, and subscribes both to what becomes of groups.
func (d *demo) openAudience(ctx context.Context) (a *audience, err error) {
	secret := newDemoSecret()
	a = &audience{ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.mailbox, err = inbox.OpenMailbox(); err != nil {
		return a, err
	}
	if a.hook, err = inbox.OpenHook(secret); err != nil {
		return a, err
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	post, err := mail.New(mail.Config{Host: a.mailbox.Host, Port: a.mailbox.Port, From: "holdfast@example.org", TLS: mail.NoTLS})
	if err != nil {
		return a, err
	}
	hooks, err := webhook.New(webhook.Config{Allow: loopback, AllowHTTP: true})
	if err != nil {
		return a, err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	a.notifier, err = notify.New(d.store, notify.Config{
		Sinks:  map[string]notify.Sink{"mail": post, "webhook": hooks},
		Secret: func(string) (string, error) { return secret, nil },
		Engine: engine.Config{Name: "notifier", Lease: demoLease},
		Log:    quiet,
	})
	if err != nil {
		return a, err
	}
	notifying := context.WithoutCancel(ctx) // stopped in order, by close
	go func() { a.ended <- a.notifier.Run(notifying) }()
	outcomes := []string{"group.ready", "group.partial", "group.failed"}
	for _, s := range []subscription.Subscription{
		{Name: "tell the team", Sink: "mail", Target: "team@example.org", Events: outcomes},
		{Name: "tell the shop", Sink: "webhook", Target: a.hook.URL, Events: outcomes, Secrets: []string{demoSecret}},
	} {
		if _, err := d.ops.Subscribe(ctx, s, ops.By{Actor: "you"}); err != nil {
			return a, err
		}
	}
	d.stage.say("mail     %s:%d, a real mail server on loopback", a.mailbox.Host, a.mailbox.Port)
	d.stage.say("webhook  %s, which verifies every signature", a.hook.URL)
	return a, nil
}

func newDemoSecret() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

func (a *audience) close() {
	if a.notifier != nil {
		stopping, enough := context.WithTimeout(context.Background(), 10*time.Second)
		defer enough()
		_ = a.notifier.Stop(stopping)
	}
	if a.hook != nil {
		_ = a.hook.Close()
	}
	if a.mailbox != nil {
		_ = a.mailbox.Close()
	}
}

// gatherCards makes the group, adds its members and seals it.
func (d *demo) gatherCards(ctx context.Context) (holdfast.ID, error) {
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

// awaitOutcome shows how the members fare until the group is settled so, and the mail and the webhook that say it have arrived.
func (d *demo) awaitOutcome(ctx context.Context, group holdfast.ID, want holdfast.GroupState, a *audience) error {
	last := ""
	return d.patiently(ctx, fmt.Sprintf("the campaign is %s and everybody knows", want), func() (bool, error) {
		g, err := d.store.Group(ctx, group)
		if err != nil {
			return false, err
		}
		if now := fmt.Sprint(g.State, g.Members); now != last && (g.State.Settled() || time.Since(d.stage.drawn) > time.Second) {
			last, d.stage.drawn = now, time.Now()
			d.stage.members(g.Name, g.State, g.Members)
		}
		if g.State.Settled() && g.State != want {
			return false, fmt.Errorf("the campaign is %s, expected %s", g.State, want)
		}
		return g.State == want && a.heard(d.stage), nil // asked for in this order: what was heard is shown once
	})
}

// heard shows what has arrived, and reports whether there is a new mail and a new webhook since the last outcome.
func (a *audience) heard(s *stage) bool {
	letters, calls := a.mailbox.Letters(), a.hook.Calls()
	if len(letters) <= a.letters || len(calls) <= a.calls {
		return false
	}
	for _, letter := range letters[a.letters:] {
		s.say("%s  %s to %s: %s", s.paint(dim, s.clock(letter.At)), s.paint(green, "✉ mail"), strings.Join(letter.To, ", "), s.paint(bold, letter.Subject))
	}
	for _, call := range calls[a.calls:] {
		s.say("%s  %s %s, signature verified, webhook-id %s", s.paint(dim, s.clock(call.At)), s.paint(green, "⇢ webhook"), s.paint(bold, call.Type), call.ID)
	}
	a.letters, a.calls = len(letters), len(calls)
	return true
}

// members draws how far a group is.
func (s *stage) members(name string, state holdfast.GroupState, m holdfast.Members) {
	const width = 30
	complete, failed := width*m.Complete/max(m.Total, 1), (width*m.Failed+m.Total-1)/max(m.Total, 1)
	colour := dim
	switch state {
	case holdfast.GroupReady:
		colour = green
	case holdfast.GroupPartial, holdfast.GroupFailed:
		colour = red
	}
	s.say("%s  %s %s [%s%s%s] %d of %d complete, %d failed", s.paint(dim, s.clock(time.Now())), name, s.paint(colour, fmt.Sprintf("%-10s", strings.ToUpper(string(state)))),
		s.paint(green, strings.Repeat("█", complete)), s.paint(red, strings.Repeat("▒", failed)), strings.Repeat("·", max(0, width-complete-failed)), m.Complete, m.Total, m.Failed)
}
