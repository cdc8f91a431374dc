package storetest

import (
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Jobs that are enqueued by a change.
var changeLaws = []law{
	{"jobs of a change are stored together with its records, or not at all", func(s *scene) {
		s.keep(store.Change{Records: []store.Record{breakerRecord(0, `1`)}, Enqueue: []holdfast.Draft{draft(), {Kind: "pdf", Queue: "slow", Delay: 1}}})
		s.expectJobs(2)
		err := s.Store.Apply(s.ctx, store.Change{Records: []store.Record{breakerRecord(0, `2`)}, Enqueue: []holdfast.Draft{draft()}})
		s.expectError(err, holdfast.ErrConflict)
		s.expectJobs(2)
		err = s.Store.Apply(s.ctx, store.Change{Records: []store.Record{breakerRecord(1, `2`)}, Enqueue: []holdfast.Draft{draft(), {Kind: "two words"}}})
		s.expectError(err, holdfast.ErrInvalid)
		s.expectJobs(2)
		same(s, "record", s.records("breaker")[0].Version, 1)
		same(s, "claimed", len(s.claim(10)), 1)
	}},
	{"a job of a change whose idempotency key was used before is left out, even if the draft differs, and the rest is applied", func(s *scene) {
		once := holdfast.Draft{Kind: "mail", IdempotencyKey: "schedule/nightly/2031-05-17T00:00:00Z"}
		s.keep(store.Change{Enqueue: []holdfast.Draft{once}})
		other := once
		other.Kind, other.Args = "pdf", raw(`{"n":2}`)
		s.keep(store.Change{Records: []store.Record{breakerRecord(0, `1`)}, Enqueue: []holdfast.Draft{once, draft(), other}})
		jobs := s.jobs(store.Filter{})
		same(s, "jobs, and their kinds", []any{len(jobs), jobs[0].Kind, jobs[1].Kind, len(s.records("breaker"))}, []any{2, "mail", "mail", 1})
		for _, l := range s.claim(10) {
			s.settle(completes(l))
		}
		s.keep(store.Change{Enqueue: []holdfast.Draft{once}})
		s.expectJobs(2)
	}},
	{"two jobs of one change with the same idempotency key become one", func(s *scene) {
		once := holdfast.Draft{Kind: "mail", IdempotencyKey: "k"}
		s.keep(store.Change{Enqueue: []holdfast.Draft{once, once}})
		s.expectJobs(1)
	}},
	{"a job of a change whose unique key is held is left out", func(s *scene) {
		existing := s.enqueue(unique("k"))
		s.keep(store.Change{Enqueue: []holdfast.Draft{{Kind: "mail", UniqueKey: "k"}, {Kind: "pdf"}}})
		s.expectJobs(2)
		s.expectState(existing, holdfast.Queued)
	}},
	{"sixteen processes that enqueue for one slot create one job, and none is refused", func(s *scene) {
		stores := s.handles()
		together(16, func(i int) {
			err := stores[i%3].Apply(s.ctx, store.Change{Enqueue: []holdfast.Draft{{Kind: "mail", IdempotencyKey: "schedule/x/1"}}})
			if err != nil {
				s.Errorf("keep: %v", err)
			}
		})
		s.expectJobs(1)
	}},
	{"sixteen processes that update one record together with the job of its slot create one job", func(s *scene) {
		stores, won := s.handles(), &lockedCounts{}
		together(16, func(i int) {
			err := stores[i%3].Apply(s.ctx, store.Change{Records: []store.Record{breakerRecord(0, `1`)}, Enqueue: []holdfast.Draft{{Kind: "mail"}}})
			if err == nil {
				won.add("won")
			} else if !errors.Is(err, holdfast.ErrConflict) {
				s.Errorf("keep: %v", err)
			}
		})
		same(s, "winners", won.n["won"], 1)
		s.expectJobs(1)
	}},
	{"all jobs of a large change are stored, and waiting workers are woken", func(s *scene) {
		kept := 0 // repeated if another wake-up came first
		s.expectWork("a change enqueues", func() { s.keep(store.Change{Enqueue: []holdfast.Draft{draft()}}); kept++ })
		drafts := make([]holdfast.Draft, 500)
		for i := range drafts {
			drafts[i] = draft()
		}
		s.keep(store.Change{Enqueue: drafts})
		same(s, "claimed", len(s.claim(1000)), 500+kept)
	}},
}
