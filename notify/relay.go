package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

const (
	pageSize         = 500 // events in one read of the feed, and maximum number of deliveries in one transaction
	maxPages         = 20  // maximum number of pages for one subscription in a round
	maxCombinedPages = 40  // maximum number of pages that become one delivery of a sink with a bucket

	saveAfterEvents = 5000             // a cursor that only passed events without a match is stored after so many events,
	saveAfterTime   = 10 * time.Second // or after this time
)

// A relay moves the cursors of subscriptions along the feed and makes deliveries of the events that they match. It runs one round at a time.
type relay struct {
	service *Service
	passed  map[holdfast.ID]passed
	logged  map[string]string // last logged error of each subscription
	again   chan struct{}     // signals that the next round should start at once
}

// passed is how far a subscription was read without a match, beyond the cursor in its record. It is only in memory: storing it for every page would cost a write
// for nothing. After a restart the same events are read again.
type passed struct {
	version int // version of the record
	keptAt  time.Time
	cursor  int64
	since   time.Time // when the first event was passed, by this process's clock
}

func newRelay(s *Service) relay {
	return relay{service: s, passed: make(map[holdfast.ID]passed), logged: make(map[string]string), again: make(chan struct{}, 1)}
}

// round processes every subscription once. An error of one does not delay the others; only an error of the store ends the round.
func (r *relay) round(ctx context.Context) error {
	records, err := r.service.subscriptions.readAll(ctx)
	if err != nil {
		return err
	}
	t := &relayRound{relay: r, store: r.service.store, pages: make(map[int64]store.Feed)}
	present := make(map[holdfast.ID]bool, len(records))
	for _, record := range records {
		sub, err := readSubscription(record)
		if err != nil {
			r.logOnce(record.Name, err)
			continue
		}
		present[sub.ID] = true
		if sub.Disabled != "" {
			continue
		}
		sink := r.service.cfg.Sinks[sub.Sink]
		if sink == nil {
			r.logOnce(record.Name, fmt.Errorf("this process has no sink %q: another process must deliver it", sub.Sink))
			continue
		}
		broken, err := t.process(ctx, record, sub, sink)
		r.logOnce(record.Name, broken)
		if err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return fmt.Errorf("subscription %s: %w", sub.ID, err)
		}
	}
	for id := range r.passed {
		if !present[id] {
			delete(r.passed, id)
		}
	}
	return nil
}

// logOnce logs what is wrong with a subscription, once for as long as the error is the same.
func (r *relay) logOnce(name string, err error) {
	if err == nil {
		delete(r.logged, name)
		return
	}
	if r.logged[name] != err.Error() {
		r.logged[name] = err.Error()
		r.service.cfg.Log.Warn("subscription cannot be delivered, will retry", "event", "subscription_failed", "subscription", name, "error", err.Error())
	}
}

// cursor is how far a subscription was read: the cursor of its record, or what this process has passed beyond it. The latter counts only for the same version of
// the record, because another process may have moved or rewound it.
func (r *relay) cursor(record store.Record, sub subscription.Subscription) int64 {
	p := r.passed[sub.ID]
	if p.version == record.Version && p.keptAt.Equal(record.KeptAt) {
		return max(p.cursor, sub.Cursor)
	}
	return sub.Cursor
}

// pass records that events up to a number did not match, and reports whether the cursor should be stored now.
func (r *relay) pass(record store.Record, sub subscription.Subscription, to int64) (keep bool) {
	p := r.passed[sub.ID]
	if p.version != record.Version || !p.keptAt.Equal(record.KeptAt) {
		p = passed{version: record.Version, keptAt: record.KeptAt, since: time.Now()}
	}
	p.cursor = to
	r.passed[sub.ID] = p
	return to-sub.Cursor >= saveAfterEvents || to > sub.Cursor && time.Since(p.since) >= saveAfterTime
}

// A relayRound is one round. Pages of the feed that it has read are shared by all subscriptions.
type relayRound struct {
	relay   *relay
	store   Store
	pages   map[int64]store.Feed
	buckets map[string]store.Record
}

// page reads the feed after a number. Subscriptions with the same cursor share the result.
func (t *relayRound) page(ctx context.Context, after int64) (store.Feed, error) {
	if page, ok := t.pages[after]; ok {
		return page, nil
	}
	page, err := t.store.Feed(ctx, after, pageSize)
	if err == nil {
		if len(t.pages) >= 2*maxPages { // bounds the memory: pages are large
			clear(t.pages)
		}
		t.pages[after] = page
	}
	return page, err
}

// A subscriptionRun is the work on one subscription in a round: what was read, and the change to store.
type subscriptionRun struct {
	record store.Record
	sub    subscription.Subscription
	sink   Sink
	traits Traits
	change store.Change
}

