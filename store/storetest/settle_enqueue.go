package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// enqueues is a settlement that completes a job and enqueues others.
func enqueues(l store.Lease, drafts ...holdfast.Draft) store.Settlement {
	e := completes(l)
	e.Enqueue = drafts
	return e
}

// completionPaths are the ways to complete a job: by Settle, and in a transaction of the caller that commits.
func (s *scene) completionPaths() map[string]func(store.Settlement) error {
	return map[string]func(store.Settlement) error{
		"settle": func(e store.Settlement) error { return s.trySettle(e)[0] },
		"in a transaction": func(e store.Settlement) error {
			tx, end := s.Begin()
			answers, err := s.In(tx).Complete(s.ctx, []store.Settlement{e})
			s.must(err)
			s.must(end(true))
			return answers[0]
		},
	}
}

var settleEnqueueLaws = []law{
	{"a job enqueues others when it completes, on each way to complete it", func(s *scene) {
		for way, complete := range s.completionPaths() {
			lease := s.start()
			next := holdfast.NewID()
			s.must(complete(enqueues(lease, holdfast.Draft{ID: next, Kind: "mail", Args: json.RawMessage(`{"a":1.50}`)}, holdfast.Draft{Kind: "pdf", Delay: time.Hour, Owner: "acme"})))
			s.expectState(lease.ID, holdfast.Complete)
			same(s, way, string(s.expectState(next, holdfast.Queued).Args), `{"a":1.50}`)
			same(s, way, s.claimOne().ID, next)
			same(s, "of the owner", len(s.jobs(store.Filter{Owner: "acme"})) > 0, true)
			s.Advance(0)
		}
	}},
	{"a settlement that is repeated enqueues its jobs once, and so does one that is repeated with other ids", func(s *scene) {
		for way, complete := range s.completionPaths() {
			lease := s.start()
			before := len(s.jobs(store.Filter{Kind: "next"}))
			e := enqueues(lease, holdfast.Draft{Kind: "next", Queue: "next"})
			for range 3 {
				s.must(complete(e))
			}
			s.must(s.trySettle(e, e)[1])
			same(s, way, len(s.jobs(store.Filter{Kind: "next"}))-before, 1)
		}
	}},
	{"without the lease nothing is enqueued", func(s *scene) {
		for way, complete := range s.completionPaths() {
			lease := s.start()
			s.Advance(shortLease + time.Second)
			again := s.reclaim()[0]
			s.expectError(complete(enqueues(lease, holdfast.Draft{Kind: "next", Queue: "next"})), holdfast.ErrLeaseLost)
			same(s, way, len(s.jobs(store.Filter{Kind: "next"})), 0)
			s.settle(completes(again))
		}
	}},
	{"a cancellation that is pending drops the jobs that the settlement enqueues", func(s *scene) {
		for way, complete := range s.completionPaths() {
			lease := s.start()
			s.cancel(lease.ID)
			s.must(complete(enqueues(lease, holdfast.Draft{Kind: "next", Queue: "next"})))
			s.expectState(lease.ID, holdfast.Cancelled)
			same(s, way, len(s.jobs(store.Filter{Kind: "next"})), 0)
		}
	}},
	{"a transaction of the caller that rolls back enqueues nothing", func(s *scene) {
		lease := s.start()
		tx, end := s.Begin()
		answers, err := s.In(tx).Complete(s.ctx, []store.Settlement{enqueues(lease, holdfast.Draft{Kind: "next", Queue: "next"})})
		s.must(errors.Join(err, answers[0]))
		s.must(end(false))
		s.expectState(lease.ID, holdfast.Processing)
		same(s, "enqueued", len(s.jobs(store.Filter{Kind: "next"})), 0)
		s.settle(enqueues(lease, holdfast.Draft{Kind: "next", Queue: "next"}))
		same(s, "enqueued", len(s.jobs(store.Filter{Kind: "next"})), 1)
	}},
	{"if one of the jobs is refused, its settlement is refused, the lease is held, and other settlements are applied", func(s *scene) {
		open, sealed := s.gather(), s.gather()
		s.seal(sealed)
		taken, member := s.enqueue(at(time.Hour)), s.enqueue(in(open), at(time.Hour))
		for name, draft := range map[string]holdfast.Draft{
			"id taken": {ID: taken, Kind: "next"}, "sealed group": {Kind: "next", Group: sealed}, "no group": {Kind: "next", Group: holdfast.NewID()},
			"not a member": {Kind: "next", Group: open, After: []holdfast.ID{taken}}, "no step": {Kind: "next", Group: open, When: []holdfast.Condition{{Step: "nowhere"}}},
		} {
			for way, complete := range s.completionPaths() {
				lease := s.start()
				err := complete(enqueues(lease, holdfast.Draft{Kind: "lane-" + lease.ID.String(), UniqueKey: lease.ID.String()}, draft))
				if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "was not completed, because a job that it enqueues was refused") {
					s.Fatalf("%s, %s: got %v, want that the draft was refused", name, way, err)
				}
				s.expectState(lease.ID, holdfast.Processing)
				other := s.start()
				answers := s.trySettle(completes(other), enqueues(lease, draft))
				if answers[0] != nil || !errors.Is(answers[1], holdfast.ErrInvalid) {
					s.Fatalf("%s: %v", name, answers)
				}
				s.expectState(other.ID, holdfast.Complete)
				s.settle(enqueues(lease, holdfast.Draft{Kind: "lane-" + lease.ID.String(), UniqueKey: lease.ID.String(), Delay: time.Hour}))
			}
		}
		same(s, "enqueued", len(s.jobs(store.Filter{Kind: "next"})), 0)
		s.expectState(member, holdfast.Queued)
	}},
	{"a settlement with drafts that make no sense is refused", func(s *scene) {
		lease := s.start()
		failed := fails(lease, "BROKEN")
		failed.Enqueue = []holdfast.Draft{{Kind: "next"}}
		confirm := enqueues(lease, holdfast.Draft{Kind: "next"})
		confirm.Confirm = true
		many := enqueues(lease, make([]holdfast.Draft, 1001)...)
		for i := range many.Enqueue {
			many.Enqueue[i].Kind = "next"
		}
		large := enqueues(lease)
		for range 9 {
			large.Enqueue = append(large.Enqueue, holdfast.Draft{Kind: "next", Args: json.RawMessage(`"` + strings.Repeat("x", 1<<20-2) + `"`)})
		}
		for _, e := range []store.Settlement{failed, confirm, many, large, enqueues(lease, holdfast.Draft{Kind: "no name"})} {
			s.expectError(s.trySettle(e)[0], holdfast.ErrInvalid)
		}
		s.expectState(lease.ID, holdfast.Processing)
		same(s, "enqueued", len(s.jobs(store.Filter{Kind: "next"})), 0)
	}},
	{"a job enqueues its successor under its own unique key", func(s *scene) {
		for way, complete := range s.completionPaths() {
			lease := s.start(unique("the-one"))
			next := holdfast.NewID()
			s.must(complete(enqueues(lease, holdfast.Draft{ID: next, Kind: "mail", UniqueKey: "the-one"})))
			second := s.claimOne()
			same(s, way, second.ID, next)
			s.settle(completes(second))
		}
	}},
	{"a member adds members to its sealed group, which does not settle before they have ended", func(s *scene) {
		for way, complete := range s.completionPaths() {
			group := s.gather()
			first := s.start(in(group), stepNamed("first"))
			s.seal(group)
			s.advanceGroups()
			second := holdfast.NewID()
			s.must(complete(enqueues(first, holdfast.Draft{ID: second, Kind: "mail", Group: group, Step: "second"},
				holdfast.Draft{Kind: "mail", Group: group, When: []holdfast.Condition{{Step: "second"}, {Step: "first"}}})))
			s.advanceGroups()
			same(s, way, s.expectGroup(group, holdfast.GroupProcessing, 1).Members, holdfast.Members{Total: 3, Waiting: 1, Queued: 1, Complete: 1})
			lease := s.claimOne()
			same(s, "claimed", lease.ID, second)
			s.advanceGroups()
			s.settle(completes(lease))
			s.advanceGroups()
			s.expectGroup(group, holdfast.GroupProcessing, 1)
			s.run()
			s.expectGroup(group, holdfast.GroupReady, 1)
		}
	}},
	{"a member cannot add members to another sealed group, nor a job to a sealed group of which it is no member", func(s *scene) {
		mine, other := s.gather(), s.gather()
		s.enqueue(in(other), at(time.Hour))
		lease := s.start(in(mine))
		s.seal(mine)
		s.seal(other)
		s.expectError(s.trySettle(enqueues(lease, holdfast.Draft{Kind: "next", Group: other}))[0], holdfast.ErrInvalid)
		stranger := s.start()
		s.expectError(s.trySettle(enqueues(stranger, holdfast.Draft{Kind: "next", Group: mine}))[0], holdfast.ErrInvalid)
		s.settle(completes(lease), completes(stranger))
	}},
	{"a member that is added to a group that is being cancelled is cancelled with it", func(s *scene) {
		group := s.gather()
		lease := s.start(in(group))
		s.cancelGroup(group)
		next := holdfast.NewID()
		s.settle(enqueues(lease, holdfast.Draft{ID: next, Kind: "mail", Group: group}))
		s.advanceGroups()
		s.expectState(next, holdfast.Cancelled)
		s.expectGroup(group, holdfast.GroupCancelled, 1)
	}},
	{"members that add members one after the other, while groups are advanced all the time, end in one settlement of the group", func(s *scene) {
		group := s.gather()
		s.enqueueMany(4, in(group))
		s.seal(group)
		for round := range 6 {
			leases := s.claim(10)
			for _, l := range leases {
				e := completes(l)
				if round < 5 {
					e.Enqueue = []holdfast.Draft{{Kind: "mail", Group: group}}
				}
				s.advanceGroups()
				s.settle(e)
			}
		}
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupReady, 1).Members, holdfast.Members{Total: 24, Complete: 24})
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "ready", 1}})
	}},
}
