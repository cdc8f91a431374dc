package storetest

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// throttles is an attempt that the dependency asked to repeat later: released, with a failure record.
func throttles(l store.Lease, delay time.Duration) store.Settlement {
	e := releases(l, store.ChargeRelease, delay)
	e.Why = "throttled: no attempt spent"
	e.Failure = &holdfast.Failure{Code: "RATE_LIMITED", Category: "throttled", Message: "A service asked us to come back later.", Detail: "HTTP status 429",
		Context: map[string]string{"http_status": "429", "throttled": "1m0s"}}
	return e
}

// keptReleases is how many released attempts of a generation a store keeps one by one.
const keptReleases = 100

var releaseLaws = []law{
	{"an attempt released with a failure record keeps the record and spends nothing", func(s *scene) {
		lease := s.start(func(d *holdfast.Draft) { d.MaxAttempts = 1 })
		e := throttles(lease, time.Minute)
		e.Took = time.Second
		s.Advance(time.Second)
		s.settle(e)
		job := s.expectCounts(lease.ID, [5]int{1, 0, 0, 1, 1})
		same(s, "state", job.State, holdfast.Queued)
		same(s, "due", job.DueAt, job.AsOf.Add(time.Minute))
		same(s, "last failure", job.LastFailure, e.Failure)
		attempt := s.history(lease.ID).Attempts[0]
		same(s, "attempt", []any{attempt.To, attempt.Charge, attempt.Failure, attempt.Why, attempt.Count, attempt.Repeats},
			[]any{holdfast.Queued, store.ChargeRelease, e.Failure, e.Why, 0, 0})
		groups, _, err := s.Store.ErrorGroups(s.ctx, store.ErrorFilter{})
		s.must(err)
		same(s, "error groups", len(groups), 0)
		trends, err := s.Store.Trends(s.ctx, time.Hour, 0)
		s.must(err)
		same(s, "trends", len(trends), 0)
		same(s, "dead letters", len(s.jobs(store.Filter{DeadLetters: true})), 0)
		s.Advance(time.Minute)
		s.promote(10)
		s.settle(completes(s.claimOne()))
		same(s, "last failure of the complete job", s.job(lease.ID).LastFailure == nil, true)
	}},
	{"a job that is released again and again keeps a bounded history, with a count", func(s *scene) {
		lease := s.start()
		first := lease
		var ended []time.Time
		for n := range keptReleases + 30 {
			if n > 0 {
				lease = s.claimOne()
			}
			s.Advance(time.Second)
			ended = append(ended, s.job(lease.ID).AsOf)
			e := throttles(lease, 0)
			e.Failure.Detail = fmt.Sprintf("number %d", n+1)
			s.settle(e)
		}
		attempts := s.history(first.ID).Attempts
		same(s, "attempts", len(attempts), keptReleases)
		for _, a := range attempts[:keptReleases-1] {
			same(s, "repeats of an early one", a.Repeats, 0)
		}
		last := attempts[keptReleases-1]
		same(s, "the last one", []any{last.Token, last.Repeats, last.Since, last.EndedAt, last.Failure.Detail}, []any{keptReleases + 30, 30, ended[keptReleases-1], ended[keptReleases+29], fmt.Sprintf("number %d", keptReleases+30)})
		s.expectCounts(first.ID, [5]int{keptReleases + 30, 0, 0, keptReleases + 30, 1})
		lease = s.claimOne()
		s.settle(retries(lease, 0))
		s.settle(throttles(s.claimOne(), 0))
		s.settle(throttles(s.claimOne(), 0))
		attempts = s.history(first.ID).Attempts
		same(s, "a failure is kept between two runs of releases", len(attempts), keptReleases+2)
		same(s, "the second run", attempts[keptReleases+1].Repeats, 1)
		s.expectCounts(first.ID, [5]int{keptReleases + 33, 1, 0, keptReleases + 32, 1})
	}},
	{"a repeated release is applied once, also when it was merged with a later attempt", func(s *scene) {
		lease := s.start()
		for range keptReleases + 1 {
			s.settle(throttles(lease, 0))
			lease = s.claimOne()
		}
		again := throttles(lease, 0)
		s.settle(again)
		s.settle(throttles(s.claimOne(), 0))
		s.settle(again)
		same(s, "evidence", s.late(lease.ID), 0)
		other := ends(lease, holdfast.Cancelled)
		s.expectError(s.trySettle(other)[0], holdfast.ErrLeaseLost)
		same(s, "evidence of a different settlement", s.late(lease.ID), 1)
	}},
}
