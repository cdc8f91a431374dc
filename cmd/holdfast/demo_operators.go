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
	"github.com/holdfastdev/holdfast/store"
)

// The operators of the demo.
const ada, grace = "ada", "grace"

// configure sets up the demo before any job runs: a paused queue, schedules, subscriptions, and the shares of owners.
func (d *demo) configure(ctx context.Context) error {
	operator := d.process.operator
	errs := []error{
		operator.Pause(ctx, store.Hold{Queue: "imports", Actor: grace, Reason: "supplier 4 sends every article twice; resume when it is fixed"}),
		operator.SetShare(ctx, ops.Share{Owner: "acme", Weight: 2}, ops.Actor{Name: ada, Reason: "acme pays for twice as much"}),
	}
	for _, s := range d.schedules() {
		_, err := operator.SetSchedule(ctx, s, ops.Actor{Name: ada, Reason: "agreed with the team"})
		errs = append(errs, err)
	}
	errs = append(errs, operator.PauseSchedule(ctx, "weekly-deadLetters", 0, ops.Actor{Name: grace, Reason: "not before the new template is ready"}))
	unsigned := map[string]string{webhook.Unsigned: "true"}
	for _, sub := range []subscription.Subscription{
		{Name: "shop webhook", Sink: "webhook", Target: d.gateway.url + "/hooks/shop", Events: []string{"group.*", "redrive.*"}, Options: unsigned},
		{Name: "team pager", Sink: "webhook", Target: d.gateway.pager + "/hooks/pager", Events: []string{"breaker.*", "job.failed"}, Options: unsigned},
	} {
		_, err := operator.Subscribe(ctx, sub, ops.Actor{Name: ada})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (d *demo) schedules() []schedule.Schedule {
	check, _ := d.call("/fine", "acme", "shop") // the same call is enqueued elsewhere: it is valid
	return []schedule.Schedule{
		{Name: "check-the-shop", Every: 20 * time.Second, Draft: check},
		{Name: "nightly-report", Cron: "30 2 * * *", Zone: "Europe/Berlin", Draft: holdfast.Draft{Kind: "report", Queue: "reports", Owner: "acme", Args: []byte(`{"pages": 30}`)}},
		{Name: "weekly-deadLetters", Cron: "0 9 * * MON", Zone: "America/New_York", Draft: holdfast.Draft{Kind: "card", Queue: "campaigns", Owner: "globex", Args: []byte(`{"number": 1, "ink": "black"}`)}},
	}
}

// operate performs the actions of operators, each when its condition is met.
func (d *demo) operate(ctx context.Context) error {
	return errors.Join(d.cancelSome(ctx), d.installCodec(ctx), d.triageErrors(ctx), d.retryOne(ctx))
}

// cancelSome enqueues reports and cancels them.
func (d *demo) cancelSome(ctx context.Context) error {
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
		if _, err := d.process.operator.Cancel(ctx, store.Intervention{Job: receipts[0].ID, Actor: ada, Reason: reason}); err != nil {
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
func (d *demo) installCodec(ctx context.Context) error {
	filter := store.Filter{Kind: photoArgs{}.Kind(), Code: "CODEC_MISSING"}
	_, err := poll(ctx, func() ([]ops.DeadLetter, error) {
		deadLetters, _, err := d.process.operator.DeadLetters(ctx, filter)
		return deadLetters, err
	}, 7)
	if err != nil {
		return err
	}
	d.codec.Store(true)
	_, err = d.process.operator.StartRedrive(ctx, redrive.Spec{Filter: filter, Canary: 2, PerSecond: 3, StopAbove: 0.2, Actor: ada, Reason: "the codec is installed"})
	return err
}

// triageErrors acknowledges, ignores and resolves error groups. One that is resolved occurs again, so that it is shown as regressed.
func (d *demo) triageErrors(ctx context.Context) error {
	for _, one := range []struct {
		code   string
		triage store.Triage
	}{
		{"PHOTO_UNREADABLE", store.Triage{Status: store.StatusAcknowledged, Actor: grace, Reason: "one customer uploads photos for print; support contacts them"}},
		{"NOT_FOUND", store.Triage{Status: store.StatusIgnored, For: time.Hour, Actor: ada, Reason: "old links of initech; they are removed this week"}},
		{"CODEC_MISSING", store.Triage{Status: store.StatusResolved, Actor: ada, Reason: "the codec is installed on both workers"}},
		{"SYSTEM_PANIC", store.Triage{Status: store.StatusResolved, Actor: grace, Reason: "photos without a number of columns are now refused"}},
	} {
		groups, err := poll(ctx, func() ([]store.ErrorGroup, error) {
			groups, _, err := d.process.operator.ErrorGroups(ctx, store.ErrorFilter{Code: one.code})
			return groups, err
		}, 1)
		if err != nil {
			return err
		}
		for _, group := range groups {
			one.triage.Fingerprint = group.Fingerprint
			if err := d.process.operator.Triage(ctx, one.triage); err != nil {
				return err
			}
		}
	}
	return nil
}

// retryOne retries a dead letter that fails again.
func (d *demo) retryOne(ctx context.Context) error {
	deadLetters, err := poll(ctx, func() ([]ops.DeadLetter, error) {
		deadLetters, _, err := d.process.operator.DeadLetters(ctx, store.Filter{Code: "NOT_FOUND", Limit: 1})
		return deadLetters, err
	}, 1)
	if err != nil {
		return err
	}
	_, err = d.process.operator.Retry(ctx, store.Intervention{Job: deadLetters[0].Job.ID, Actor: grace, Reason: "the page should exist again"})
	return err
}
