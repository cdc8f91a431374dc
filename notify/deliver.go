package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// settleDelay is about the time between the return of a handler and the end of its job.
const settleDelay = 15 * time.Millisecond

// maxReceipt is the maximum size of a sink's answer that is stored as the result.
const maxReceipt = 16 << 10

// A deliveryArgs is the arguments of a delivery job. It contains the events themselves, so that the delivery can be sent again after retention has deleted them from
// the feed.
type deliveryArgs struct {
	Subscription holdfast.ID   `json:"subscription"`
	ID           string        `json:"id"`
	Events       []store.Event `json:"events"`
	More         int           `json:"more,omitempty"`
}

// deliver is the handler of all delivery jobs.
func (s *Service) deliver(ctx context.Context, job *engine.Raw) error {
	var l deliveryArgs
	if err := json.Unmarshal(job.Args, &l); err != nil || len(l.Events) == 0 {
		return refused("the delivery has no events: it was not made by a notifier")
	}
	if err := s.checkGenuine(ctx, job, &l); err != nil {
		return err
	}
	sub, err := s.activeSubscription(ctx, l.Subscription)
	if err != nil {
		return err
	}
	sink := s.cfg.Sinks[sub.Sink]
	if sink == nil {
		return leaveToOthers(job, failure.WithCode(fmt.Errorf("%w: subscription %s uses the sink %q, which this process does not have", ErrNotConfigured, sub.ID, sub.Sink), "UNKNOWN_KIND"))
	}
	secrets, err := s.secrets(sub)
	if err != nil {
		return leaveToOthers(job, err)
	}
	leave, err := s.slotLimits.enter(ctx, sub.ID)
	if err != nil {
		return err
	}
	defer leave()
	receipt, err := sink.Deliver(ctx, Delivery{
		Subscription: sub, Events: l.Events, More: l.More, ID: l.ID, Attempt: job.Attempt(), At: time.Now(), Source: s.cfg.Source, Secrets: secrets,
	})
	switch {
	case errors.Is(err, ErrGone):
		if failed := s.subscriptions.disable(ctx, sub.ID, err.Error()); failed != nil {
			return fmt.Errorf("the receiver is gone, but subscription %s could not be disabled: %w", sub.ID, failed)
		}
		return failure.NeverRetry(err)
	case errors.Is(err, ErrNotConfigured):
		return leaveToOthers(job, err)
	case err != nil:
		return err
	}
	job.Result(resultOf(receipt))
	if sink.Traits().Ordered { // the next delivery waits for the end of this one
		time.AfterFunc(settleDelay, s.relay.nudge)
	}
	return nil
}

// checkGenuine refuses a delivery that the notifier did not make: its job must belong to the subscription that it names, and its events must be those of the
// feed, as far as the feed still has them. This matters because deliveries are signed with the subscription's secret.
func (s *Service) checkGenuine(ctx context.Context, job *engine.Raw, l *deliveryArgs) error {
	if job.Owner != subscription.Owner(l.Subscription) || job.Queue != subscription.Queue {
		return refused("the delivery belongs to owner %q in queue %q and not to subscription %s: it was not made by a notifier", job.Owner, job.Queue, l.Subscription)
	}
	page, err := s.store.Feed(ctx, max(0, l.Events[0].Seq-1), pageSize)
	switch {
	case errors.Is(err, holdfast.ErrInvalid):
		return refused("the delivery contains event %d, but the feed ends before it: it was not made by a notifier", l.Events[0].Seq)
	case err != nil:
		return err
	}
	for i := range l.Events {
		told := &l.Events[i]
		if told.Seq > 0 && told.Seq <= page.Purged || told.Seq > page.Next && told.Seq <= page.Head { // deleted by retention, or on a later page
			continue
		}
		at := slices.IndexFunc(page.Events, func(e store.Event) bool { return e.Seq == told.Seq })
		if at < 0 || !sameEvent(page.Events[at], *told) {
			return refused("the delivery contains event %d, %s, which differs from the feed: it was not made by a notifier", told.Seq, subscription.Type(*told))
		}
	}
	return nil
}

// sameEvent reports whether two events are the same. Fields that are only known while the job is kept, such as its code, are not compared.
func sameEvent(a, b store.Event) bool {
	return a.Job == b.Job && a.Subject == b.Subject && a.Name == b.Name && a.Actor == b.Actor
}

func refused(format string, args ...any) error {
	return failure.NeverRetry(failure.WithCode(fmt.Errorf(format, args...), "HANDLER_REFUSED"))
}

// activeSubscription returns the subscription of a delivery. If it was deleted or disabled, the delivery fails for good and as benign: a person decided so.
func (s *Service) activeSubscription(ctx context.Context, id holdfast.ID) (subscription.Subscription, error) {
	sub, err := s.subscriptions.find(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		err = fmt.Errorf("subscription %s was deleted", id)
	case err != nil:
		return sub, err
	case sub.Disabled != "":
		err = fmt.Errorf("subscription %s is disabled: %s. Enable it, then resend this delivery", id, sub.Disabled)
	default:
		return sub, nil
	}
	return sub, failure.Benign(failure.NeverRetry(failure.WithCode(err, "HANDLER_REFUSED")))
}

const (
	firstLeave   = time.Second     // how long a delivery waits that this process is not configured for
	longestLeave = 5 * time.Minute // the wait grows up to this
)

// leaveToOthers releases a delivery that this process cannot make because of its own configuration: another process may be able to. That costs the delivery nothing.
// The wait is short at first, because the next claim may be that of such a process, and random, so that no process is always the first to claim. There is no such
// process if the delivery reaches the GiveUpAfter of its policy; it then fails with the code of the error.
func leaveToOthers(job *engine.Raw, err error) error {
	wait := failure.Exponential{Base: firstLeave, Factor: 2, Cap: longestLeave, Jitter: failure.Jitter{Percent: 50}}.Delay(job.Releases+1, rand.Float64())
	return failure.Throttled(failure.Blameless(err), wait)
}

// secrets returns the secrets of a subscription. A missing one is the configuration of this process: another process may have it.
func (s *Service) secrets(sub subscription.Subscription) ([]string, error) {
	var found []string
	for _, name := range sub.Secrets {
		secret, err := s.cfg.Secret(name)
		if err != nil {
			return nil, failure.WithCode(fmt.Errorf("%w: the secret %s of subscription %s: %w", ErrNotConfigured, name, sub.ID, err), "SECRET_MISSING")
		}
		found = append(found, secret)
	}
	return found, nil
}

// resultOf is a receipt as the result of a job. At this point the event is delivered, so a bad receipt must not fail the job.
func resultOf(receipt any) any {
	body, err := json.Marshal(receipt)
	if err != nil || len(body) > maxReceipt {
		return map[string]string{"note": "the sink's answer was not stored: it is too large, or not JSON"}
	}
	return json.RawMessage(body)
}

// clip cuts a text to a number of bytes, between two characters.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
