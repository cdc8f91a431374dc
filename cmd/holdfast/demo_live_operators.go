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

// The people who look after the town.
const ada, grace = "ada", "grace"

// arrange does what was done before anything ran: a queue is paused, schedules are set, receivers have subscribed, owners have their shares.
func (t *town) arrange(ctx context.Context) error {
	desk := t.site.desk
	errs := []error{
		desk.Pause(ctx, holdfast.Hold{Queue: "imports", Actor: grace, Reason: "supplier 4 sends every article twice; resume when it is repaired"}),
		desk.SetShare(ctx, ops.Share{Owner: "acme", Weight: 2}, ops.By{Actor: ada, Reason: "acme pays for twice as much"}),
	}
	for _, plan := range t.plans() {
		_, err := desk.SetSchedule(ctx, plan, ops.By{Actor: ada, Reason: "agreed with the team"})
		errs = append(errs, err)
	}
	errs = append(errs, desk.PauseSchedule(ctx, "weekly-letters", 0, ops.By{Actor: grace, Reason: "not before the new template is there"}))
	unsigned := map[string]string{webhook.Unsigned: "true"}
	for _, sub := range []subscription.Subscription{
		{Name: "tell the shop", Sink: "webhook", Target: t.gateway.url + "/hooks/shop", Events: []string{"group.*", "redrive.*"}, Options: unsigned},
		{Name: "page the team", Sink: "webhook", Target: t.gateway.pager + "/hooks/pager", Events: []string{"breaker.*", "job.failed"}, Options: unsigned},
	} {
		_, err := desk.Subscribe(ctx, sub, ops.By{Actor: ada})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (t *town) plans() []schedule.Schedule {
	check, _ := t.callOf("/fine", "acme", "shop") // it was made before: it is in order
	return []schedule.Schedule{
		{Name: "check-the-shop", Every: 20 * time.Second, Draft: check},
		{Name: "nightly-report", Cron: "30 2 * * *", Zone: "Europe/Berlin", Draft: holdfast.Draft{Kind: "report", Queue: "reports", Owner: "acme", Args: []byte(`{"pages": 30}`)}},
		{Name: "weekly-letters", Cron: "0 9 * * MON", Zone: "America/New_York", Draft: holdfast.Draft{Kind: "card", Queue: "campaigns", Owner: "globex", Args: []byte(`{"number": 1, "ink": "black"}`)}},
	}
}

// operate does what people do on such a day, each once there is reason to.
func (t *town) operate(ctx context.Context) error {
	return errors.Join(t.cancelSome(ctx), t.installCodec(ctx), t.lookAfterErrors(ctx), t.retryOne(ctx))
}

// cancelSome changes somebody's mind.
func (t *town) cancelSome(ctx context.Context) error {
	for _, reason := range []string{"ordered twice", "the customer called it off", "replaced by another report"} {
		d, err := t.someReport(30)
		if err != nil {
			return err
		}
		d.Delay = time.Hour
		receipts, err := t.jobs.Enqueue(ctx, []holdfast.Draft{d})
		if err != nil {
			return err
		}
		if _, err := t.site.desk.Cancel(ctx, holdfast.Intervention{Job: receipts[0].ID, Actor: ada, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// eventually asks once a second until there is something.
func eventually[T any](ctx context.Context, ask func() ([]T, error), enough int) ([]T, error) {
	for {
		if found, err := ask(); err != nil || len(found) >= enough {
			return found, err
		}
		if err := pass(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// installCodec repairs what some photos need, and redrives them: two first, then the rest.
func (t *town) installCodec(ctx context.Context) error {
	which := holdfast.Filter{Kind: photoArgs{}.Kind(), Code: "CODEC_MISSING"}
	_, err := eventually(ctx, func() ([]ops.DeadLetter, error) {
		letters, _, err := t.site.desk.DeadLetters(ctx, which)
		return letters, err
	}, 7)
	if err != nil {
		return err
	}
	t.codec.Store(true)
	_, err = t.site.desk.StartRedrive(ctx, redrive.Order{Filter: which, Canary: 2, PerSecond: 3, StopAbove: 0.2, Actor: ada, Reason: "the codec is installed"})
	return err
}

// lookAfterErrors has people say what they know about error groups. One of them is wrong about it, and the error comes back.
func (t *town) lookAfterErrors(ctx context.Context) error {
	for _, word := range []struct {
		code   string
		triage holdfast.Triage
	}{
		{"PHOTO_UNREADABLE", holdfast.Triage{Status: holdfast.Acknowledged, Actor: grace, Reason: "one customer uploads photos made for print; support writes to them"}},
		{"NOT_FOUND", holdfast.Triage{Status: holdfast.Ignored, For: time.Hour, Actor: ada, Reason: "old links of initech; they are taken out this week"}},
		{"CODEC_MISSING", holdfast.Triage{Status: holdfast.Resolved, Actor: ada, Reason: "the codec is installed on both workers"}},
		{"SYSTEM_PANIC", holdfast.Triage{Status: holdfast.Resolved, Actor: grace, Reason: "photos without a number of columns are refused now"}},
	} {
		groups, err := eventually(ctx, func() ([]holdfast.ErrorGroup, error) {
			groups, _, err := t.site.desk.ErrorGroups(ctx, holdfast.ErrorFilter{Code: word.code})
			return groups, err
		}, 1)
		if err != nil {
			return err
		}
		for _, group := range groups {
			word.triage.Fingerprint = group.Fingerprint
			if err := t.site.desk.Triage(ctx, word.triage); err != nil {
				return err
			}
		}
	}
	return nil
}

// retryOne has somebody hope, in vain.
func (t *town) retryOne(ctx context.Context) error {
	letters, err := eventually(ctx, func() ([]ops.DeadLetter, error) {
		letters, _, err := t.site.desk.DeadLetters(ctx, holdfast.Filter{Code: "NOT_FOUND", Limit: 1})
		return letters, err
	}, 1)
	if err != nil {
		return err
	}
	_, err = t.site.desk.Retry(ctx, holdfast.Intervention{Job: letters[0].Job.ID, Actor: grace, Reason: "they say the page is back"})
	return err
}
