package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// settled is about how long after its handler returned a delivery has ended.
const settled = 15 * time.Millisecond

// maxReceipt caps what is kept of a sink's answer.
const maxReceipt = 16 << 10

// A letter is the arguments of a delivery. It carries the events themselves, so that it can be sent again when the feed has forgotten them.
type letter struct {
	Subscription holdfast.ID      `json:"subscription"`
	ID           string           `json:"id"`
	Events       []holdfast.Event `json:"events"`
	More         int              `json:"more,omitempty"`
}

// deliver is the handler of every kind of delivery.
func (s *Service) deliver(ctx context.Context, job *engine.Raw) error {
	var l letter
	if err := json.Unmarshal(job.Args, &l); err != nil || len(l.Events) == 0 {
		return refused("the delivery carries no events: it was not made by a notifier")
	}
	if err := s.genuine(ctx, job, &l); err != nil {
		return err
	}
	sub, err := s.receiver(ctx, l.Subscription)
	if err != nil {
		return err
	}
	sink := s.cfg.Sinks[sub.Sink]
	if sink == nil {
		return fmt.Errorf("subscription %s is told by %q by now, which this process does not know: give it that sink", sub.ID, sub.Sink)
	}
	leave, err := s.fences.enter(ctx, sub.ID)
	if err != nil {
		return err
	}
	defer leave()
	secrets, err := s.secrets(sub)
	if err != nil {
		return err
	}
	receipt, err := sink.Deliver(ctx, Delivery{
		Subscription: sub, Events: l.Events, More: l.More, ID: l.ID, Attempt: job.Number(), At: time.Now(), Source: s.cfg.Source, Secrets: secrets,
	})
	switch {
	case errors.Is(err, ErrGone):
		if failed := s.board.disable(ctx, sub.ID, err.Error()); failed != nil {
			return fmt.Errorf("the receiver is gone, and subscription %s could not be disabled: %w", sub.ID, failed)
		}
		return failure.NeverRetry(err)
	case err != nil:
		return err
	}
	job.Result(kept(receipt))
	if sink.Traits().Ordered { // the next one waits for the end of this
		time.AfterFunc(settled, s.relay.nudge)
	}
	return nil
}

// genuine refuses a delivery that the notifier did not make: its job must belong to the subscription that it names, and what it tells must be what the feed
// says, as far as the feed still remembers it. Whatever is delivered is signed with the subscription's secret.
func (s *Service) genuine(ctx context.Context, job *engine.Raw, l *letter) error {
	if job.Owner != subscription.Owner(l.Subscription) || job.Queue != subscription.Queue {
		return refused("the delivery belongs to owner %q in queue %q, and not to subscription %s: it was not made by a notifier", job.Owner, job.Queue, l.Subscription)
	}
	page, err := s.store.Feed(ctx, max(0, l.Events[0].Seq-1), pageSize)
	switch {
	case errors.Is(err, holdfast.ErrInvalid):
		return refused("the delivery tells of event %d, and the feed ends before it: it was not made by a notifier", l.Events[0].Seq)
	case err != nil:
		return err
	}
	for i := range l.Events {
		told := &l.Events[i]
		if told.Seq > 0 && told.Seq <= page.Purged || told.Seq > page.Next && told.Seq <= page.Head { // forgotten, or on a later page
			continue
		}
		at := slices.IndexFunc(page.Events, func(e holdfast.Event) bool { return e.Seq == told.Seq })
		if at < 0 || !sameEvent(page.Events[at], *told) {
			return refused("the delivery tells of event %d, %s, which is not what the feed says: it was not made by a notifier", told.Seq, subscription.Type(*told))
		}
	}
	return nil
}

// sameEvent reports whether two events are one. What is only known of a job for as long as it is kept, such as its code, does not count.
func sameEvent(a, b holdfast.Event) bool {
	return a.Job == b.Job && a.Subject == b.Subject && a.Name == b.Name && a.Actor == b.Actor
}

func refused(format string, args ...any) error {
	return failure.NeverRetry(failure.WithCode(fmt.Errorf(format, args...), "HANDLER_REFUSED"))
}

// receiver finds the subscription of a delivery. One that is gone or disabled ends the delivery: a person meant it.
func (s *Service) receiver(ctx context.Context, id holdfast.ID) (subscription.Subscription, error) {
	sub, err := s.board.find(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		err = fmt.Errorf("subscription %s is gone: nobody wants to be told any more", id)
	case err != nil:
		return sub, err
	case sub.Disabled != "":
		err = fmt.Errorf("subscription %s is disabled: %s. Enable it, then send this again", id, sub.Disabled)
	default:
		return sub, nil
	}
	return sub, failure.Benign(failure.NeverRetry(failure.WithCode(err, "HANDLER_REFUSED")))
}

// secrets finds those a subscription names. One that is missing may be given to the process later, so it is tried again.
func (s *Service) secrets(sub subscription.Subscription) ([]string, error) {
	var found []string
	for _, name := range sub.Secrets {
		secret, err := s.cfg.Secret(name)
		if err != nil {
			return nil, fmt.Errorf("the secret %s of subscription %s: %w", name, sub.ID, err)
		}
		found = append(found, secret)
	}
	return found, nil
}

// kept is what a receipt comes to as a result. The event is delivered by then, so nothing about a receipt may fail it.
func kept(receipt any) any {
	body, err := json.Marshal(receipt)
	if err != nil || len(body) > maxReceipt {
		return map[string]string{"note": "the sink's answer could not be kept: it is too large, or no JSON"}
	}
	return json.RawMessage(body)
}

// clip cuts a text to so many bytes, at the end of a letter.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
