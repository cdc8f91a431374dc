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

// A demo runs inside a server that was started with --demo. It enqueues jobs, runs workers, and acts like operators. It uses the same interfaces as any
// application: nothing that it shows is simulated.
type demo struct {
	process *serverProcess
	gateway *demoGateway
	jobs    holdfast.Enqueuer
	codec   atomic.Bool // the codec for newFormat is installed
	work    sync.WaitGroup
	number  atomic.Int64 // last number of a photo, invoice or campaign
}

// start sets the demo up and runs it in the background until ctx ends.
func (d *demo) start(ctx context.Context) error {
	workers, err := d.newWorkers()
	if err != nil {
		return err
	}
	if err := errors.Join(d.configure(ctx), d.enqueueInitial(ctx)); err != nil {
		return err
	}
	for _, worker := range workers {
		d.work.Go(func() { d.logError("a worker", worker.Run(ctx)) })
	}
	d.work.Go(func() { d.traffic(ctx) })
	d.work.Go(func() { d.logError("the operators", d.operate(ctx)) })
	return nil
}

// logError logs an error, unless it is the end of the demo.
func (d *demo) logError(part string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		d.process.log.Warn("a part of the demo failed", "event", "demo", "part", part, "error", err.Error())
	}
}

// liveCalls are the calls that jobs of kind http make: path, owner and dependency.
var liveCalls = []struct{ path, owner, dependency string }{
	{"/fine", "acme", "shop"}, {"/fine", "initech", "shop"}, {"/fine", "acme", "mailer"}, {"/flaky", "acme", "mailer"}, {"/flaky", "initech", "mailer"},
	{"/outage", "acme", "billing"}, {"/outage", "globex", "billing"}, {"/missing", "initech", "shop"}, {"/busy", "acme", "search"}, {"/fine", "globex", "search"},
}

// call is a job that calls the gateway.
func (d *demo) call(path, owner, dependency string) (holdfast.Draft, error) {
	draft, err := holdfast.NewDraft(httpjob.Request{Method: http.MethodPost, URL: d.gateway.services[dependency] + path, Body: "please"})
	draft.Owner, draft.Tags = owner, []string{"region:eu"}
	return draft, err
}

// payment has one attempt: it is not retried automatically.
func (d *demo) payment() (holdfast.Draft, error) {
	draft, err := d.call("/outage", "globex", "billing")
	draft.Priority, draft.MaxAttempts, draft.Tags = -5, 1, append(draft.Tags, "payment")
	return draft, err
}

func (d *demo) randomCall() (holdfast.Draft, error) {
	call := liveCalls[rand.IntN(len(liveCalls))]
	return d.call(call.path, call.owner, call.dependency)
}

// nonBillingCall calls any service except billing.
func (d *demo) nonBillingCall() (holdfast.Draft, error) {
	for {
		if call := liveCalls[rand.IntN(len(liveCalls))]; call.dependency != "billing" {
			return d.call(call.path, call.owner, call.dependency)
		}
	}
}

// randomPhoto is readable in most cases.
func (d *demo) randomPhoto() (holdfast.Draft, error) {
	format, columns := plainFormat, []int{160, 320, 640}[rand.IntN(3)]
	switch rand.IntN(12) {
	case 0:
		format = oddFormat
	case 1:
		columns = 0
	}
	return d.photo(format, columns)
}

func (d *demo) photo(format string, columns int) (holdfast.Draft, error) {
	draft, err := holdfast.NewDraft(photoArgs{Photo: fmt.Sprintf("IMG_%04d", d.number.Add(1)), Format: format, Columns: columns})
	draft.Queue, draft.Owner, draft.Tags = "images", []string{"acme", "globex", "initech"}[rand.IntN(3)], []string{"upload", "format:" + format}
	return draft, err
}

func (d *demo) randomInvoice() (holdfast.Draft, error) {
	n := d.number.Add(1)
	draft, err := holdfast.NewDraft(invoiceArgs{Invoice: int(n), Customer: fmt.Sprintf("customer %d", n%40), Cents: 100 + rand.Int64N(50_000)})
	draft.Queue, draft.Owner, draft.Tags, draft.MaxAttempts = "invoices", "globex", []string{"month-end"}, 2
	return draft, err
}

func (d *demo) randomImport() (holdfast.Draft, error) {
	draft, err := holdfast.NewDraft(importArgs{Feed: fmt.Sprintf("supplier %d", 1+rand.IntN(9))})
	draft.Queue, draft.Owner, draft.ExpireIn = "imports", "initech", 20*time.Minute
	return draft, err
}

func (d *demo) report(pages int) (holdfast.Draft, error) {
	draft, err := holdfast.NewDraft(reportArgs{Pages: pages})
	draft.Queue, draft.Owner, draft.Tags = "reports", "acme", []string{"slow"}
	return draft, err
}

// enqueue enqueues the drafts that the makers return, in one call.
func (d *demo) enqueue(ctx context.Context, makers ...func() (holdfast.Draft, error)) error {
	drafts := make([]holdfast.Draft, 0, len(makers))
	for _, maker := range makers {
		draft, err := maker()
		if err != nil {
			return err
		}
		drafts = append(drafts, draft)
	}
	_, err := d.jobs.Enqueue(ctx, drafts)
	return err
}

// repeat returns n copies of a maker.
func repeat(n int, maker func() (holdfast.Draft, error)) []func() (holdfast.Draft, error) {
	all := make([]func() (holdfast.Draft, error), n)
	for i := range all {
		all[i] = maker
	}
	return all
}

// delayed adds a delay of five seconds to a maker's drafts.
func delayed(maker func() (holdfast.Draft, error)) func() (holdfast.Draft, error) {
	return func() (holdfast.Draft, error) {
		draft, err := maker()
		draft.Delay = 5 * time.Second
		return draft, err
	}
}

