package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const flaky = "print-FLAKY" // fingerprint of the failures of retries()

func (s *scene) errorGroup(fingerprint string) store.ErrorGroup {
	s.Helper()
	groups, _, err := s.Store.ErrorGroups(s.ctx, store.ErrorFilter{Fingerprint: fingerprint})
	s.must(err)
	if len(groups) != 1 {
		s.Fatalf("%d error groups have the fingerprint %s, want 1", len(groups), fingerprint)
	}
	return groups[0]
}

// failFlaky fails a job once with a version, and completes it.
func (s *scene) failFlaky(version string, change ...func(*holdfast.Draft)) {
	s.Helper()
	e := retries(s.start(change...), 24*time.Hour)
	e.Version = version
	s.settle(e)
}

func (s *scene) triage(t store.Triage) {
	s.Helper()
	t.Fingerprint, t.Actor = flaky, "ada"
	s.must(s.Store.Triage(s.ctx, t))
}

func (s *scene) expectStatus(want store.Status) store.ErrorGroup {
	s.Helper()
	g := s.errorGroup(flaky)
	same(s, "status", g.Status, want)
	return g
}

// storyOf returns the events of a subject as "actor name", oldest first.
func (s *scene) storyOf(subject string) (lines []string) {
	s.Helper()
	for _, e := range s.events(subject) {
		lines = append([]string{e.Actor + " " + e.Name}, lines...)
	}
	return lines
}

