package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var tagLaws = []law{
	{"jobs with a held tag are set aside at no cost, and others are claimed", func(s *scene) {
		s.pause(store.Hold{Tag: "red"})
		red := s.enqueueMany(30, tagged("blue", "red"))
		free := s.enqueue(tagged("blue"))
		same(s, "claimed", ids(s.claim(1)), []holdfast.ID{free})
		same(s, "claimed again", len(s.claim(50)), 0)
		job := s.expectCounts(red[0], [5]int{0, 0, 0, 0, 1})
		same(s, "job", []any{job.State, job.DueAt}, []any{holdfast.Queued, job.CreatedAt})
		h := s.history(red[0])
		same(s, "attempts and events", []int{len(h.Attempts), len(h.Events)}, []int{0, 0})
		same(s, "promoted while held", s.promote(100), 0)
		same(s, "behind", s.behind(store.Hold{Tag: "red"}), 30)
	}},
	{"jobs set aside come back in order when the hold on their tag was lifted or has ended", func(s *scene) {
		for _, hold := range []store.Hold{{Tag: "red"}, {Tag: "red", For: time.Minute}} {
			s.Wipe()
			s.pause(hold)
			red := s.enqueueMany(5, tagged("red"))
			same(s, "claimed", len(s.claim(50)), 0)
			younger := s.enqueue()
			if hold.For > 0 {
				s.Advance(hold.For)
			} else {
				s.resume(hold)
			}
			same(s, "promoted", s.promote(100), 5)
			same(s, "claimed", ids(s.claim(50)), append(red, younger))
		}
	}},
	{"promotion brings back at most its limit, and the rest next time", func(s *scene) {
		s.pause(store.Hold{Tag: "red"})
		s.enqueueMany(5, tagged("red"))
		same(s, "claimed", len(s.claim(50)), 0)
		s.resume(store.Hold{Tag: "red"})
		var total int
		for range 3 {
			n := s.promote(2)
			same(s, "within the limit", n <= 2, true)
			total += n
		}
		same(s, "promoted", total, 5)
		same(s, "claimed", len(s.claim(50)), 5)
	}},
	{"a job with two held tags waits for both", func(s *scene) {
		s.pause(store.Hold{Tag: "red"})
		s.pause(store.Hold{Tag: "blue"})
		id := s.enqueue(tagged("red", "blue"))
		s.expectClaims(0)
		s.resume(store.Hold{Tag: "red"})
		s.promote(10)
		s.expectClaims(0)
		s.resume(store.Hold{Tag: "blue"})
		s.promote(10)
		same(s, "claimed", ids(s.claim(50)), []holdfast.ID{id})
	}},
	{"a retry that was set aside keeps its counts and its due time, and is still a retry when it comes back", func(s *scene) {
		lease := s.start(tagged("red"))
		s.settle(retries(lease, time.Minute))
		s.Advance(time.Minute)
		s.promote(10)
		due := s.job(lease.ID).DueAt
		s.pause(store.Hold{Tag: "red"})
		s.expectClaims(0)
		same(s, "due", s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1}).DueAt, due)
		s.resume(store.Hold{Tag: "red"})
		s.promote(10)
		same(s, "due", s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1}).DueAt, due)
		s.pause(store.Hold{Queue: "default", Retries: true})
		s.expectClaims(0)
		s.resume(store.Hold{Queue: "default"})
		same(s, "token", s.claimOne().Token, 2)
	}},
	{"a job that was set aside can be cancelled, retried manually if it has failed before, and expires", func(s *scene) {
		failed := s.start(tagged("red"))
		s.settle(retries(failed, 0))
		gone, expires := s.enqueue(tagged("red"), unique("k")), s.enqueue(tagged("red"), expiresIn(time.Hour))
		s.pause(store.Hold{Tag: "red"})
		s.expectClaims(0)
		same(s, "cancelled", s.cancel(gone), holdfast.Cancelled)
		if s.enqueue(unique("k"), at(24*time.Hour)) == gone {
			s.Fatal("the unique key was not freed")
		}
		s.retry(failed.ID)
		s.expectCounts(failed.ID, [5]int{1, 0, 0, 0, 2})
		s.expectRetryRefused(expires)
		s.Advance(time.Hour)
		same(s, "expired", ids(s.expire()), []holdfast.ID{expires})
		s.expectClaims(0)
		s.resume(store.Hold{Tag: "red"})
		s.promote(10)
		same(s, "claimed", ids(s.claim(50)), []holdfast.ID{failed.ID})
	}},
	{"jobs that are set aside cost no tokens and do not count for limits", func(s *scene) {
		s.enqueueMany(5, tagged("red"))
		s.enqueueMany(5)
		hold := rateHold(0, 3, 3)
		hold.AtMost = 2
		s.pause(hold)
		s.pause(store.Hold{Tag: "red"})
		var total int
		for range 8 {
			total += len(s.claim(50))
		}
		same(s, "claimed in the end", total, 2)
		s.resume(store.Hold{Tag: "red"})
		s.expectLevel(1)
	}},
}

func tagged(tags ...string) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Tags = tags }
}
