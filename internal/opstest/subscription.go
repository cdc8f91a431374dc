package opstest

import (
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func subscriptionsByHand(s *scene) {
	wanted := subscription.Subscription{Name: "alarm", Sink: "call", Target: "pager", Events: []string{"failed"}}
	s.refusesSubscriptions(wanted)
	s.failed() // nobody listens yet
	sub, err := s.operator.Subscribe(s.ctx, wanted, byPerson("ann", "on call"))
	s.must(err)
	s.failed()
	s.sequence()
	got, err := s.operator.Subscription(s.ctx, sub.ID)
	s.must(err)
	if got.Actor != "ann" || got.CreatedAt.IsZero() || got.Lag < 1 || got.Disabled != "" {
		s.Errorf("the subscription is %+v", got)
	}
	page, err := s.operator.Feed(s.ctx, got.Cursor, 10)
	s.must(err)
	failures := 0
	for _, e := range page.Events {
		if e.Name == store.EventFailed {
			failures++
		}
	}
	if failures != 1 {
		s.Errorf("%d failures are in the feed since a listener exists, wanted 1", failures)
	}

	wanted.ID = sub.ID
	_, err = s.operator.Subscribe(s.ctx, wanted, byPerson("bob", "a restart"))
	s.must(err)
	s.expectEvents(subscription.Owner(sub.ID), "subscribed")
	wanted.Target, wanted.Secrets = "other pager", []string{"pager"}
	_, err = s.operator.Subscribe(s.ctx, wanted, byPerson("bob", "moved"))
	s.must(err)
	s.expect(s.operator.DisableSubscription(s.ctx, sub.ID, byPerson("ann", "")), holdfast.ErrInvalid)
	s.must(s.operator.DisableSubscription(s.ctx, sub.ID, byPerson("ann", "at night")))
	s.expect(s.operator.DisableSubscription(s.ctx, sub.ID, byPerson("ann", "again")), holdfast.ErrConflict)
	s.must(s.operator.EnableSubscription(s.ctx, sub.ID, byPerson("ann", "")))
	s.expect(s.operator.EnableSubscription(s.ctx, sub.ID, byPerson("ann", "")), holdfast.ErrConflict)
	s.sequence()
	s.expect(s.operator.RewindSubscription(s.ctx, sub.ID, 1_000_000, byPerson("ann", "")), holdfast.ErrInvalid)
	s.must(s.operator.RewindSubscription(s.ctx, sub.ID, subscription.FromHead, byPerson("ann", "skip it")))
	list, err := s.operator.Subscriptions(s.ctx)
	s.must(err)
	if len(list) != 1 || list[0].Lag != 0 && list[0].Lag != 1 || list[0].Target != "other pager" || list[0].Actor != "ann" { // being rewound is an event too
		s.Errorf("the subscriptions are %+v", list)
	}
	s.must(s.operator.RewindSubscription(s.ctx, sub.ID, 0, byPerson("ann", "all anew")))
	if got, err = s.operator.Subscription(s.ctx, sub.ID); err != nil || got.Cursor != 0 || got.Lag < 3 {
		s.Errorf("a subscription that was rewound is %+v, %v", got, err)
	}
	s.expect(s.operator.Unsubscribe(s.ctx, holdfast.NewID(), byPerson("ann", "")), holdfast.ErrNotFound)
	s.must(s.operator.Unsubscribe(s.ctx, sub.ID, byPerson("ann", "gone")))
	_, err = s.operator.Subscription(s.ctx, sub.ID)
	s.expect(err, holdfast.ErrNotFound)
	s.expectEvents(subscription.Owner(sub.ID), "unsubscribed", "rewound", "rewound", "enabled", "disabled", "replaced", "subscribed")
}

// refusesSubscriptions expects that a subscription without an actor, without content, or that the program rejects is refused.
func (s *scene) refusesSubscriptions(wanted subscription.Subscription) {
	_, err := s.operator.Subscribe(s.ctx, wanted, byPerson("", ""))
	s.expect(err, holdfast.ErrInvalid)
	_, err = s.operator.Subscribe(s.ctx, subscription.Subscription{}, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
	picky := s.another(ops.Config{CheckSubscription: func(subscription.Subscription) error { return errors.New("no such pager") }})
	_, err = picky.Subscribe(s.ctx, wanted, byPerson("ann", ""))
	s.expect(err, holdfast.ErrInvalid)
}

// delivery makes a delivery and claims it.
func (s *scene) delivery(of holdfast.ID) store.Lease {
	s.Helper()
	s.must(s.store.Apply(s.ctx, store.Change{Deliver: []holdfast.Draft{{
		Kind: "holdfast.call", Queue: subscription.Queue, Owner: subscription.Owner(of), Args: []byte(`{"seq":[17]}`), IdempotencyKey: "subscription/17/" + holdfast.NewID().String(),
	}}}))
	return s.claimDelivery()
}

func (s *scene) claimDelivery() store.Lease {
	s.Helper()
	leases, err := s.store.Claim(s.ctx, store.Claim{Worker: "w1", Queues: []string{subscription.Queue}, Limit: 1, Start: 1, Lease: time.Minute})
	s.must(err)
	if len(leases) != 1 {
		s.Fatalf("%d deliveries are there to be claimed, wanted 1", len(leases))
	}
	return leases[0]
}

func deliveriesAreSentAgain(s *scene) {
	of, other := holdfast.NewID(), holdfast.NewID()
	lease := s.delivery(of)
	_, err := s.operator.Resend(s.ctx, by(lease.ID))
	s.expect(err, holdfast.ErrConflict)
	s.settle(lease, fail)
	again, err := s.operator.Resend(s.ctx, by(lease.ID))
	s.must(err)
	if again != lease.ID {
		s.Errorf("what failed was sent again as %s, wanted its own id", again)
	}
	s.settle(s.claimDelivery(), complete)
	_, err = s.operator.Resend(s.ctx, store.Intervention{Job: lease.ID})
	s.expect(err, holdfast.ErrInvalid)
	foreign := by(lease.ID)
	foreign.Owner = subscription.Owner(other)
	_, err = s.operator.Resend(s.ctx, foreign)
	s.expect(err, holdfast.ErrNotFound)
	if again, err = s.operator.Resend(s.ctx, by(lease.ID)); err != nil || again == lease.ID {
		s.Fatalf("what was delivered was sent again as %s, %v", again, err)
	}
	second := s.claimDelivery()
	if second.ID != again || string(second.Args) != string(lease.Args) || second.Owner != lease.Owner {
		s.Errorf("it was sent again as %+v", second)
	}
	s.settle(second, complete)
	s.settle(s.delivery(other), fail)
	d, err := s.operator.Delivery(s.ctx, lease.ID)
	s.must(err)
	if line := d.Story[len(d.Story)-1]; len(d.Attempts) != 1 || line.Text != "sent again by ann: as "+again.String()+": because" {
		s.Errorf("the delivery is shown as %+v", d)
	}
	for id, want := range map[holdfast.ID]int{of: 2, other: 1, {}: 3} {
		jobs, _, err := s.operator.Deliveries(s.ctx, id, store.Filter{})
		s.must(err)
		if len(jobs) != want {
			s.Errorf("%d deliveries of %s are listed, wanted %d", len(jobs), id, want)
		}
	}
	_, err = s.operator.Resend(s.ctx, by(s.failed()))
	s.expect(err, holdfast.ErrNotFound)
}

// expectEventsWithNames checks that each event in the feed is one that a subscription can ask for.
func (s *scene) expectEventsWithNames() {
	s.Helper()
	s.sequence()
	for after := int64(0); ; {
		page, err := s.store.Feed(s.ctx, after, 200)
		s.must(err)
		for _, e := range page.Events {
			sub := subscription.Subscription{Sink: "call", Target: "somewhere", Events: []string{subscription.Type(e)}}
			if err := sub.Prepare(); err != nil {
				s.Errorf("an event of %s has a name that no subscription may use: %v", e.Subject, err)
			}
		}
		if after = page.Next; after >= page.Head {
			return
		}
	}
}
