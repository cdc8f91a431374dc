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
)

const (
	pageSize  = 500 // events of the feed in one read, and at most so many deliveries in one transaction
	maxPages  = 20  // that one subscription gets in a round, before it is the next one's turn
	maxGather = 40  // pages that become one delivery of a sink with a bucket

	lazyEvents = 5000 // a cursor that only passed what is none of its business is kept after so many events,
	lazyTime   = 10 * time.Second
)

// A relay moves the cursors of subscriptions along the feed, and makes deliveries of what they match. It runs one round at a time.
type relay struct {
	service *Service
	passed  map[holdfast.ID]passed
	said    map[string]string // complaints that were made, by what they are about
	again   chan struct{}     // there is more to do at once
}

// passed is how far a subscription was read without a match, beyond the cursor in its record.
type passed struct {
	version int // of the record
	keptAt  time.Time
	cursor  int64
	since   time.Time // by this process's clock: when the first of it was passed
}

func newRelay(s *Service) relay {
	return relay{service: s, passed: make(map[holdfast.ID]passed), said: make(map[string]string), again: make(chan struct{}, 1)}
}

// round gives every subscription its turn. What is wrong with one does not keep the others waiting; only a store that cannot be asked
// ends the round.
func (r *relay) round(ctx context.Context) error {
	records, err := r.service.board.look(ctx)
	if err != nil {
		return err
	}
	t := &turn{relay: r, store: r.service.store, pages: make(map[int64]holdfast.Feed)}
	present := make(map[holdfast.ID]bool, len(records))
	for _, record := range records {
		sub, err := readSubscription(record)
		if err != nil {
			r.complain(record.Name, err)
			continue
		}
		present[sub.ID] = true
		if sub.Disabled != "" {
			continue
		}
		sink := r.service.cfg.Sinks[sub.Sink]
		if sink == nil {
			r.complain(record.Name, fmt.Errorf("this process does not know its sink %q: it leaves it to one that does", sub.Sink))
			continue
		}
		broken, err := t.attend(ctx, record, sub, sink)
		r.complain(record.Name, broken)
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

// complain logs what is wrong with a subscription, once for as long as it stays the same.
func (r *relay) complain(name string, err error) {
	if err == nil {
		delete(r.said, name)
		return
	}
	if r.said[name] != err.Error() {
		r.said[name] = err.Error()
		r.service.cfg.Log.Warn("a subscription is told nothing for now", "event", "subscription_trouble", "subscription", name, "error", err.Error())
	}
}

// cursor is how far a subscription was read: what its record says, or what this process knows beyond it.
func (r *relay) cursor(record holdfast.Record, sub subscription.Subscription) int64 {
	p := r.passed[sub.ID]
	if p.version == record.Version && p.keptAt.Equal(record.KeptAt) {
		return max(p.cursor, sub.Cursor)
	}
	return sub.Cursor
}

// pass notes that there was nothing for a subscription, and reports whether that is worth keeping by now.
func (r *relay) pass(record holdfast.Record, sub subscription.Subscription, to int64) (keep bool) {
	p := r.passed[sub.ID]
	if p.version != record.Version || !p.keptAt.Equal(record.KeptAt) {
		p = passed{version: record.Version, keptAt: record.KeptAt, since: time.Now()}
	}
	p.cursor = to
	r.passed[sub.ID] = p
	return to-sub.Cursor >= lazyEvents || to > sub.Cursor && time.Since(p.since) >= lazyTime
}

// A turn is one round: what was read in it is read once.
type turn struct {
	relay     *relay
	store     Store
	pages     map[int64]holdfast.Feed
	mailboxes map[string]holdfast.Record
}

// page reads the feed after a number. Subscriptions that are equally far share the answer.
func (t *turn) page(ctx context.Context, after int64) (holdfast.Feed, error) {
	if page, ok := t.pages[after]; ok {
		return page, nil
	}
	page, err := t.store.Feed(ctx, after, pageSize)
	if err == nil {
		if len(t.pages) >= 2*maxPages { // they are large
			clear(t.pages)
		}
		t.pages[after] = page
	}
	return page, err
}

// A stretch is what a subscription was read in one go, and what came of it.
type stretch struct {
	record holdfast.Record
	sub    subscription.Subscription
	sink   Sink
	traits Traits
	change holdfast.Change
}

// attend gives one subscription its turn. broken is what is wrong with its sink; err is the store's.
func (t *turn) attend(ctx context.Context, record holdfast.Record, sub subscription.Subscription, sink Sink) (broken, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			broken = fmt.Errorf("its sink panicked: %v\n%s", thrown, debug.Stack())
		}
	}()
	sub.Cursor = t.relay.cursor(record, sub)
	s := &stretch{record: record, sub: sub, sink: sink, traits: sink.Traits()}
	if sub.Cursor == subscription.FromHead {
		return nil, t.begin(ctx, s)
	}
	switch {
	case s.traits.Burst > 0:
		return nil, t.gather(ctx, s)
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

// nudge has the next round begin at once.
func (r *relay) nudge() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// begin lets a new subscription start with whatever happens next.
func (t *turn) begin(ctx context.Context, s *stretch) error {
	page, err := t.store.Feed(ctx, 0, 1)
	if err != nil {
		return err
	}
	s.sub.Cursor = page.Head
	return t.keep(ctx, s)
}

// underWay reports whether a delivery has not ended.
func (t *turn) underWay(ctx context.Context, id holdfast.ID) (bool, error) {
	if id.IsZero() {
		return false, nil
	}
	job, err := t.store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return false, nil
	}
	return err == nil && !job.State.Terminal(), err
}

// read reads the next page for a subscription. What retention deleted before it got there is counted and said; a cursor that is beyond
// the end, as in a store that was restored from a copy, is set to the end, and that is said too.
func (t *turn) read(ctx context.Context, s *stretch) (holdfast.Feed, error) {
	page, err := t.page(ctx, s.sub.Cursor)
	if errors.Is(err, holdfast.ErrInvalid) {
		return t.reset(ctx, s, err)
	}
	if err == nil && page.Missed > 0 {
		s.sub.Missed += page.Missed
		s.say("missed", fmt.Sprintf("retention had deleted %d events before it was asked about them; it goes on after event %d", page.Missed, page.Purged))
	}
	return page, err
}

// reset sets a cursor that is beyond the end to the end.
func (t *turn) reset(ctx context.Context, s *stretch, refusal error) (holdfast.Feed, error) {
	start, err := t.store.Feed(ctx, 0, 1)
	if err != nil {
		return start, err
	}
	if start.Head >= s.sub.Cursor {
		return start, refusal
	}
	s.say("reset", fmt.Sprintf("it had been told up to event %d and the feed ends at %d: this is not the store it was told from. It goes on from there", s.sub.Cursor, start.Head))
	return holdfast.Feed{Next: start.Head, Head: start.Head}, nil
}

func (s *stretch) say(name, reason string) {
	s.change.Events = append(s.change.Events, holdfast.Event{Subject: subscription.Owner(s.sub.ID), Name: name, Actor: actor, Reason: reason})
}

// step takes a subscription one page further, and reports whether there is more for it.
func (t *turn) step(ctx context.Context, s *stretch) (more bool, err error) {
	page, err := t.read(ctx, s)
	if err != nil {
		return false, err
	}
	matched := s.matching(page)
	next := page.Next
	if s.traits.Ordered {
		sent := s.put(matched)
		if sent < len(matched) {
			next = matched[sent-1].Seq
		}
	} else {
		for left := matched; len(left) > 0; {
			left = left[s.put(left):]
		}
	}
	s.sub.Cursor = next
	if err := t.keepIfWorth(ctx, s); err != nil {
		return false, err
	}
	return page.Next < page.Head && !(s.traits.Ordered && len(matched) > 0), nil
}

func (s *stretch) matching(page holdfast.Feed) (matched []holdfast.Event) {
	for i := range page.Events {
		if s.sub.Matches(page.Events[i]) {
			matched = append(matched, page.Events[i])
		}
	}
	return matched
}

// keepIfWorth keeps what came of a page. A cursor alone is kept now and then.
func (t *turn) keepIfWorth(ctx context.Context, s *stretch) error {
	if len(s.change.Deliver) == 0 && len(s.change.Events) == 0 {
		inRecord := s.sub
		if was, err := readSubscription(s.record); err == nil {
			inRecord.Cursor = was.Cursor
		}
		if !t.relay.pass(s.record, inRecord, s.sub.Cursor) {
			return nil
		}
	}
	return t.keep(ctx, s)
}

// keep makes durable, in one transaction, that the subscription was told so far and that its deliveries exist.
func (t *turn) keep(ctx context.Context, s *stretch) (err error) {
	record := s.record
	if record.Body, err = json.Marshal(s.sub); err != nil {
		return err
	}
	s.change.Records = append(s.change.Records, record)
	if err := t.store.Keep(ctx, s.change); err != nil {
		return err
	}
	// The store sets when it was kept, so what is passed from here on is known to belong to it only after the next look.
	record.Version++
	s.record, s.change = record, holdfast.Change{}
	return nil
}
