package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The chain that seals the lines of stories to each other.
var chainLaws = []law{
	{"lines of stories are sealed, by many at once too, and the audit finds nothing wrong with them", func(s *scene) {
		stores := s.handles()
		for range 3 {
			dead := s.failAll(8)
			together(8, func(i int) {
				if _, err := stores[i%3].Retry(s.ctx, by(dead[i])); err != nil {
					s.Errorf("retry: %v", err)
				}
				if _, err := stores[(i+1)%3].Sequence(s.ctx, 3); err != nil {
					s.Errorf("sequence: %v", err)
				}
			})
			s.run()
			s.expectHealthy()
		}
	}},
	{"a line that was changed by hand is found", func(s *scene) {
		for column, value := range map[string]string{"event.actor": "mallory", "event.reason": "nothing to see here", "event.request": "req-0", "event.name": "manual retry", "event.generation": "9"} {
			s.Wipe()
			jobs := s.sealed()
			s.expectHealthy()
			if !s.corrupt(column, jobs[1], value) {
				s.Fatalf("the database refused to change %s: choose another", column)
			}
			s.expectTampered(column)
		}
	}},
	{"a line that was removed by hand is found, wherever it was", func(s *scene) {
		for i := range 3 {
			s.Wipe()
			jobs := s.sealed()
			if !s.corrupt("event", jobs[i], "") {
				s.Fatal("the row could not be removed")
			}
			s.expectTampered("a removed line")
		}
	}},
	{"the oldest lines are forgotten by age, and the chain holds from there on", func(s *scene) {
		old := s.sealed()
		s.Advance(time.Hour)
		young := s.sealed()
		n, err := s.Store.Forget(s.ctx, holdfast.ShelfStory, 30*time.Minute, 2)
		s.must(err)
		same(s, "forgotten", n, 2)
		s.expectHealthy()
		n, err = s.Store.Forget(s.ctx, holdfast.ShelfStory, 30*time.Minute, 100)
		s.must(err)
		same(s, "forgotten", n, 1)
		same(s, "events", []int{len(s.history(old[0]).Events), len(s.history(young[0]).Events)}, []int{0, 1})
		s.expectHealthy()
		told := s.feed(0)
		same(s, "told", eventNames(told), []string{"forgotten", "forgotten", "forgotten", "discard", "discard", "discard"})
		if !s.corrupt("event.actor", young[1], "mallory") {
			s.Fatal("the row could not be changed")
		}
		s.expectTampered("a line after the forgotten ones")
	}},
	{"a line that is not sealed yet is not forgotten", func(s *scene) {
		lease := s.fail()
		s.must(s.Store.Discard(s.ctx, by(lease.ID)))
		s.Advance(time.Hour)
		n, err := s.Store.Forget(s.ctx, holdfast.ShelfStory, time.Minute, 100)
		s.must(err)
		same(s, "forgotten", []int{n, len(s.history(lease.ID).Events)}, []int{0, 1})
	}},
}

// sealed makes three jobs with a line each, sealed.
func (s *scene) sealed() []holdfast.ID {
	s.Helper()
	dead := s.failAll(3)
	for _, id := range dead {
		s.must(s.Store.Discard(s.ctx, by(id)))
	}
	s.must(sequenceOn(s, s.Store))
	return dead
}

// expectTampered insists that the audit finds the chain broken.
func (s *scene) expectTampered(what string) {
	s.Helper()
	findings, err := s.Store.Audit(s.ctx)
	s.must(err)
	for _, f := range findings {
		if strings.Contains(f.Rule+f.Detail, "chain") || strings.Contains(f.Rule+f.Detail, "tamper") {
			return
		}
	}
	s.Fatalf("%s: the audit does not say that the chain is broken: %+v", what, findings)
}
