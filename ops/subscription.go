package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// A Subscribed is a subscription, and how far behind it is.
type Subscribed struct {
	subscription.Subscription
	// Lag is how many events of the feed it was not asked about yet. Most of them may be none of its business.
	Lag int64 `json:"lag"`
}

// Subscriptions lists them, the newest first. Records that cannot be read are left out and complained about.
func (s *Service) Subscriptions(ctx context.Context) ([]Subscribed, error) {
	records, err := s.store.Records(ctx, subscription.Room)
	if err != nil {
		return nil, err
	}
	head, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Subscribed, 0, len(records))
	var problems []error
	for _, r := range records {
		sub, err := subscribed(r)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, lagging(sub, head))
	}
	slices.SortFunc(list, func(a, b Subscribed) int { return slices.Compare(b.ID[:], a.ID[:]) })
	return list, errors.Join(problems...)
}

// Subscription tells about one.
func (s *Service) Subscription(ctx context.Context, id holdfast.ID) (Subscribed, error) {
	r, err := s.record(ctx, subscription.Room, id.String())
	if err != nil {
		return Subscribed{}, err
	}
	sub, err := subscribed(r)
	if err != nil {
		return Subscribed{}, err
	}
	head, err := s.head(ctx)
	return lagging(sub, head), err
}

func lagging(sub subscription.Subscription, head int64) Subscribed {
	if sub.Cursor < 0 {
		return Subscribed{Subscription: sub}
	}
	return Subscribed{Subscription: sub, Lag: max(0, head-sub.Cursor)}
}

// subscribed reads a subscription's record.
func subscribed(r holdfast.Record) (sub subscription.Subscription, err error) {
	if r.Version == 0 {
		return sub, &holdfast.Error{Kind: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no subscription %s: see those that are there with 'holdfast subscriptions'", r.Name)}
	}
	if err := json.Unmarshal(r.Body, &sub); err != nil {
		return sub, &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("the record of subscription %s cannot be read: remove it and subscribe anew", r.Name), Cause: err}
	}
	return sub, nil
}

// Subscribe keeps a subscription and has written to the feed what it wants to be told of, both at once. A new one is told what
// happens from now on; one whose id is known is replaced, and goes on where it is; one that is the same already is left as it is, and nothing is written to the audit log.
func (s *Service) Subscribe(ctx context.Context, sub subscription.Subscription, by By) (subscription.Subscription, error) {
	if err := by.check(); err != nil {
		return sub, err
	}
	if err := sub.Prepare(); err != nil {
		return sub, err
	}
	if s.cfg.CheckSubscription != nil {
		if err := s.cfg.CheckSubscription(sub); errors.As(err, new(*holdfast.Error)) {
			return sub, err
		} else if err != nil { // whatever a sink refuses, it is the request that is wrong
			return sub, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: err.Error(), Cause: err}
		}
	}
	head, err := s.head(ctx)
	if err != nil {
		return sub, err
	}
	err = s.keep(ctx, subscription.Room, sub.ID.String(), func(r holdfast.Record) (holdfast.Change, error) {
		name := "replaced"
		was, err := subscribed(r)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			name, sub.Actor, sub.Cursor, sub.Missed = "subscribed", by.Actor, head, 0
			if sub.CreatedAt, err = s.now(ctx); err != nil {
				return holdfast.Change{}, err
			}
		case err != nil:
			return holdfast.Change{}, err
		default:
			change := sub
			sub = was
			sub.Name, sub.Sink, sub.Target, sub.Secrets, sub.Options = change.Name, change.Sink, change.Target, change.Secrets, change.Options
			sub.Events, sub.Kinds, sub.Owners, sub.Codes, sub.Groups = change.Events, change.Kinds, change.Owners, change.Codes, change.Groups
			if same(was, sub) {
				return holdfast.Change{}, nil
			}
		}
		return keepSubscription(r, sub, by.says(subscription.Owner(sub.ID), name))
	})
	return sub, err
}

