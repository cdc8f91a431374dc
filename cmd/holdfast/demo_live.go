package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/kind/httpjob"
)

// A town is what lives in the served demo: those who want things done, those who do them, and those who look after it. All of it goes the ways that
// everybody's jobs go: nothing in it is made up.
type town struct {
	site    *site
	gateway *moody
	jobs    holdfast.Enqueuer
	codec   atomic.Bool // the codec for newFormat is installed
	work    sync.WaitGroup
	number  atomic.Int64 // of photos, invoices and campaigns
}

// settle sets the town up and lets it live until ctx ends.
func (t *town) settle(ctx context.Context) error {
	crew, err := t.hireCrew()
	if err != nil {
		return err
	}
	if err := errors.Join(t.arrange(ctx), t.morning(ctx)); err != nil {
		return err
	}
	for _, worker := range crew {
		t.work.Go(func() { t.complain("a worker", worker.Run(ctx)) })
	}
	t.work.Go(func() { t.traffic(ctx) })
	t.work.Go(func() { t.complain("the operators", t.operate(ctx)) })
	return nil
}

// complain says what went wrong, unless it was only the end.
func (t *town) complain(who string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		t.site.log.Warn("something in the demo did not work", "event", "demo", "who", who, "error", err.Error())
	}
}

// townCalls are what jobs of kind http call: where, on whose account, and what a breaker knows it as.
var townCalls = []struct{ path, owner, dependency string }{
	{"/fine", "acme", "shop"}, {"/fine", "initech", "shop"}, {"/fine", "acme", "mailer"}, {"/flaky", "acme", "mailer"}, {"/flaky", "initech", "mailer"},
	{"/tides", "acme", "billing"}, {"/tides", "globex", "billing"}, {"/missing", "initech", "shop"}, {"/busy", "acme", "search"}, {"/fine", "globex", "search"},
}

// callOf is a job that calls the gateway.
func (t *town) callOf(path, owner, dependency string) (holdfast.Draft, error) {
	d, err := holdfast.NewDraft(httpjob.Request{Method: http.MethodPost, URL: t.gateway.services[dependency] + path, Body: "please"})
	d.Owner, d.Tags = owner, []string{"region:eu"}
	return d, err
}

// payment is tried once: somebody looks before it is tried again.
func (t *town) payment() (holdfast.Draft, error) {
	d, err := t.callOf("/tides", "globex", "billing")
	d.Priority, d.MaxAttempts, d.Tags = -5, 1, append(d.Tags, "payment")
	return d, err
}

func (t *town) someCall() (holdfast.Draft, error) {
	what := townCalls[rand.IntN(len(townCalls))]
	return t.callOf(what.path, what.owner, what.dependency)
}

// otherCall calls anybody but billing.
func (t *town) otherCall() (holdfast.Draft, error) {
	for {
		if what := townCalls[rand.IntN(len(townCalls))]; what.dependency != "billing" {
			return t.callOf(what.path, what.owner, what.dependency)
		}
	}
}

// somePhoto is mostly one that can be read.
func (t *town) somePhoto() (holdfast.Draft, error) {
	format, columns := plainFormat, []int{160, 320, 640}[rand.IntN(3)]
	switch rand.IntN(12) {
	case 0:
		format = oddFormat
	case 1:
		columns = 0
	}
	return t.photoOf(format, columns)
}

func (t *town) photoOf(format string, columns int) (holdfast.Draft, error) {
	d, err := holdfast.NewDraft(photoArgs{Photo: fmt.Sprintf("IMG_%04d", t.number.Add(1)), Format: format, Columns: columns})
	d.Queue, d.Owner, d.Tags = "images", []string{"acme", "globex", "initech"}[rand.IntN(3)], []string{"upload", "format:" + format}
	return d, err
}

func (t *town) someInvoice() (holdfast.Draft, error) {
	n := t.number.Add(1)
	d, err := holdfast.NewDraft(invoiceArgs{Invoice: int(n), Customer: fmt.Sprintf("customer %d", n%40), Cents: 100 + rand.Int64N(50_000)})
	d.Queue, d.Owner, d.Tags, d.MaxAttempts = "invoices", "globex", []string{"month-end"}, 2
	return d, err
}

func (t *town) someImport() (holdfast.Draft, error) {
	d, err := holdfast.NewDraft(importArgs{Feed: fmt.Sprintf("supplier %d", 1+rand.IntN(9))})
	d.Queue, d.Owner, d.ExpireIn = "imports", "initech", 20*time.Minute
	return d, err
}

func (t *town) someReport(pages int) (holdfast.Draft, error) {
	d, err := holdfast.NewDraft(reportArgs{Pages: pages})
	d.Queue, d.Owner, d.Tags = "reports", "acme", []string{"slow"}
	return d, err
}

