package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		return failure.NeverRetry(failure.WithCode(errors.New("the delivery carries no events: it was not made by a notifier"), "HANDLER_REFUSED"))
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