// keepSubscription is the change that keeps a subscription, what it listens for, and the line that tells of it.
func keepSubscription(r holdfast.Record, sub subscription.Subscription, said holdfast.Event) (c holdfast.Change, err error) {
	if r.Body, err = json.Marshal(sub); err != nil {
		return c, err
	}
	return holdfast.Change{Records: []holdfast.Record{r}, Listen: []holdfast.Listener{sub.Listener()}, Events: []holdfast.Event{said}}, nil
}

// Unsubscribe forgets a subscription. Deliveries that wait fail, and say why.
func (s *Service) Unsubscribe(ctx context.Context, id holdfast.ID, by By) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.keep(ctx, subscription.Room, id.String(), func(r holdfast.Record) (holdfast.Change, error) {
		if _, err := subscribed(r); errors.Is(err, holdfast.ErrNotFound) {
			return holdfast.Change{}, err
		}
		r.Body = nil
		return holdfast.Change{
			Records: []holdfast.Record{r}, Listen: []holdfast.Listener{{Name: subscription.Owner(id)}},
			Events: []holdfast.Event{by.says(subscription.Owner(id), "unsubscribed")},
		}, nil
	})
}

// DisableSubscription tells a subscription nothing more until it is enabled. What happens meanwhile is kept for it as long as the feed keeps it.
// A reason is required: whoever wonders is shown it.
func (s *Service) DisableSubscription(ctx context.Context, id holdfast.ID, by By) error {
	if by.Reason == "" {
		return invalid("no reason: say why nobody is to be told any more")
	}
	return s.moveSubscription(ctx, id, by, "disabled", func(sub *subscription.Subscription) error {
		if sub.Disabled != "" {
			return &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("subscription %s is disabled already: %s", id, sub.Disabled)}
		}
		sub.Disabled = by.Reason
		return nil
	})
}

// EnableSubscription lets a subscription go on where it was disabled: what it missed comes first. To leave that out, rewind it to the
// newest event before.
func (s *Service) EnableSubscription(ctx context.Context, id holdfast.ID, by By) error {
	return s.moveSubscription(ctx, id, by, "enabled", func(sub *subscription.Subscription) error {
		if sub.Disabled == "" {
			return &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("subscription %s is not disabled", id)}
		}
		sub.Disabled = ""
		return nil
	})
}

// RewindSubscription has a subscription told once more of all that came after a number, as far as the feed still has it: so what is made
// from its events can be made anew. subscription.FromHead goes the other way: it is told only what happens from now on.
func (s *Service) RewindSubscription(ctx context.Context, id holdfast.ID, after int64, by By) error {
	page, err := s.store.Feed(ctx, 0, 1)
	if err != nil {
		return err
	}
	switch {
	case after == subscription.FromHead:
		after = page.Head
	case after < page.Purged:
		return invalid("number %d: the feed begins after %d; what came before has been purged", after, page.Purged)
	case after > page.Head:
		return invalid("number %d: the feed ends at %d", after, page.Head)
	}
	return s.moveSubscription(ctx, id, by, "rewound", func(sub *subscription.Subscription) error {
		sub.Cursor = after
		return nil
	})
}

// moveSubscription keeps a person's word on a subscription.
func (s *Service) moveSubscription(ctx context.Context, id holdfast.ID, by By, name string, move func(*subscription.Subscription) error) error {
	if err := by.check(); err != nil {
		return err
	}
	return s.keep(ctx, subscription.Room, id.String(), func(r holdfast.Record) (holdfast.Change, error) {
		sub, err := subscribed(r)
		if err != nil {
			return holdfast.Change{}, err
		}
		if err := move(&sub); err != nil {
			return holdfast.Change{}, err
		}
		return keepSubscription(r, sub, by.says(subscription.Owner(id), name))
	})
}
