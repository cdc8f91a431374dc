package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var feedLaws = []law{
	{"the feed has every transition of a job once, in order, by its name", func(s *scene) {
		s.listen("*")
		id := s.runThroughStates()
		want := []string{"queued", "processing", "retry", "processing", "released", "processing", "reclaimed", "retry", "processing", "failed",
			"manual retry", "processing", "complete"}
		same(s, "events", namesOf(s.feed(0), id), want)
	}},
	{"the feed also has jobs that a person ended, that never started, that expired or that waited in vain, each once", func(s *scene) {
		s.listen("*")
		queued := s.enqueue()
		s.cancel(queued)
		asked := s.start()
		s.cancel(asked.ID)
		s.settle(completes(asked))
		unstarted := s.enqueue()
		s.claimAs(store.Claim{Worker: "w", Limit: 1})
		s.Advance(longAgo)
		s.reclaim()
		s.settle(completes(s.claimOne()))
		late := s.enqueue(expiresIn(time.Minute))
		s.Advance(time.Minute)
		expired := fails(s.expire()[0], "JOB_EXPIRED")
		expired.Charge = store.ChargeNone
		s.settle(expired)
		group := s.gather()
		first := s.enqueue(in(group))
		waited := s.enqueue(in(group), after(first))
		s.run(first)
		told := s.feed(0)
		for id, want := range map[holdfast.ID][]string{
			queued: {"cancel", "cancelled", "queued"}, asked.ID: {"cancel", "cancelled", "processing", "queued"},
			unstarted: {"complete", "processing", "processing", "queued", "released"}, late: {"expired", "processing", "queued"},
			first: {"failed", "processing", "queued"}, waited: {"cancel", "cancelled", "queued"},
		} {
			got := namesOf(told, id)
			same(s, "first", got[0], "queued")
			slices.Sort(got)
			same(s, "events", got, want)
		}
	}},
	{"an event has the facts of its job and its attempt", fieldsOfEvents},
	{"an event without a listener is not written, whatever others listen for", func(s *scene) {
		s.settle(completes(s.start()))
		same(s, "events without a listener", len(s.feed(0)), 0)
		s.listen(store.EventFailed, store.EventQueued)
		s.settle(completes(s.start()))
		s.fail()
		same(s, "events", eventNames(s.feed(0)), []string{"queued", "queued", "failed"})
		s.keep(store.Change{Listen: []store.Listener{{Name: "other", Events: []string{"complete"}}}})
		s.listen()
		s.settle(completes(s.start()))
		s.fail()
		same(s, "events of the other", eventNames(s.feed(3)), []string{"complete"})
	}},
	{"a listener's new events replace the old ones, and every handle obeys at once", func(s *scene) {
		other := s.Reopen()
		s.listen("queued")
		_, err := other.Enqueue(s.ctx, []holdfast.Draft{draft()})
		s.must(err)
		s.listen("complete")
		_, err = other.Enqueue(s.ctx, []holdfast.Draft{draft()})
		s.must(err)
		s.settle(completes(s.claimOne()))
		s.must(other.Apply(s.ctx, store.Change{Listen: []store.Listener{{Name: "reader"}}}))
		s.settle(completes(s.claimOne()))
		same(s, "events", eventNames(s.feed(0)), []string{"queued", "complete"})
	}},
	{"a listener for expired jobs gets only these, and other failures are failures", func(s *scene) {
		s.listen("expired")
		s.enqueue(expiresIn(time.Minute))
		s.Advance(time.Minute)
		s.settle(fails(s.expire()[0], "JOB_EXPIRED"))
		same(s, "events", eventNames(s.feed(0)), []string{"expired"})
		s.listen("failed")
		s.enqueue(expiresIn(time.Minute))
		s.Advance(time.Minute)
		s.settle(fails(s.expire()[0], "JOB_EXPIRED"))
		s.fail()
		same(s, "events", eventNames(s.feed(1)), []string{"expired", "failed"})
	}},
	{"the feed has committed events and no others", func(s *scene) {
		s.listen("*")
		for _, commit := range []bool{false, true} {
			tx, end := s.Begin()
			_, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{draft(), draft()})
			s.must(err)
			s.must(end(commit))
		}
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), {Kind: "two words"}})
		s.expectError(err, holdfast.ErrInvalid)
		s.enqueue(unique("k"))
		s.enqueue(unique("k"))
		same(s, "events", eventNames(s.feed(0)), []string{"queued", "queued", "queued"})
	}},
	{"a refused settlement writes no event", func(s *scene) {
		s.listen("*")
		lease := s.start()
		s.settle(completes(lease))
		s.trySettle(completes(lease), fails(lease, "BROKEN"), ends(lease, "nowhere"))
		same(s, "events", eventNames(s.feed(0)), []string{"queued", "processing", "complete"})
	}},
	{"a call of two thousand jobs writes an event for each", func(s *scene) {
		s.listen("*")
		s.enqueueMany(2000)
		s.run()
		counts := map[string]int{}
		for _, e := range s.readBy(500) {
			counts[e.Name]++
			counts[e.Job.String()]++
		}
		same(s, "events", []int{counts["queued"], counts["processing"], counts["complete"]}, []int{2000, 2000, 2000})
		for id, n := range counts {
			if len(id) > 20 && n != 3 {
				s.Fatalf("job %s has %d events", id, n)
			}
		}
	}},
}

