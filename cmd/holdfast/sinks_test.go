package main

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/cmd/internal/inbox"
	"github.com/holdfastdev/holdfast/internal/config"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

func TestMailTLSDecidesHowMailIsSent(t *testing.T) {
	box, err := inbox.OpenMailbox() // it offers no TLS
	ok(t, err)
	defer box.Close()
	for mode, arrives := range map[string]bool{"": false, "starttls": false, "implicit": false, "opportunistic": true, "none": true} {
		environ := []string{"HOLDFAST_MAIL_HOST=" + net.JoinHostPort(box.Host, strconv.Itoa(box.Port)), "HOLDFAST_MAIL_FROM=holdfast@example.com"}
		if mode != "" {
			environ = append(environ, "HOLDFAST_MAIL_TLS="+mode)
		}
		set, err := config.Read(environ)
		ok(t, err)
		sinks, err := (&serverProcess{set: set}).sinks()
		ok(t, err)
		before := len(box.Letters())
		_, err = sinks["mail"].Deliver(t.Context(), notify.Delivery{
			Subscription: subscription.Subscription{ID: holdfast.NewID(), Name: "night watch", Sink: "mail", Target: "ada@example.com"},
			Events:       []store.Event{{Name: store.EventFailed, Job: holdfast.NewID(), Kind: "mail", At: time.Now()}}, ID: "subscription/one/17", Attempt: 1, At: time.Now(),
		})
		if arrived := len(box.Letters()) > before; arrived != arrives || (err == nil) != arrives {
			t.Errorf("mail-tls %q to a server without TLS: arrived %v, %v", mode, arrived, err)
		}
	}
	if _, err := config.Read([]string{"HOLDFAST_MAIL_TLS=perhaps"}); err == nil {
		t.Error("an unknown mode is accepted")
	}
}