var errorGroupLaws = []law{
	{"failures with one fingerprint are one error group, with where and when they occurred", func(s *scene) {
		first := s.job(s.enqueue(at(time.Hour))).AsOf
		e := retries(s.start(), 24*time.Hour)
		e.Version, e.Failure.Detail, e.Failure.Dependency = "v2", "dial: no answer", "gateway"
		s.settle(e)
		s.Advance(2 * time.Hour)
		e = retries(s.start(func(d *holdfast.Draft) { d.Kind = "pdf" }), 24*time.Hour)
		e.Version, e.Failure.Message, e.Failure.Code = "v1", "it broke differently", "OTHER"
		s.settle(e)
		same(s, "group", s.errorGroup(flaky), store.ErrorGroup{
			Fingerprint: flaky, Code: "FLAKY", Category: "test", Message: "it broke", Detail: "dial: no answer", Failures: 2, FirstSeen: first,
			LastSeen: first.Add(2 * time.Hour), Kinds: []string{"mail", "pdf"}, Queues: []string{"default"}, Dependencies: []string{"gateway"},
			Versions: []string{"v1", "v2"}, LastHour: 1, Last3Hours: 2, LastDay: 2, LastWeek: 2, Status: store.StatusOpen,
		})
		s.promote(10)
		s.Advance(9 * 24 * time.Hour)
		g := s.errorGroup(flaky)
		same(s, "after nine days", []any{g.Failures, g.LastWeek, len(g.Kinds)}, []any{2, 0, 0})
		s.promote(10)
	}},
	{"every failed attempt counts, including crashes and the last one; a released attempt or one without fingerprint does not", func(s *scene) {
		lease := s.start()
		for _, change := range []func(*store.Settlement){
			func(*store.Settlement) {},
			func(e *store.Settlement) { e.Charge = store.ChargeCrash },
			func(e *store.Settlement) { e.Charge = store.ChargeRelease },
			func(e *store.Settlement) { e.Failure.Fingerprint = "" },
			func(e *store.Settlement) { e.To, e.Delay, e.Charge = holdfast.Failed, 0, store.ChargeNone },
		} {
			e := retries(lease, 0)
			change(&e)
			s.settle(e)
			s.settle(e) // a repeated settlement counts once
			if e.To == holdfast.Queued {
				lease = s.claimOne()
			}
		}
		same(s, "failures", s.errorGroup(flaky).Failures, 3)
	}},
	{"a late settlement does not count", func(s *scene) {
		lease := s.start()
		s.Advance(longAgo)
		s.settle(completes(s.reclaim()[0]))
		s.expectError(s.trySettle(retries(lease, 0))[0], holdfast.ErrLeaseLost)
		groups, _, err := s.Store.ErrorGroups(s.ctx, store.ErrorFilter{})
		s.must(err)
		same(s, "groups", len(groups), 0)
	}},
	{"failures that are settled together add up", func(s *scene) {
		s.enqueueMany(40)
		s.enqueueMany(40, func(d *holdfast.Draft) { d.Kind = "pdf" })
		var all []store.Settlement
		for i, l := range s.claim(80) {
			e := retries(l, time.Hour)
			e.Failure.Fingerprint = fmt.Sprint("print-", i%3)
			all = append(all, e)
		}
		s.settle(all...)
		same(s, "failures", []int{s.errorGroup("print-0").Failures, s.errorGroup("print-1").Failures, s.errorGroup("print-2").Failures}, []int{27, 27, 26})
		same(s, "kinds", s.errorGroup("print-1").Kinds, []string{"mail", "pdf"})
	}},
	{"failures that are settled concurrently add up, and do not block each other", func(s *scene) {
		s.enqueueMany(96)
		leases, stores := s.claim(96), s.handles()
		together(12, func(i int) {
			var all []store.Settlement
			for k, l := range leases[i*8 : i*8+8] {
				e := retries(l, time.Hour)
				e.Failure.Fingerprint = fmt.Sprint("print-", (k*(1-2*(i%2))+8)%8)
				all = append(all, e)
			}
			answers, err := stores[i%3].Settle(s.ctx, all)
			for _, answer := range answers {
				if answer != nil {
					err = answer
				}
			}
			if err != nil {
				s.Errorf("settle: %v", err)
			}
		})
		for k := range 8 {
			same(s, "failures", s.errorGroup(fmt.Sprint("print-", k)).Failures, 12)
		}
	}},
	{"a resolved error group that fails again has regressed, with one event", func(s *scene) {
		s.failFlaky("")
		s.triage(store.Triage{Status: store.StatusResolved, Reason: "fixed"})
		g := s.expectStatus(store.StatusResolved)
		same(s, "actor and reason", []string{g.Actor, g.Reason}, []string{"ada", "fixed"})
		s.failFlaky("v7")
		s.failFlaky("v8")
		same(s, "failures", s.expectStatus(store.StatusRegressed).Failures, 3)
		same(s, "story", s.storyOf("error/"+flaky), []string{"ada resolved", "holdfast regressed"})
	}},
	{"an error group resolved in a version regresses only when that version fails", func(s *scene) {
		s.failFlaky("v1")
		s.triage(store.Triage{Status: store.StatusResolved, Version: "v2"})
		s.failFlaky("v1")
		s.failFlaky("")
		same(s, "resolved in", s.expectStatus(store.StatusResolved).ResolvedIn, "v2")
		s.failFlaky("v2")
		s.expectStatus(store.StatusRegressed)
	}},
	{"an error group ignored until a count reopens with the failure that reaches it", func(s *scene) {
		s.failFlaky("")
		s.triage(store.Triage{Status: store.StatusIgnored, Count: 2})
		same(s, "until", s.expectStatus(store.StatusIgnored).UntilCount, 3)
		s.failFlaky("")
		s.expectStatus(store.StatusIgnored)
		s.failFlaky("")
		s.expectStatus(store.StatusOpen)
		s.failFlaky("")
		same(s, "story", s.storyOf("error/"+flaky), []string{"ada ignored", "holdfast open again"})
	}},
	{"an error group ignored for a time is open afterwards, and the first failure after it records the event", func(s *scene) {
		s.failFlaky("")
		s.triage(store.Triage{Status: store.StatusIgnored, For: time.Hour})
		s.Advance(time.Hour - time.Microsecond)
		s.failFlaky("")
		g := s.expectStatus(store.StatusIgnored)
		same(s, "until", g.Until, g.LastSeen.Add(time.Microsecond))
		s.Advance(time.Microsecond)
		s.expectStatus(store.StatusOpen)
		same(s, "story", s.storyOf("error/"+flaky), []string{"ada ignored"})
		s.failFlaky("")
		s.expectStatus(store.StatusOpen)
		same(s, "story", s.storyOf("error/"+flaky), []string{"ada ignored", "holdfast open again"})
	}},
	{"an error group that is ignored for good or acknowledged stays so", func(s *scene) {
		s.failFlaky("")
		for _, status := range []store.Status{store.StatusIgnored, store.StatusAcknowledged, store.StatusOpen} {
			s.triage(store.Triage{Status: status})
			s.failFlaky("")
			s.expectStatus(status)
		}
	}},
	{"a note is recorded as an event and changes nothing else", func(s *scene) {
		s.failFlaky("")
		s.triage(store.Triage{Status: store.StatusAcknowledged, Reason: "mine"})
		before := s.errorGroup(flaky)
		s.triage(store.Triage{Reason: "it is the proxy again"})
		same(s, "group", s.errorGroup(flaky), before)
		same(s, "story", s.storyOf("error/"+flaky), []string{"ada acknowledged", "ada note"})
		same(s, "note", s.events("error/" + flaky)[0].Reason, "it is the proxy again")
	}},
	{"triage of an unknown error group is not found, and invalid triage is refused", func(s *scene) {
		s.expectError(s.Store.Triage(s.ctx, store.Triage{Fingerprint: "never seen", Status: store.StatusOpen, Actor: "ada"}), holdfast.ErrNotFound)
		s.failFlaky("")
		for _, bad := range []store.Triage{{Status: store.StatusOpen}, {Status: store.StatusRegressed, Actor: "ada"}, {Actor: "ada"}, {Status: store.StatusOpen, Count: 1, Actor: "ada"}} {
			bad.Fingerprint = flaky
			s.expectError(s.Store.Triage(s.ctx, bad), holdfast.ErrInvalid)
		}
		same(s, "story", len(s.events("error/"+flaky)), 0)
	}},
	{"error groups are listed by filter, last seen first, page by page", func(s *scene) {
		for i := range 7 {
			s.Advance(time.Second)
			e := fails(s.start(func(d *holdfast.Draft) { d.Kind = []string{"mail", "pdf"}[i%2] }), fmt.Sprint("CODE", i))
			s.settle(e)
		}
		s.must(s.Store.Triage(s.ctx, store.Triage{Fingerprint: "print-CODE3", Status: store.StatusAcknowledged, Actor: "ada"}))
		list := func(f store.ErrorFilter) (codes string) {
			s.Helper()
			for {
				groups, cursor, err := s.Store.ErrorGroups(s.ctx, f)
				s.must(err)
				for _, g := range groups {
					codes += strings.TrimPrefix(g.Code, "CODE")
				}
				if f.Cursor = cursor; cursor == "" {
					return codes
				}
			}
		}
		for _, c := range []struct {
			filter store.ErrorFilter
			want   string
		}{
			{store.ErrorFilter{}, "6543210"}, {store.ErrorFilter{Limit: 2}, "6543210"}, {store.ErrorFilter{Status: store.StatusOpen, Limit: 4}, "654210"},
			{store.ErrorFilter{Code: "CODE2"}, "2"}, {store.ErrorFilter{Kind: "pdf"}, "531"}, {store.ErrorFilter{Kind: "pdf", Status: store.StatusAcknowledged}, "3"},
			{store.ErrorFilter{Fingerprint: "print-CODE5"}, "5"}, {store.ErrorFilter{Fingerprint: "print-"}, ""},
		} {
			same(s, fmt.Sprintf("error groups of %+v", c.filter), list(c.filter), c.want)
		}
		for _, bad := range []store.ErrorFilter{{Limit: -1}, {Cursor: "nonsense!"}, {Status: "gone"}} {
			_, _, err := s.Store.ErrorGroups(s.ctx, bad)
			s.expectError(err, holdfast.ErrInvalid)
		}
	}},
}