// enqueueInitial enqueues the jobs with which the demo starts: enough for billing's breaker to open within seconds. The payments come before most other jobs
// that call billing, because once its breaker is open they are held, and none would become a dead letter.
func (d *demo) enqueueInitial(ctx context.Context) error {
	makers := repeat(30, d.nonBillingCall)
	makers = append(makers, repeat(12, delayed(func() (holdfast.Draft, error) { return d.call("/outage", "acme", "billing") }))...)
	makers = append(makers, repeat(5, d.payment)...)
	makers = append(makers, repeat(8, delayed(d.randomInvoice))...)
	makers = append(makers, repeat(12, d.randomPhoto)...)
	makers = append(makers, repeat(7, func() (holdfast.Draft, error) { return d.photo(newFormat, 320) })...)
	makers = append(makers, repeat(2, func() (holdfast.Draft, error) { return d.photo(oddFormat, 320) })...)
	makers = append(makers, repeat(2, func() (holdfast.Draft, error) { return d.photo(plainFormat, 0) })...)
	makers = append(makers, repeat(9, d.randomImport)...)
	makers = append(makers, func() (holdfast.Draft, error) { return d.report(150) }, func() (holdfast.Draft, error) {
		draft, err := d.report(20)
		draft.Delay = 10 * time.Minute
		return draft, err
	})
	if err := d.enqueue(ctx, makers...); err != nil {
		return err
	}
	return errors.Join(
		d.campaign(ctx, campaign{name: "Spring postcards", owner: "acme", cards: 24, golden: 3}),
		d.campaign(ctx, campaign{name: "Letters to members", owner: "globex", cards: 12}),
		d.campaign(ctx, campaign{name: "Summer catalogue", owner: "acme", cards: 40, each: 4 * time.Second}),
		d.photoBook(ctx),
	)
}

// traffic enqueues jobs every second until ctx ends. It logs errors and continues.
func (d *demo) traffic(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 1; ; second++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		makers := repeat(1+rand.IntN(2), d.randomCall)
		if second%2 == 0 {
			makers = append(makers, d.randomPhoto)
		}
		if second%4 == 0 {
			makers = append(makers, d.randomInvoice)
		}
		if second%60 == 0 {
			makers = append(makers, d.randomImport)
		}
		if second%120 == 0 {
			makers = append(makers, func() (holdfast.Draft, error) { return d.report(45) })
		}
		err := d.enqueue(ctx, makers...)
		if second%90 == 0 {
			n := d.number.Add(1)
			err = errors.Join(err, d.campaign(ctx, campaign{name: fmt.Sprintf("Postcards %d", n), owner: "globex", cards: 15, golden: second / 90 % 2, each: time.Second}))
		}
		d.logError("traffic", err)
	}
}

// A campaign is a group of cards, with a report about them at the end.
type campaign struct {
	name, owner   string
	cards, golden int           // number of cards, and of those that need the missing ink
	each          time.Duration // delay between one card and the next
}

func (d *demo) campaign(ctx context.Context, c campaign) error {
	group, err := d.jobs.CreateGroup(ctx, holdfast.Group{Name: c.name, Owner: c.owner})
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
		card, err := holdfast.NewDraft(args)
		if err != nil {
			return err
		}
		card.ID, card.Group, card.Queue, card.Owner, card.Delay = holdfast.NewID(), group.ID, "campaigns", c.owner, time.Duration(i)*c.each
		drafts, all = append(drafts, card), append(all, card.ID)
	}
	report, err := holdfast.NewDraft(reportArgs{Pages: 2})
	if err != nil {
		return err
	}
	report.Group, report.After, report.AfterAll, report.Queue, report.Owner = group.ID, all, true, "reports", c.owner
	if _, err := d.jobs.Enqueue(ctx, append(drafts, report)); err != nil {
		return err
	}
	return d.jobs.SealGroup(ctx, group.ID)
}

// photoBook enqueues a group whose members wait for each other. The cover cannot be read, so it is made again; the other pages continue.
func (d *demo) photoBook(ctx context.Context) error {
	group, err := d.jobs.CreateGroup(ctx, holdfast.Group{Name: "Photo book for Ada", Owner: "acme"})
	if err != nil {
		return err
	}
	var drafts []holdfast.Draft
	add := func(step string, draft holdfast.Draft, failed error, when ...holdfast.Condition) holdfast.ID {
		draft.ID, draft.Group, draft.Step, draft.When, draft.Owner = holdfast.NewID(), group.ID, step, when, "acme"
		drafts, err = append(drafts, draft), errors.Join(err, failed)
		return draft.ID
	}
	unreadable, failed := d.photo(plainFormat, 0)
	add("cover", unreadable, failed)
	pages := []holdfast.Condition{{Step: "cover", On: holdfast.OnEnded}}
	for range 6 {
		photo, failed := d.photo(plainFormat, 640)
		pages = append(pages, holdfast.Condition{Job: add("", photo, failed)})
	}
	again, failed := d.photo(plainFormat, 320)
	add("cover-again", again, failed, holdfast.Condition{Step: "cover", On: holdfast.OnFailed})
	proof, failed := d.report(4)
	add("proof", proof, failed, append(pages, holdfast.Condition{Step: "cover-again", On: holdfast.OnEnded})...)
	book, failed := d.report(6)
	add("print", book, failed, holdfast.Condition{Step: "proof"})
	apology, failed := d.report(1)
	add("apology", apology, failed, holdfast.Condition{Step: "print", On: holdfast.OnFailed})
	if err != nil {
		return err
	}
	if _, err := d.jobs.Enqueue(ctx, drafts); err != nil {
		return err
	}
	return d.jobs.SealGroup(ctx, group.ID)
}