// runThroughStates takes a job through all transitions.
func (s *scene) runThroughStates() holdfast.ID {
	s.Helper()
	lease := s.start()
	s.settle(retries(lease, 0))
	s.settle(releases(s.claimOne(), store.ChargeRelease, 0))
	s.claimOne()
	s.Advance(longAgo)
	s.settle(releases(s.reclaim()[0], store.ChargeCrash, 0))
	s.settle(fails(s.claimOne(), "BROKEN"))
	s.retry(lease.ID)
	s.settle(completes(s.claimOne()))
	return lease.ID
}

func eventNames(events []store.Event) (names []string) {
	for _, e := range events {
		names = append(names, e.Name)
	}
	return names
}

// readBy numbers and reads everything, limit events at a time.
func (s *scene) readBy(limit int) []store.Event {
	s.Helper()
	s.must(sequenceOn(s, s.Store))
	return read(s, s.Store, 0, limit)
}

// fieldsOfEvents checks each field of each sort of event.
func fieldsOfEvents(s *scene) {
	group := s.gather()
	s.listen("*")
	begun := s.job(s.enqueue(at(time.Hour))).AsOf
	id := s.enqueue(in(group), owned("acme"), func(d *holdfast.Draft) { d.Kind = "pdf" })
	lease := s.claimOne()
	s.Advance(time.Second)
	e := retries(lease, time.Minute)
	e.Took, e.Failure.Context = time.Second, map[string]string{"http_status": "503"}
	s.settle(e)
	s.Advance(time.Minute)
	s.promote(10)
	lease = s.claimOne()
	s.Advance(2 * time.Second)
	bad := fails(lease, "BROKEN")
	bad.Took = 2 * time.Second
	s.settle(bad)
	again := by(id)
	again.Request = "req-7"
	_, err := s.Store.Retry(s.ctx, again)
	s.must(err)
	lease = s.claimOne()
	s.Advance(3 * time.Second)
	good := completes(lease)
	good.Took = 3 * time.Second
	s.settle(good)
	var told []store.Event
	for _, e := range s.feed(0) {
		if e.Job == id {
			e.Seq = 0
			told = append(told, e)
		}
	}
	same(s, "events", eventNames(told), []string{"queued", "processing", "retry", "processing", "failed", "manual retry", "processing", "complete"})
	base := store.Event{Job: id, Kind: "pdf", Queue: "default", Owner: "acme", Group: group, Generation: 1}
	of := func(name string, at time.Duration, token int, change func(*store.Event)) store.Event {
		e := base
		e.Name, e.At, e.Token = name, begun.Add(at), token
		change(&e)
		return e
	}
	nothing := func(*store.Event) {}
	same(s, "events", told, []store.Event{
		of("queued", 0, 0, nothing),
		of("processing", 0, 1, nothing),
		of("retry", time.Second, 1, func(e *store.Event) {
			e.Attempt, e.Took, e.DueAt = 1, time.Second, begun.Add(time.Second+time.Minute)
			e.Code, e.Message, e.Context = "FLAKY", "it broke", map[string]string{"http_status": "503"}
		}),
		of("processing", time.Second+time.Minute, 2, nothing),
		of("failed", 3*time.Second+time.Minute, 2, func(e *store.Event) {
			e.Attempt, e.Took, e.Code, e.Message = 2, 2*time.Second, "BROKEN", "it broke"
		}),
		of("manual retry", 3*time.Second+time.Minute, 2, func(e *store.Event) {
			e.Actor, e.Reason, e.Request, e.Generation = "ada", "because", "req-7", 2
		}),
		of("processing", 3*time.Second+time.Minute, 3, func(e *store.Event) { e.Generation = told[6].Generation }),
		of("complete", 6*time.Second+time.Minute, 3, func(e *store.Event) {
			e.Took, e.Generation, e.Attempt = 3*time.Second, 2, told[7].Attempt
		}),
	})
}

