package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

func queuedOnly(s *subscription.Subscription) { s.Events = []string{"queued"} }

func TestEachEventIsDeliveredOnceAndDeliveriesAreNotEventsThemselves(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		id := s.subscribes("fake")
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(5)
		s.until("five deliveries", func() bool { return len(m.all()) >= 5 })
		s.passes(time.Minute)
		expect(s, "told", len(m.all()), 5)
		jobs := s.deliveries(id)
		expect(s, "deliveries", len(jobs), 5)
		for _, j := range jobs {
			expect(s, "delivery", fmt.Sprint(j.State, j.Kind, j.Owner, string(j.Result)), fmt.Sprint(holdfast.Complete, "holdfast.fake", subscription.Owner(id), `{"events":1}`))
		}
	})
}

func TestASubscriptionStartsWithTheNextEvent(t *testing.T) {
	runScene(t, func(s *scene) {
		s.subscribes("nobody") // so that it is in the feed
		s.enqueues(3)
		m := &fakeSink{}
		s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		after := s.enqueues(2)
		s.until("two deliveries", func() bool { return len(m.all()) >= 2 })
		s.passes(time.Minute)
		var told []holdfast.ID
		for _, d := range m.all() {
			told = append(told, d.Events[0].Job)
		}
		slices.SortFunc(told, func(a, b holdfast.ID) int { return strings.Compare(a.String(), b.String()) })
		expect(s, "told", told, after)
	})
}

func TestSubscriptionsWithTheSameCursorShareOneRead(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		for range 40 {
			s.subscribes("fake", queuedOnly)
		}
		s.serves(one(m), func(c *notify.Config) { c.Beat = time.Second })
		s.passes(5 * time.Second)
		s.faulty.Plan()
		s.passes(10 * time.Second)
		if n := s.faulty.Calls("Feed"); n < 8 || n > 12 {
			s.Errorf("40 idle subscriptions read the feed %d times in ten beats", n)
		}
	})
}

func TestACursorWithoutMatchesIsStoredNowAndThen(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		s.subscribes("nobody") // so that it is in the feed
		id := s.subscribes("fake", func(sub *subscription.Subscription) { sub.Events = []string{"group.*"} })
		s.serves(one(m))
		s.passes(time.Second)
		before, _ := s.sub(id)
		for range 20 {
			s.enqueues(1)
			s.passes(500 * time.Millisecond)
		}
		s.passes(15 * time.Second)
		after, sub := s.sub(id)
		if after-before > 3 || sub.Cursor < 20 {
			s.Errorf("kept %d times, cursor %d", after-before, sub.Cursor)
		}
	})
}

func TestAnOrderedSinkGetsOneDeliveryAtATimeInOrder(t *testing.T) {
	runScene(t, func(s *scene) {
		fails := 3
		m := &fakeSink{traits: notify.Traits{Ordered: true, Together: 10}}
		m.answer = func(ctx context.Context, d notify.Delivery) error {
			time.Sleep(50 * time.Millisecond)
			if fails--; fails >= 0 {
				return errors.New("not now")
			}
			return nil
		}
		id := s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(95)
		s.until("95 events", func() bool { return len(m.events()) >= 95+3 })
		s.passes(time.Minute)
		seqs := slices.Compact(m.events()[max(0, len(m.events())-95):])
		if !slices.IsSorted(seqs) || len(seqs) != 95 || m.most != 1 {
			s.Errorf("%d at once; %v", m.most, seqs)
		}
		for _, j := range s.deliveries(id) {
			expect(s, "delivery", j.State, holdfast.Complete)
		}
	})
}

func TestAnOrderedSinkContinuesAfterADeliveryThatFailedForGood(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{traits: notify.Traits{Ordered: true, Together: 1}}
		m.answer = func(_ context.Context, d notify.Delivery) error {
			if len(m.all()) == 1 {
				return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "this one never"}
			}
			return nil
		}
		id := s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(3)
		s.until("three deliveries", func() bool { return len(m.all()) >= 3 })
		var states []holdfast.State
		for _, j := range s.deliveries(id) {
			states = append(states, j.State)
		}
		expect(s, "states", states, []holdfast.State{holdfast.Failed, holdfast.Complete, holdfast.Complete})
	})
}

func TestAFloodBecomesADigestAndEveryEventIsCounted(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{traits: notify.Traits{Together: 50, Burst: 2, Every: 5 * time.Minute}}
		s.subscribes("fake", queuedOnly)
		s.serves(one(m))
		s.passes(time.Second)
		for range 60 { // ten minutes of it
			s.enqueues(20)
			s.passes(10 * time.Second)
		}
		s.passes(6 * time.Minute)
		events, more := 0, 0
		for _, d := range m.all() {
			events, more = events+len(d.Events), more+d.More
			if len(d.Events) > 50 {
				s.Errorf("%d events in one", len(d.Events))
			}
		}
		expect(s, "all events", events+more, 1200)
		if n := len(m.all()); n < 4 || n > 6 {
			s.Errorf("%d deliveries in sixteen minutes, with two at once and one every five minutes", n)
		}
	})
}