// failWithDeadline fails a job with a deadline for its next start.
func (s *scene) failWithDeadline(within, delay time.Duration) store.Lease {
	s.Helper()
	lease := s.start()
	e := retries(lease, delay)
	e.StartWithin = within
	s.settle(e)
	return lease
}

func (s *scene) expectMissedDeadlines(want ...holdfast.ID) {
	s.Helper()
	got, err := s.Store.MissedDeadlines(s.ctx, 100)
	s.must(err)
	same(s, "missed deadlines", sorted(got...), sorted(want...))
}

var deadlineLaws = []law{
	{"a next attempt that did not start in time is a missed deadline, recorded as one event, and nothing fails", func(s *scene) {
		lease := s.failWithDeadline(time.Minute, time.Hour)
		by := s.job(lease.ID).AsOf.Add(time.Minute)
		s.Advance(time.Minute - time.Microsecond)
		s.expectMissedDeadlines()
		s.Advance(time.Second)
		s.expectMissedDeadlines(lease.ID)
		s.expectMissedDeadlines()
		job := s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1})
		same(s, "state", job.State, holdfast.Queued)
		same(s, "events", s.history(lease.ID).Events, []store.Event{{Job: lease.ID, At: job.AsOf, Name: "deadline missed", Actor: "holdfast",
			Reason: "its next attempt did not start by " + by.Format(time.RFC3339), Token: 1, Generation: 1}})
	}},
	{"a start in time, or the end of the job, is no missed deadline", func(s *scene) {
		s.failWithDeadline(time.Minute, 0)
		runs := s.claimOne()
		ended := s.failWithDeadline(time.Minute, time.Hour)
		s.cancel(ended.ID)
		s.Advance(2 * time.Minute)
		s.expectMissedDeadlines()
		s.settle(completes(runs))
		s.expectMissedDeadlines()
	}},
	{"a job that started in time and failed again has a new start deadline only", func(s *scene) {
		s.failWithDeadline(time.Minute, 0)
		lease := s.claimOne()
		e := retries(lease, time.Hour)
		e.StartWithin = time.Minute // at the same time
		s.settle(e)
		s.Advance(time.Minute)
		s.expectMissedDeadlines(lease.ID)
		same(s, "events", len(s.history(lease.ID).Events), 1)
	}},
	{"an attempt that started late is no missed deadline if MissedDeadlines did not run before", func(s *scene) {
		s.failWithDeadline(time.Minute, 0)
		s.Advance(time.Hour)
		s.claimOne()
		s.expectMissedDeadlines()
	}},
	{"MissedDeadlines returns at most its limit, and concurrent calls find each once", func(s *scene) {
		var all []holdfast.ID
		for range 12 {
			all = append(all, s.failWithDeadline(time.Minute, time.Hour).ID)
		}
		s.Advance(time.Minute)
		few, err := s.Store.MissedDeadlines(s.ctx, 3)
		s.must(err)
		same(s, "the first few", len(few), 3)
		stores, seen := s.handles(), &lockedCounts{}
		together(6, func(i int) {
			found, err := stores[i%3].MissedDeadlines(s.ctx, 100)
			if err != nil {
				s.Errorf("missed deadlines: %v", err)
			}
			for _, id := range found {
				seen.add(id.String())
			}
		})
		found, err := s.Store.MissedDeadlines(s.ctx, 100)
		s.must(err)
		same(s, "found, and how often at most", []int{len(seen.n) + len(found), seen.most()}, []int{9, 1})
		for _, id := range all {
			same(s, "events", len(s.history(id).Events), 1)
		}
	}},
	{"RetryWithin of a draft is stored with the job", func(s *scene) {
		id := s.enqueue(func(d *holdfast.Draft) { d.RetryWithin, d.Dependency = 90*time.Second, "gateway" })
		same(s, "job", []any{s.job(id).RetryWithin, s.job(id).Dependency}, []any{90 * time.Second, "gateway"})
		lease := s.claimOne()
		same(s, "lease", []any{lease.RetryWithin, lease.Dependency}, []any{90 * time.Second, "gateway"})
	}},
}