// send enqueues drafts, each made by its maker.
func (t *town) send(ctx context.Context, makers ...func() (holdfast.Draft, error)) error {
	drafts := make([]holdfast.Draft, 0, len(makers))
	for _, maker := range makers {
		d, err := maker()
		if err != nil {
			return err
		}
		drafts = append(drafts, d)
	}
	_, err := t.jobs.Enqueue(ctx, drafts)
	return err
}

// times repeats a maker.
func times(n int, maker func() (holdfast.Draft, error)) []func() (holdfast.Draft, error) {
	all := make([]func() (holdfast.Draft, error), n)
	for i := range all {
		all[i] = maker
	}
	return all
}

// later makes the same, for some seconds from now.
func later(maker func() (holdfast.Draft, error)) func() (holdfast.Draft, error) {
	return func() (holdfast.Draft, error) {
		d, err := maker()
		d.Delay = 5 * time.Second
		return d, err
	}
}

// morning is what waits when the town wakes up: enough for billing's breaker to open within seconds. The payments come before most other jobs that need
// billing: once its breaker is open they are held, and none would become a dead letter.
func (t *town) morning(ctx context.Context) error {
	makers := times(30, t.otherCall)
	makers = append(makers, times(12, later(func() (holdfast.Draft, error) { return t.callOf("/tides", "acme", "billing") }))...)
	makers = append(makers, times(5, t.payment)...)
	makers = append(makers, times(8, later(t.someInvoice))...)
	makers = append(makers, times(12, t.somePhoto)...)
	makers = append(makers, times(7, func() (holdfast.Draft, error) { return t.photoOf(newFormat, 320) })...)
	makers = append(makers, times(2, func() (holdfast.Draft, error) { return t.photoOf(oddFormat, 320) })...)
	makers = append(makers, times(2, func() (holdfast.Draft, error) { return t.photoOf(plainFormat, 0) })...)
	makers = append(makers, times(9, t.someImport)...)
	makers = append(makers, func() (holdfast.Draft, error) { return t.someReport(150) }, func() (holdfast.Draft, error) {
		d, err := t.someReport(20)
		d.Delay = 10 * time.Minute
		return d, err
	})
	if err := t.send(ctx, makers...); err != nil {
		return err
	}
	return errors.Join(
		t.campaign(ctx, campaign{name: "Spring postcards", owner: "acme", cards: 24, golden: 3}),
		t.campaign(ctx, campaign{name: "Letters to members", owner: "globex", cards: 12}),
		t.campaign(ctx, campaign{name: "Summer catalogue", owner: "acme", cards: 40, each: 4 * time.Second}),
	)
}

// traffic keeps things moving. What cannot be enqueued now is left out: it is only a demo.
func (t *town) traffic(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 1; ; second++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		makers := times(1+rand.IntN(2), t.someCall)
		if second%2 == 0 {
			makers = append(makers, t.somePhoto)
		}
		if second%4 == 0 {
			makers = append(makers, t.someInvoice)
		}
		if second%60 == 0 {
			makers = append(makers, t.someImport)
		}
		if second%120 == 0 {
			makers = append(makers, func() (holdfast.Draft, error) { return t.someReport(45) })
		}
		err := t.send(ctx, makers...)
		if second%90 == 0 {
			n := t.number.Add(1)
			err = errors.Join(err, t.campaign(ctx, campaign{name: fmt.Sprintf("Postcards %d", n), owner: "globex", cards: 15, golden: second / 90 % 2, each: time.Second}))
		}
		t.complain("traffic", err)
	}
}

// A campaign is a group of cards, and a report about them at the end.
type campaign struct {
	name, owner   string
	cards, golden int           // so many cards need the ink that is missing
	each          time.Duration // between one card and the next
}

func (t *town) campaign(ctx context.Context, c campaign) error {
	group, err := t.jobs.Gather(ctx, holdfast.Group{Name: c.name, Owner: c.owner})
	if err != nil {
		return err
	}
	drafts := make([]holdfast.Draft, 0, c.cards+1)
	var all []holdfast.ID
	for i := range c.cards {
		args := cardArgs{Number: i + 1, Ink: "black"}
		if i < c.golden*5 && i%5 == 2 {
			args.Ink = missingInk
		}
		d, err := holdfast.NewDraft(args)
		if err != nil {
			return err
		}
		d.ID, d.Group, d.Queue, d.Owner, d.Delay = holdfast.NewID(), group.ID, "campaigns", c.owner, time.Duration(i)*c.each
		drafts, all = append(drafts, d), append(all, d.ID)
	}
	report, err := holdfast.NewDraft(reportArgs{Pages: 2})
	if err != nil {
		return err
	}
	report.Group, report.After, report.AfterAll, report.Queue, report.Owner = group.ID, all, true, "reports", c.owner
	if _, err := t.jobs.Enqueue(ctx, append(drafts, report)); err != nil {
		return err
	}
	return t.jobs.Seal(ctx, group.ID)
}
