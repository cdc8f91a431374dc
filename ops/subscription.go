package ops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// A SubscriptionStatus is a subscription, and how far behind the feed it is.
type SubscriptionStatus struct {
	subscription.Subscription
	// Lag is the number of events in the feed that it has not been checked against. Most of them may not match it.
	Lag int64 `json:"lag"`
}

// Subscriptions returns the subscriptions, the newest first. Records that cannot be decoded are left out and reported in
// the error.
func (s *Service) Subscriptions(ctx context.Context) ([]SubscriptionStatus, error) {
	records, err := s.store.Records(ctx, subscription.Namespace)
	if err != nil {
		return nil, err
	}
	head, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]SubscriptionStatus, 0, len(records))
	var problems []error
	for _, r := range records {
		sub, err := decodeSubscription(r)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, withLag(sub, head))
	}
	slices.SortFunc(list, func(a, b SubscriptionStatus) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), bytes.Compare(b.ID[:], a.ID[:]))
	})
	return list, errors.Join(problems...)
}

// Subscription returns one subscription.
func (s *Service) Subscription(ctx context.Context, id holdfast.ID) (SubscriptionStatus, error) {
	r, err := s.readRecord(ctx, subscription.Namespace, id.String())
	if err != nil {
		return SubscriptionStatus{}, err
	}
	sub, err := decodeSubscription(r)
	if err != nil {
		return SubscriptionStatus{}, err
	}
	head, err := s.head(ctx)
	return withLag(sub, head), err
}

func withLag(sub subscription.Subscription, head int64) SubscriptionStatus {
	if sub.Cursor < 0 {
		return SubscriptionStatus{Subscription: sub}
	}
	return SubscriptionStatus{Subscription: sub, Lag: max(0, head-sub.Cursor)}
}

// decodeSubscription reads a subscription's record.
func decodeSubscription(r store.Record) (sub subscription.Subscription, err error) {
	if r.Version == 0 {
		return sub, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no subscription %s: list them with 'holdfast subscriptions'", r.Name)}
	}
	if err := json.Unmarshal(r.Body, &sub); err != nil {
		return sub, &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("the record of subscription %s cannot be read: remove it and create it again", r.Name), Cause: err}
	}
	return sub, nil
}

// Subscribe creates a subscription, or replaces the one with the same id. In the same transaction the store starts to write
// the events that it asks for to the feed. A new subscription receives events from now on; a replaced one continues at its
// position. An identical one changes nothing and writes nothing to the audit log.
func (s *Service) Subscribe(ctx context.Context, sub subscription.Subscription, by Actor) (subscription.Subscription, error) {
	if err := by.check(); err != nil {
		return sub, err
	}
	if err := sub.Prepare(); err != nil {
		return sub, err
	}
	if s.cfg.CheckSubscription != nil {
		if err := s.cfg.CheckSubscription(sub); errors.As(err, new(*holdfast.Error)) {
			return sub, err
		} else if err != nil { // a sink refused it: the request is invalid
			return sub, &holdfast.Error{Err: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
		}
	}
	head, err := s.head(ctx)
	if err != nil {
		return sub, err
	}
	err = s.updateRecord(ctx, subscription.Namespace, sub.ID.String(), func(r store.Record) (store.Change, error) {
		name := "replaced"
		was, err := decodeSubscription(r)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			name, sub.Actor, sub.Cursor, sub.Missed = "subscribed", by.Name, head, 0
			if sub.CreatedAt, err = s.now(ctx); err != nil {
				return store.Change{}, err
			}
		case err != nil:
			return store.Change{}, err
		default:
			change := sub
			sub = was
			sub.Name, sub.Sink, sub.Target, sub.Secrets, sub.Options = change.Name, change.Sink, change.Target, change.Secrets, change.Options
			sub.Events, sub.Kinds, sub.Owners, sub.Codes, sub.Groups = change.Events, change.Kinds, change.Owners, change.Codes, change.Groups
			if sameJSON(was, sub) {
				return store.Change{}, nil
			}
		}
		return subscriptionChange(r, sub, by.event(subscription.Owner(sub.ID), name))
	})
	return sub, err
}

// subscriptionChange returns the change that saves a subscription, its listener and the event.
func subscriptionChange(r store.Record, sub subscription.Subscription, event store.Event) (c store.Change, err error) {
	if r.Body, err = json.Marshal(sub); err != nil {
		return c, err
	}
	return store.Change{Records: []store.Record{r}, Listen: []store.Listener{sub.Listener()}, Events: []store.Event{event}}, nil
}

// Unsubscribe deletes a subscription. Waiting deliveries fail with that reason.
func (s *Service) Unsubscribe(ctx context.Context, id holdfast.ID, by Actor) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.updateRecord(ctx, subscription.Namespace, id.String(), func(r store.Record) (store.Change, error) {
		if _, err := decodeSubscription(r); errors.Is(err, holdfast.ErrNotFound) {
			return store.Change{}, err
		}
		r.Body = nil
		return store.Change{
			Records: []store.Record{r}, Listen: []store.Listener{{Name: subscription.Owner(id)}},
			Events: []store.Event{by.event(subscription.Owner(id), "unsubscribed")},
		}, nil
	})
}

// DisableSubscription stops deliveries until the subscription is enabled. Events in between are kept for it as long as the
// feed keeps them. A reason is required; it is shown with the subscription.
func (s *Service) DisableSubscription(ctx context.Context, id holdfast.ID, by Actor) error {
	if by.Reason == "" {
		return invalid("no reason: say why the subscription is disabled")
	}
	return s.changeSubscription(ctx, id, by, "disabled", func(sub *subscription.Subscription) error {
		if sub.Disabled != "" {
			return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("subscription %s is already disabled: %s", id, sub.Disabled)}
		}
		sub.Disabled = by.Reason
		return nil
	})
}

// EnableSubscription continues a subscription where it was disabled: it first receives the events in between. To skip
// those, rewind it to the newest event before.
func (s *Service) EnableSubscription(ctx context.Context, id holdfast.ID, by Actor) error {
	return s.changeSubscription(ctx, id, by, "enabled", func(sub *subscription.Subscription) error {
		if sub.Disabled == "" {
			return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("subscription %s is not disabled", id)}
		}
		sub.Disabled = ""
		return nil
	})
}

// RewindSubscription makes a subscription receive all events after a number again, as far as the feed still has them. With
// subscription.FromHead it skips instead: the subscription receives only events from now on.
func (s *Service) RewindSubscription(ctx context.Context, id holdfast.ID, after int64, by Actor) error {
	page, err := s.store.Feed(ctx, 0, 1)
	if err != nil {
		return err
	}
	switch {
	case after == subscription.FromHead:
		after = page.Head
	case after < page.Purged:
		return invalid("number %d: the feed begins after %d; earlier events were deleted by retention", after, page.Purged)
	case after > page.Head:
		return invalid("number %d: the feed ends at %d", after, page.Head)
	}
	return s.changeSubscription(ctx, id, by, "rewound", func(sub *subscription.Subscription) error {
		sub.Cursor = after
		return nil
	})
}

// changeSubscription applies a person's command to a subscription.
func (s *Service) changeSubscription(ctx context.Context, id holdfast.ID, by Actor, name string, move func(*subscription.Subscription) error) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.updateRecord(ctx, subscription.Namespace, id.String(), func(r store.Record) (store.Change, error) {
		sub, err := decodeSubscription(r)
		if err != nil {
			return store.Change{}, err
		}
		if err := move(&sub); err != nil {
			return store.Change{}, err
		}
		return subscriptionChange(r, sub, by.event(subscription.Owner(id), name))
	})
}