// How the feed is read and deleted.
var readerLaws = []law{
	{"the numbers are consecutive, and the same for every reader whenever it reads", func(s *scene) {
		s.listen("*")
		for range 5 {
			s.runThroughStates()
			s.feed(0)
		}
		first := s.feed(0)
		other := s.Reopen()
		for _, limit := range []int{1, 3, 1000} {
			same(s, fmt.Sprint("events read by another, by ", limit), read(s, other, 0, limit), first)
		}
		for from := range first {
			same(s, fmt.Sprint("read on after ", from), read(s, other, int64(from), 50), first[from:])
		}
	}},
	{"a reader at the end of the feed is told so, and gets new events later", func(s *scene) {
		s.listen("*")
		empty, err := s.Store.Feed(s.ctx, 0, 10)
		s.must(err)
		same(s, "empty", empty, store.Feed{})
		s.enqueueMany(3)
		s.feed(0)
		f, err := s.Store.Feed(s.ctx, 1, 1)
		s.must(err)
		same(s, "one of two", []any{len(f.Events), f.Next, f.Head}, []any{1, int64(2), int64(3)})
		f, err = s.Store.Feed(s.ctx, 3, 10)
		s.must(err)
		same(s, "the end", []any{len(f.Events), f.Next, f.Head}, []any{0, int64(3), int64(3)})
		s.enqueue()
		same(s, "new", eventNames(s.feed(3)), []string{"queued"})
	}},
	{"a number beyond the end belongs to another store, and is refused", func(s *scene) {
		s.listen("*")
		s.enqueueMany(3)
		s.feed(0)
		_, err := s.Store.Feed(s.ctx, 4, 10)
		s.expectError(err, holdfast.ErrInvalid)
	}},
	{"actions of people, and events of groups and breakers, are in the feed with actor, reason and request, without a listener", func(s *scene) {
		lease := s.fail(owned("acme"))
		i := by(lease.ID)
		i.Request = "req-9"
		s.must(s.Store.Discard(s.ctx, i))
		s.keep(store.Change{Events: []store.Event{{Subject: "breaker/gateway", Name: "opened", Actor: "bob", Reason: "5 of 10", Request: "req-10"}}})
		group, _ := s.sealedGroup(0, func(g *holdfast.Group) { g.Owner = "zeta" })
		s.advanceGroups()
		told := s.feed(0)
		now := told[0].At
		told[2].Reason = ""
		same(s, "events", told, []store.Event{
			{Seq: 1, Job: lease.ID, At: now, Name: "discard", Actor: "ada", Reason: "because", Request: "req-9", Token: 1, Generation: 1, Kind: "mail", Queue: "default", Owner: "acme"},
			{Seq: 2, Subject: "breaker/gateway", At: now, Name: "opened", Actor: "bob", Reason: "5 of 10", Request: "req-10"},
			{Seq: 3, Subject: "group/" + group.String(), Group: group, Owner: "zeta", At: now, Name: "ready", Actor: "holdfast", Generation: 1},
		})
		same(s, "request in the story", s.history(lease.ID).Events[0].Request, "req-9")
	}},
	{"a reader whose events were deleted is told how many it missed", func(s *scene) {
		s.listen("*")
		for range 4 {
			s.enqueueMany(3)
			s.feed(0)
			s.Advance(time.Hour)
		}
		s.advanceGroups()
		n, err := s.Store.DeleteHistory(s.ctx, store.HistoryFeed, 150*time.Minute, 1000)
		s.must(err)
		if n == 0 {
			s.Fatal("nothing was forgotten")
		}
		f, err := s.Store.Feed(s.ctx, 1, 100)
		s.must(err)
		same(s, "feed", []any{f.Missed, f.Purged, len(f.Events), f.Events[0].Seq, f.Next, f.Head}, []any{int64(5), int64(6), 6, int64(7), int64(12), int64(12)})
		f, err = s.Store.Feed(s.ctx, 6, 100)
		s.must(err)
		same(s, "a reader that has seen them all", []any{f.Missed, len(f.Events)}, []any{int64(0), 6})
	}},
	{"a reader misses no event while others write", func(s *scene) {
		s.listen("queued")
		stores := s.handles()
		var written atomic.Bool
		var told []store.Event
		together(5, func(i int) {
			if i > 0 {
				s.writeMany(stores[i%3])
				if i == 4 {
					written.Store(true)
				}
				return
			}
			for rounds := 0; !written.Load() && rounds < 10000; rounds++ {
				told = append(told, s.readSome(stores[1], int64(len(told)))...)
			}
		})
		s.must(sequenceOn(s, s.Store))
		told = append(told, read(s, s.Store, int64(len(told)), 100)...)
		seen := map[holdfast.ID]bool{}
		for i, e := range told {
			if seen[e.Job] || e.Seq != int64(i+1) {
				s.Fatalf("event %d is at position %d, or twice", e.Seq, i+1)
			}
			seen[e.Job] = true
		}
		same(s, "events", len(seen), 4*30*3)
	}},
}

// writeMany enqueues three jobs at a time.
func (s *scene) writeMany(db store.Store) {
	for range 30 {
		if _, err := db.Enqueue(s.ctx, []holdfast.Draft{draft(), draft(), draft()}); err != nil {
			s.Errorf("enqueue: %v", err)
		}
	}
}

// readSome numbers events and reads a few new ones.
func (s *scene) readSome(db store.Store, after int64) []store.Event {
	if _, err := db.Sequence(s.ctx, 10); err != nil {
		s.Errorf("sequence: %v", err)
	}
	f, err := db.Feed(s.ctx, after, 10)
	if err != nil {
		s.Errorf("feed: %v", err)
	}
	return f.Events
}
