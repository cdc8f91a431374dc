package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func (s *scene) keep(c store.Change) {
	s.Helper()
	s.must(s.Store.Apply(s.ctx, c))
}

func (s *scene) records(namespace string) []store.Record {
	s.Helper()
	records, err := s.Store.Records(s.ctx, namespace)
	s.must(err)
	return records
}

func (s *scene) events(subject string) []store.Event {
	s.Helper()
	events, err := s.Store.Events(s.ctx, subject, 200)
	s.must(err)
	return events
}

func breakerRecord(version int, body string) store.Record {
	r := store.Record{Namespace: "breaker", Name: "gateway", Version: version}
	if body != "" {
		r.Body = raw(body)
	}
	return r
}

func kept(records ...store.Record) store.Change { return store.Change{Records: records} }

var recordLaws = []law{
	{"a record is stored exactly, by namespace and name, and its version grows by one", func(s *scene) {
		now := s.job(s.enqueue()).AsOf
		s.keep(kept(breakerRecord(0, `{"b": 1.0,  "a": null}`), store.Record{Namespace: "breaker", Name: "a", Body: raw(`1`)}, store.Record{Namespace: "budget", Name: "gateway", Body: raw(`2`)}))
		s.Advance(time.Second)
		s.keep(kept(store.Record{Namespace: "breaker", Name: "a", Version: 1, Body: raw(`3`)}))
		s.Advance(time.Second)
		same(s, "records", s.records("breaker"), []store.Record{
			{Namespace: "breaker", Name: "a", Version: 2, Body: raw(`3`), KeptAt: now.Add(time.Second), AsOf: now.Add(2 * time.Second)},
			{Namespace: "breaker", Name: "gateway", Version: 1, Body: raw(`{"b": 1.0,  "a": null}`), KeptAt: now, AsOf: now.Add(2 * time.Second)},
		})
		same(s, "of no namespace", len(s.records("nowhere")), 0)
	}},
	{"a record that has changed is a conflict that names it, and nothing of the change is applied", func(s *scene) {
		s.keep(kept(breakerRecord(0, `1`)))
		s.keep(kept(breakerRecord(1, `2`)))
		id := s.enqueue()
		for _, version := range []int{0, 1, 3} {
			err := s.Store.Apply(s.ctx, store.Change{
				Records: []store.Record{{Namespace: "breaker", Name: "another", Body: raw(`1`)}, breakerRecord(version, `9`)},
				Place:   []store.Hold{{Queue: "default", Actor: "holdfast"}},
				Events:  []store.Event{{Subject: "breaker/gateway", Name: "opened", Actor: "holdfast"}, {Job: id, Name: "noted", Actor: "holdfast"}},
			})
			s.expectError(err, holdfast.ErrConflict)
			if !strings.Contains(err.Error(), "gateway") {
				s.Fatalf("the conflict does not name the record: %v", err)
			}
		}
		records := s.records("breaker")
		same(s, "records", []any{len(records), records[0].Version, string(records[0].Body)}, []any{1, 2, `2`})
		same(s, "holds and events", []int{len(s.holds()), len(s.events("breaker/gateway")), len(s.history(id).Events)}, []int{0, 0, 0})
	}},
	{"a record is deleted only with its current version, and starts again at version 1", func(s *scene) {
		s.keep(kept(breakerRecord(0, `1`)))
		s.expectError(s.Store.Apply(s.ctx, kept(breakerRecord(7, ""))), holdfast.ErrConflict)
		s.keep(kept(breakerRecord(1, "")))
		same(s, "records", len(s.records("breaker")), 0)
		s.expectError(s.Store.Apply(s.ctx, kept(breakerRecord(1, `2`))), holdfast.ErrConflict)
		s.keep(kept(breakerRecord(0, `2`)))
		same(s, "version", s.records("breaker")[0].Version, 1)
	}},
	{"a change applies all its parts: records, holds placed and lifted, deposits, events", func(s *scene) {
		id := s.enqueue()
		s.settle(releases(s.claimOne(), store.ChargeRelease, time.Hour))
		s.pause(store.Hold{Kind: "pdf", Source: store.SourceBreaker})
		s.pause(rateHold(0, 5, 1))
		expected := s.job(id).AsOf.Add(time.Hour)
		s.keep(store.Change{
			Records:  []store.Record{breakerRecord(0, `1`)},
			Place:    []store.Hold{{Dependency: "gateway", Source: store.SourceBreaker, Actor: "holdfast", Reason: "it is down", Expected: expected}},
			Lift:     []store.Hold{{Kind: "pdf", Source: store.SourceBreaker}, {Kind: "never-there"}},
			Deposits: []store.Deposit{{Hold: store.Hold{Queue: "default"}, Tokens: 2}},
			Events: []store.Event{
				{Subject: "breaker/gateway", Name: "opened", Actor: "holdfast", Reason: "5 of 10 calls failed"}, {Job: id, Name: "noted", Actor: "holdfast"},
			},
		})
		now := s.job(id).AsOf
		for _, h := range s.holds() {
			switch scope, _ := h.Scope(); scope {
			case "dependency":
				same(s, "hold", h, store.Hold{Dependency: "gateway", Source: store.SourceBreaker, Actor: "holdfast", Reason: "it is down", Expected: expected, Since: now})
			case "queue":
				same(s, "level", h.Rate.Level, 3.0)
			default:
				s.Fatalf("a hold that was lifted: %+v", h)
			}
		}
		same(s, "story", s.events("breaker/gateway"), []store.Event{{Subject: "breaker/gateway", At: now, Name: "opened", Actor: "holdfast", Reason: "5 of 10 calls failed"}})
		same(s, "story of the job", s.history(id).Events, []store.Event{{Job: id, At: now, Name: "noted", Actor: "holdfast", Token: 1, Generation: 1}})
		same(s, "events of the hold: the caller records them", len(s.events("hold/dependency/gateway")), 0)
	}},
	{"a hold placed by a change replaces the one of its source, and applies to claims of every handle", func(s *scene) {
		s.enqueueMany(2)
		other := s.Reopen()
		s.must(other.Apply(s.ctx, store.Change{Place: []store.Hold{{Queue: "default", Actor: "holdfast"}}}))
		s.expectClaims(0)
		s.must(other.Apply(s.ctx, store.Change{Place: []store.Hold{{Queue: "default", Actor: "holdfast", AtMost: 1}}}))
		same(s, "holds", len(s.holds()), 1)
		s.expectClaims(1, 0)
		s.must(other.Apply(s.ctx, store.Change{Lift: []store.Hold{{Queue: "default"}}}))
		s.expectClaims(1)
	}},
	{"an empty change changes nothing", func(s *scene) { s.keep(store.Change{}) }},
	{"concurrent updates of one record lose nothing", func(s *scene) {
		s.keep(kept(breakerRecord(0, `0`)))
		stores := s.handles()
		together(2, func(i int) {
			for range 200 {
				if err := increment(s, stores[i+1]); err != nil {
					s.Errorf("keep: %v", err)
					return
				}
			}
		})
		records := s.records("breaker")
		same(s, "record", []any{records[0].Version, string(records[0].Body)}, []any{401, `400`})
		opened, err := s.Store.Events(s.ctx, "breaker/gateway", 500)
		s.must(err)
		same(s, "what each announced", len(opened), 400)
	}},
	{"of sixteen concurrent changes with the same decision one is recorded", func(s *scene) {
		stores, won := s.handles(), &lockedCounts{}
		together(16, func(i int) {
			err := stores[i%3].Apply(s.ctx, store.Change{Records: []store.Record{breakerRecord(0, `"open"`)},
				Place:  []store.Hold{{Dependency: "gateway", Source: store.SourceBreaker, Actor: "holdfast"}},
				Events: []store.Event{{Subject: "breaker/gateway", Name: "opened", Actor: "holdfast"}}})
			if err == nil {
				won.add("won")
			} else if !errors.Is(err, holdfast.ErrConflict) {
				s.Errorf("keep: %v", err)
			}
		})
		same(s, "winners, events, holds", []int{won.n["won"], len(s.events("breaker/gateway")), len(s.holds())}, []int{1, 1, 1})
	}},
}

// increment reads a record and stores it incremented by one, until there is no conflict.
func increment(s *scene, db store.Store) error {
	for {
		records, err := db.Records(s.ctx, "breaker")
		if err != nil {
			return err
		}
		r := records[0]
		var n int
		if err := json.Unmarshal(r.Body, &n); err != nil {
			return err
		}
		r.Body, _ = json.Marshal(n + 1)
		err = db.Apply(s.ctx, store.Change{Records: []store.Record{r}, Events: []store.Event{{Subject: "breaker/gateway", Name: "counted", Actor: "holdfast"}}})
		if !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
}
