package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The hash chain of events.
var chainLaws = []law{
	{"events are sealed, also by concurrent processes, and the integrity check passes", func(s *scene) {
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
	{"the integrity check finds an event that was changed in the database", func(s *scene) {
		for column, value := range map[string]string{"event.actor": "mallory", "event.reason": "nothing to see here", "event.request": "req-0", "event.name": "manual retry", "event.generation": "9"} {
			s.Wipe()
			jobs := s.sealEvents()
			s.expectHealthy()
			if !s.corrupt(column, jobs[1], value) {
				s.Fatalf("the database refused to change %s: choose another", column)
			}
			s.expectTampered(column)
		}
	}},
	{"the integrity check finds a deleted event, wherever it was", func(s *scene) {
		for i := range 3 {
			s.Wipe()
			jobs := s.sealEvents()
			if !s.corrupt("event", jobs[i], "") {
				s.Fatal("the row could not be removed")
			}
			s.expectTampered("a removed line")
		}
	}},
	{"the oldest events are deleted by age, and the chain is valid from there on", func(s *scene) {
		old := s.sealEvents()
		s.Advance(25 * time.Hour)
		young := s.sealEvents()
		s.deleteHistory(store.HistoryStories, day, 2, 2)
		s.expectHealthy()
		s.deleteHistory(store.HistoryStories, day, 100, 0) // too few events, too soon after the last mark
		s.Advance(time.Hour)
		s.deleteHistory(store.HistoryStories, day+time.Hour, 100, 1)
		same(s, "events", []int{len(s.history(old[0]).Events), len(s.history(young[0]).Events)}, []int{0, 1})
		s.expectHealthy()
		told := s.feed(0)
		same(s, "events", eventNames(told), []string{"forgotten", "forgotten", "forgotten", "discard", "discard", "discard", "shortened", "shortened"})
		s.must(sequenceOn(s, s.Store))
		s.expectHealthy()
		if !s.corrupt("event.actor", young[1], "mallory") {
			s.Fatal("the row could not be changed")
		}
		s.expectTampered("a line after the forgotten ones")
	}},
	{"a shortened audit log records how far in a mark, which is itself deleted later", func(s *scene) {
		for range 3 {
			s.sealEvents()
			s.Advance(25 * time.Hour)
			_, err := s.Store.DeleteHistory(s.ctx, store.HistoryStories, day, 1000)
			s.must(err)
			marks := s.events("audit")
			same(s, "marks", []any{len(marks), marks[0].Name, marks[0].Actor, strings.Contains(marks[0].Reason, " are forgotten, the newest of ")}, []any{1, "shortened", "holdfast", true})
			s.expectHealthy()
			s.must(sequenceOn(s, s.Store))
			s.expectHealthy()
		}
	}},
	{"events younger than a day are not deleted, whatever age the caller gives", func(s *scene) {
		_, err := s.Store.DeleteHistory(s.ctx, store.HistoryStories, day-time.Second, 100)
		s.expectError(err, holdfast.ErrInvalid)
	}},
	{"the integrity check finds an audit log that was wiped in the database, even if its ends were changed with it", func(s *scene) {
		key := store.Change{Records: []store.Record{{Namespace: "key", Name: "ada", Body: []byte("{}")}}, Events: []store.Event{{Subject: "key/ada", Name: "made", Actor: "ada"}}}
		for _, wipe := range []string{
			"DELETE FROM holdfast_event",
			"DELETE FROM holdfast_event; UPDATE holdfast_feed SET anchor = link, anchored = hash",
			"UPDATE holdfast_feed SET anchor = 2, anchored = (SELECT hash FROM holdfast_event WHERE link = 2); DELETE FROM holdfast_event WHERE link <= 2",
			"DELETE FROM holdfast_event; UPDATE holdfast_feed SET link = 0, hash = NULL, anchor = 0, anchored = NULL",
			"UPDATE holdfast_event SET reason = replace(reason, 'link 3', 'link 2') WHERE subject = 'audit'",
			"DELETE FROM holdfast_event WHERE subject = 'audit'",
			"INSERT INTO holdfast_event (subject, at, name, actor, reason, token, generation) SELECT subject, at, name, actor, replace(reason, 'link 3', 'link 4'), token, generation FROM holdfast_event WHERE subject = 'audit'",
		} {
			s.Wipe()
			s.must(s.Store.Apply(s.ctx, key))
			s.sealEvents()
			if strings.Contains(wipe, "'audit'") {
				s.Advance(25 * time.Hour)
				s.deleteHistory(store.HistoryStories, day, 3, 3)
			}
			s.expectHealthy()
			if !s.corrupt(SQL, holdfast.ID{}, wipe) {
				s.Fatal("the database refused: " + wipe)
			}
			s.expectWiped(wipe)
			s.must(sequenceOn(s, s.Store)) // later events do not hide it
			s.expectWiped(wipe)
		}
	}},
	{"an event that is not sealed yet is not deleted", func(s *scene) {
		lease := s.fail()
		s.must(s.Store.Discard(s.ctx, by(lease.ID)))
		s.Advance(25 * time.Hour)
		n, err := s.Store.DeleteHistory(s.ctx, store.HistoryStories, day, 100)
		s.must(err)
		same(s, "forgotten", []int{n, len(s.history(lease.ID).Events)}, []int{0, 1})
	}},
}

const day = 24 * time.Hour

// expectWiped expects that the integrity check finds deleted events.
func (s *scene) expectWiped(how string) {
	s.Helper()
	findings, err := s.Store.CheckIntegrity(s.ctx)
	s.must(err)
	for _, f := range findings {
		if strings.Contains(f.Rule, "chain of stories") || strings.Contains(f.Rule, "audit log") {
			return
		}
	}
	s.Fatalf("%s: the integrity check does not find the wiped log: %+v", how, findings)
}

// sealEvents makes three jobs with one event each, and seals the events.
func (s *scene) sealEvents() []holdfast.ID {
	s.Helper()
	dead := s.failAll(3)
	for _, id := range dead {
		s.must(s.Store.Discard(s.ctx, by(id)))
	}
	s.must(sequenceOn(s, s.Store))
	return dead
}

// expectTampered expects that the integrity check finds a broken chain.
func (s *scene) expectTampered(what string) {
	s.Helper()
	findings, err := s.Store.CheckIntegrity(s.ctx)
	s.must(err)
	for _, f := range findings {
		if strings.Contains(f.Rule+f.Detail, "chain") || strings.Contains(f.Rule+f.Detail, "tamper") {
			return
		}
	}
	s.Fatalf("%s: the integrity check does not report a broken chain: %+v", what, findings)
}