func TestSubscriptionsOfOneTargetShareItsBucket(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{traits: notify.Traits{Together: 50, Burst: 1, Every: 5 * time.Minute}}
		s.subscribes("fake", queuedOnly)
		s.subscribes("fake", queuedOnly)
		s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Target = "elsewhere" })
		s.serves(one(m))
		s.passes(time.Second)
		s.enqueues(1)
		s.passes(time.Minute)
		expect(s, "in the first minute", len(m.all()), 2)
		s.passes(5 * time.Minute)
		expect(s, "after five more", len(m.all()), 3)
	})
}

func TestEventsDeletedBeforeDeliveryAreReported(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		id := s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Disabled, sub.Cursor = "for now", 0 })
		s.works()
		s.enqueues(10)
		s.passes(time.Minute)
		if _, err := s.store.DeleteHistory(context.Background(), store.HistoryFeed, 10*time.Second, 1000); err != nil {
			s.Fatal(err)
		}
		s.serves(one(m))
		s.changes(id, func(sub *subscription.Subscription) { sub.Disabled = "" })
		s.passes(time.Second)
		s.enqueues(1)
		s.until("what is left", func() bool { return len(m.all()) >= 1 })
		_, sub := s.sub(id)
		if sub.Missed < 10 || !slices.Contains(s.story(id), "missed") {
			s.Errorf("missed %d; %v", sub.Missed, s.story(id))
		}
	})
}

func TestACursorBeyondTheEndIsResetAndReported(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		id := s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Cursor = 1000 })
		s.enqueues(2)
		s.serves(one(m))
		s.until("the reset", func() bool { return slices.Contains(s.story(id), "reset") })
		s.enqueues(1)
		s.until("the next", func() bool { return len(m.all()) == 1 })
	})
}

func TestARewoundSubscriptionGetsEventsAgainUnderTheSameIds(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		id := s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Cursor = 0 })
		s.serves(one(m))
		s.enqueues(3)
		s.until("three", func() bool { return len(m.all()) == 3 })
		s.changes(id, func(sub *subscription.Subscription) { sub.Cursor = 0 })
		s.until("three more", func() bool { return len(m.all()) == 6 })
		ids := make(map[string]int)
		for _, d := range m.all() {
			ids[d.ID]++
		}
		expect(s, "ids", len(ids), 3)
	})
}

func TestTwoServicesMakeOneDeliveryOfEachEvent(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{}
		var ids []holdfast.ID
		for range 5 {
			ids = append(ids, s.subscribes("fake", queuedOnly))
		}
		for range 3 {
			s.serves(one(m), func(c *notify.Config) { c.Beat = 100 * time.Millisecond })
		}
		s.passes(time.Second)
		for range 10 {
			s.enqueues(7)
			s.passes(150 * time.Millisecond)
		}
		s.until("all of them", func() bool { return len(m.all()) >= 350 })
		s.passes(time.Minute)
		expect(s, "told", len(m.all()), 350)
		for _, id := range ids {
			expect(s, "deliveries", len(s.deliveries(id)), 70)
		}
	})
}

func TestABigBacklogIsDeliveredCompletelyAndInParts(t *testing.T) {
	runScene(t, func(s *scene) {
		m := &fakeSink{traits: notify.Traits{Together: 100}}
		s.subscribes("fake", queuedOnly, func(sub *subscription.Subscription) { sub.Cursor = 0 })
		drafts := slices.Repeat([]holdfast.Draft{{Kind: "note"}}, 3000)
		if _, err := s.store.Enqueue(context.Background(), drafts); err != nil {
			s.Fatal(err)
		}
		s.serves(one(m))
		s.until("3000 events", func() bool { return len(m.events()) >= 3000 })
		expect(s, "events", len(m.events()), 3000)
		expect(s, "deliveries", len(m.all()), 30)
	})
}

func TestAFaultInTheMiddleOfARoundLosesNothingAndDoublesNothing(t *testing.T) {
	for _, after := range []bool{false, true} {
		runScene(t, func(s *scene) {
			m := &fakeSink{}
			flaky := &flakyKeep{Store: s.store, after: after}
			s.subscribes("fake", queuedOnly)
			s.tellsFrom(flaky, one(m))
			s.passes(time.Second)
			s.enqueues(30)
			s.until("thirty", func() bool { return len(m.all()) >= 30 })
			s.passes(time.Minute)
			expect(s, "told", len(m.all()), 30)
		})
	}
}

// flakyKeep fails every second change that makes deliveries, before or after the store has written it.
type flakyKeep struct {
	store.Store
	after bool
	n     int // used only by the relay
}

func (f *flakyKeep) Apply(ctx context.Context, c store.Change) error {
	if len(c.Enqueue) == 0 {
		return f.Store.Apply(ctx, c)
	}
	f.n++
	lost := &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the store did not answer"}
	if f.n%2 == 0 {
		return f.Store.Apply(ctx, c)
	}
	if f.after {
		_ = f.Store.Apply(ctx, c)
	}
	return lost
}