// process processes one subscription. broken is an error of its sink; err is an error of the store.
func (t *relayRound) process(ctx context.Context, record store.Record, sub subscription.Subscription, sink Sink) (broken, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			broken = fmt.Errorf("the sink panicked: %v\n%s", thrown, debug.Stack())
		}
	}()
	sub.Cursor = t.relay.cursor(record, sub)
	s := &subscriptionRun{record: record, sub: sub, sink: sink, traits: sink.Traits()}
	if sub.Cursor == subscription.FromHead {
		return nil, t.startAtHead(ctx, s)
	}
	switch {
	case s.traits.Burst > 0:
		return nil, t.combine(ctx, s)
	case s.traits.Ordered:
		if under, err := t.underWay(ctx, sub.Sending); under || err != nil {
			return nil, err
		}
	}
	for range maxPages {
		more, err := t.step(ctx, s)
		if err != nil || !more {
			return nil, err
		}
	}
	t.relay.nudge()
	return nil, nil
}

// nudge makes the next round start at once.
func (r *relay) nudge() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// startAtHead sets the cursor of a new subscription to the end of the feed.
func (t *relayRound) startAtHead(ctx context.Context, s *subscriptionRun) error {
	page, err := t.store.Feed(ctx, 0, 1)
	if err != nil {
		return err
	}
	s.sub.Cursor = page.Head
	return t.save(ctx, s)
}

// underWay reports whether a delivery has not ended.
func (t *relayRound) underWay(ctx context.Context, id holdfast.ID) (bool, error) {
	if id.IsZero() {
		return false, nil
	}
	job, err := t.store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return false, nil
	}
	return err == nil && !job.State.Terminal(), err
}

// read reads the next page for a subscription. If retention has deleted events before they were read, they are counted and an event records it. A cursor beyond
// the end of the feed, as in a store that was restored from a backup, is set to the end, and an event records that too.
func (t *relayRound) read(ctx context.Context, s *subscriptionRun) (store.Feed, error) {
	page, err := t.page(ctx, s.sub.Cursor)
	if errors.Is(err, holdfast.ErrInvalid) {
		return t.reset(ctx, s, err)
	}
	if err == nil && page.Missed > 0 {
		s.sub.Missed += page.Missed
		s.addEvent("missed", fmt.Sprintf("retention deleted %d events before they were delivered; deliveries continue after event %d", page.Missed, page.Purged))
	}
	return page, err
}

// reset sets a cursor beyond the end of the feed to the end.
func (t *relayRound) reset(ctx context.Context, s *subscriptionRun, refusal error) (store.Feed, error) {
	start, err := t.store.Feed(ctx, 0, 1)
	if err != nil {
		return start, err
	}
	if start.Head >= s.sub.Cursor {
		return start, refusal
	}
	s.addEvent("reset", fmt.Sprintf("the subscription was at event %d but the feed ends at %d: this is another store, or one restored from a backup. Deliveries continue from the end of the feed", s.sub.Cursor, start.Head))
	return store.Feed{Next: start.Head, Head: start.Head}, nil
}

func (s *subscriptionRun) addEvent(name, reason string) {
	s.change.Events = append(s.change.Events, store.Event{Subject: subscription.Owner(s.sub.ID), Name: name, Actor: actor, Reason: reason})
}

// step processes one page for a subscription, and reports whether there is more.
func (t *relayRound) step(ctx context.Context, s *subscriptionRun) (more bool, err error) {
	page, err := t.read(ctx, s)
	if err != nil {
		return false, err
	}
	matched := s.matching(page)
	next := page.Next
	if s.traits.Ordered {
		sent := s.addDelivery(matched)
		if sent < len(matched) {
			next = matched[sent-1].Seq
		}
	} else {
		for left := matched; len(left) > 0; {
			left = left[s.addDelivery(left):]
		}
	}
	s.sub.Cursor = next
	if err := t.saveIfNeeded(ctx, s); err != nil {
		return false, err
	}
	return page.Next < page.Head && !(s.traits.Ordered && len(matched) > 0), nil
}

func (s *subscriptionRun) matching(page store.Feed) (matched []store.Event) {
	for i := range page.Events {
		if s.sub.Matches(page.Events[i]) {
			matched = append(matched, page.Events[i])
		}
	}
	return matched
}

// saveIfNeeded stores the result of a page. A cursor without deliveries is stored only now and then.
func (t *relayRound) saveIfNeeded(ctx context.Context, s *subscriptionRun) error {
	if len(s.change.Deliver) == 0 && len(s.change.Events) == 0 {
		inRecord := s.sub
		if was, err := readSubscription(s.record); err == nil {
			inRecord.Cursor = was.Cursor
		}
		if !t.relay.pass(s.record, inRecord, s.sub.Cursor) {
			return nil
		}
	}
	return t.save(ctx, s)
}

// save stores, in one transaction, the subscription's cursor and its deliveries. The store refuses it with ErrConflict if another process has changed the record
// since it was read; then nothing is written, and the next round reads the record again. So no event is delivered twice because of a race, and none is
// skipped.
func (t *relayRound) save(ctx context.Context, s *subscriptionRun) (err error) {
	record := s.record
	if record.Body, err = json.Marshal(s.sub); err != nil {
		return err
	}
	s.change.Records = append(s.change.Records, record)
	if err := t.store.Apply(ctx, s.change); err != nil {
		return err
	}
	// The store sets KeptAt, so the passed position of this record is not valid before the next read of the records.
	record.Version++
	s.record, s.change = record, store.Change{}
	return nil
}
