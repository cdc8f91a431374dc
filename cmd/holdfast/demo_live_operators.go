package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// The operators of the demo.
const ada, grace = "ada", "grace"

// configure sets up the demo before any job runs: a paused queue, schedules, subscriptions, and the shares of owners.
func (d *liveDemo) configure(ctx context.Context) error {
	desk := d.process.desk
	errs := []error{
		desk.Pause(ctx, holdfast.Hold{Queue: "imports", Actor: grace, Reason: "supplier 4 sends every article twice; resume when it is fixed"}),
		desk.SetShare(ctx, ops.Share{Owner: "acme", Weight: 2}, ops.By{Actor: ada, Reason: "acme pays for twice as much"}),
	}
	for _, s := range d.schedules() {
		_, err := desk.SetSchedule(ctx, s, ops.By{Actor: ada, Reason: "agreed with the team"})
		errs = append(errs, err)
	}
	errs = append(errs, desk.PauseSchedule(ctx, "weekly-deadLetters", 0, ops.By{Actor: grace, Reason: "not before the new template is ready"}))
	unsigned := map[string]string{webhook.Unsigned: "true"}
	for _, sub := range []subscription.Subscription{
		{Name: "shop webhook", Sink: "webhook", Target: d.gateway.url + "/hooks/shop", Events: []string{"group.*", "redrive.*"}, Options: unsigned},
		{Name: "team pager", Sink: "webhook", Target: d.gateway.pager + "/hooks/pager", Events: []string{"breaker.*", "job.failed"}, Options: unsigned},
	} {
		_, err := desk.Subscribe(ctx, sub, ops.By{Actor: ada})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *liveDemo) schedules() []schedule.Schedule {
	check, _ := d.call("/fine", "acme", "shop") // the same call is enqueued elsewhere: it is valid
	return []schedule.Schedule{
		{Name: "check-the-shop", Every: 20 * time.Second, Draft: check},
		{Name: "nightly-report", Cron: "30 2 * * *", Zone: "Europe/Berlin", Draft: holdfast.Draft{Kind: "report", Queue: "reports", Owner: "acme", Args: []byte(`{"pages": 30}`)}},
		{Name: "weekly-deadLetters", Cron: "0 9 * * MON", Zone: "America/New_York", Draft: holdfast.Draft{Kind: "card", Queue: "campaigns", Owner: "globex", Args: []byte(`{"number": 1, "ink": "black"}`)}},
	}
}

// operate performs the actions of operators, each when its condition is met.
func (d *liveDemo) operate(ctx context.Context) error {
	return errors.Join(d.cancelSome(ctx), d.installCodec(ctx), d.triageErrors(ctx), d.retryOne(ctx))
}

// cancelSome enqueues reports and cancels them.
func (d *liveDemo) cancelSome(ctx context.Context) error {
	for _, reason := range []string{"ordered twice", "the customer cancelled the order", "replaced by another report"} {
		draft, err := d.report(30)
		if err != nil {
			return err
		}
		draft.Delay = time.Hour
		receipts, err := d.jobs.Enqueue(ctx, []holdfast.Draft{draft})
		if err != nil {
			return err
		}
		if _, err := d.process.desk.Cancel(ctx, holdfast.Intervention{Job: receipts[0].ID, Actor: ada, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// poll asks once a second until there are enough results.
func poll[T any](ctx context.Context, ask func() ([]T, error), enough int) ([]T, error) {
	for {
		if found, err := ask(); err != nil || len(found) >= enough {
			return found, err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// installCodec waits for dead letters that lack the codec, installs it, and redrives them: two first, then the rest.
func (d *liveDemo) installCodec(ctx context.Context) error {
	filter := holdfast.Filter{Kind: photoArgs{}.Kind(), Code: "CODEC_MISSING"}
	_, err := poll(ctx, func() ([]ops.DeadLetter, error) {
		deadLetters, _, err := d.process.desk.DeadLetters(ctx, filter)
		return deadLetters, err
	}, 7)
	if err != nil {
		return err
	}
	d.codec.Store(true)
	_, err = d.process.desk.StartRedrive(ctx, redrive.Order{Filter: filter, Canary: 2, PerSecond: 3, StopAbove: 0.2, Actor: ada, Reason: "the codec is installed"})
	return err
}

// triageErrors acknowledges, ignores and resolves error groups. One that is resolved occurs again, so that it is shown as regressed.
func (d *liveDemo) triageErrors(ctx context.Context) error {
	for _, one := range []struct {
		code   string
		triage holdfast.Triage
	}{
		{"PHOTO_UNREADABLE", holdfast.Triage{Status: holdfast.Acknowledged, Actor: grace, Reason: "one customer uploads photos for print; support contacts them"}},
		{"NOT_FOUND", holdfast.Triage{Status: holdfast.Ignored, For: time.Hour, Actor: ada, Reason: "old links of initech; they are removed this week"}},
		{"CODEC_MISSING", holdfast.Triage{Status: holdfast.Resolved, Actor: ada, Reason: "the codec is installed on both workers"}},
		{"SYSTEM_PANIC", holdfast.Triage{Status: holdfast.Resolved, Actor: grace, Reason: "photos without a number of columns are now refused"}},
	} {
		groups, err := poll(ctx, func() ([]holdfast.ErrorGroup, error) {
			groups, _, err := d.process.desk.ErrorGroups(ctx, holdfast.ErrorFilter{Code: one.code})
			return groups, err
		}, 1)
		if err != nil {
			return err
		}
		for _, group := range groups {
			one.triage.Fingerprint = group.Fingerprint
			if err := d.process.desk.Triage(ctx, one.triage); err != nil {
				return err
			}
		}
	}
	return nil
}

// retryOne retries a dead letter that fails again.
func (d *liveDemo) retryOne(ctx context.Context) error {
	deadLetters, err := poll(ctx, func() ([]ops.DeadLetter, error) {
		deadLetters, _, err := d.process.desk.DeadLetters(ctx, holdfast.Filter{Code: "NOT_FOUND", Limit: 1})
		return deadLetters, err
	}, 1)
	if err != nil {
		return err
	}
	_, err = d.process.desk.Retry(ctx, holdfast.Intervention{Job: deadLetters[0].Job.ID, Actor: grace, Reason: "the page should exist again"})
	return err
}