var experienceLaws = []law{
	{"outcomes after failed attempts add up, by kind, code and number", func(s *scene) {
		attempt := func(l store.Lease, took time.Duration, e store.Settlement) {
			s.Helper()
			s.Advance(took)
			e.Took = took
			s.settle(e)
		}
		a := s.start() // fails once, then completes
		attempt(a, time.Second, retries(a, 0))
		a = s.claimOne()
		attempt(a, time.Second, completes(a))
		b := s.start() // fails twice, and for good
		attempt(b, 2*time.Second, retries(b, 0))
		b = s.claimOne()
		attempt(b, 3*time.Second, fails(b, "BROKEN"))
		c := s.start() // completes at once
		attempt(c, time.Second, completes(c))
		all, err := s.Store.RetryStats(s.ctx, time.Hour)
		s.must(err)
		got := map[string]store.RetryStats{}
		for _, e := range all {
			got[fmt.Sprint(e.Kind, e.Code, e.Number)] = e
		}
		first := got["mail0"]
		same(s, "first attempts", []int{len(all), first.Attempts, first.Complete}, []int{3, 3, 1})
		same(s, "first failures", got["mailFLAKY1"], store.RetryStats{Kind: "mail", Code: "FLAKY", Number: 1, Attempts: 2, Complete: 1, Again: 1,
			Took: 3 * time.Second, Wasted: 2 * time.Second})
		same(s, "last failures", got["mailBROKEN2"], store.RetryStats{Kind: "mail", Code: "BROKEN", Number: 2, Attempts: 1, GaveUp: 1,
			Took: 3 * time.Second, Wasted: 3 * time.Second})
		s.Advance(2 * time.Hour)
		none, err := s.Store.RetryStats(s.ctx, time.Hour)
		s.must(err)
		same(s, "of older jobs", len(none), 0)
	}},
	{"an empty store has no experience", func(s *scene) {
		none, err := s.Store.RetryStats(s.ctx, time.Hour)
		s.must(err)
		same(s, "experience", len(none), 0)
	}},
}
