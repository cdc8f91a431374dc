package mail_test

import (
	"context"
	"os"

	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/mail"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/store"
)

func Example() {
	var jobs store.Store
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	// README start
	hooks, err := webhook.New(webhook.Config{})
	must(err)
	post, err := mail.New(mail.Config{Host: "smtp.example.org", Username: "holdfast", Password: os.Getenv("SMTP_PASSWORD"), From: "jobs@example.org"})
	must(err)
	notifier, err := notify.New(jobs, notify.Config{Sinks: map[string]notify.Sink{"webhook": hooks, "mail": post}})
	must(err)
	must(notifier.Run(ctx)) // until ctx ends; package worker runs it beside an engine
	// README end
}
