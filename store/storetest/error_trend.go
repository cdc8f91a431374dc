package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func (s *scene) errorTrends(within, step time.Duration, fingerprints ...string) []store.ErrorTrend {
	s.Helper()
	trends, err := s.Store.ErrorTrends(s.ctx, fingerprints, within, step)
	s.must(err)
	return trends
}

var errorTrendLaws = []law{
	{"failures are returned by step, oldest first, in the order in which the error groups were named", func(s *scene) {
		s.beginStep()
		s.failFlaky("v1")
		s.failFlaky("v2", func(d *holdfast.Draft) { d.Kind = "pdf" })
		s.Advance(7 * time.Minute)
		s.fail()
		s.Advance(10 * time.Minute)
		s.failFlaky("v1")
		same(s, "every five minutes", s.errorTrends(16*time.Minute, 0, "print-BROKEN", flaky), []store.ErrorTrend{
			{Fingerprint: "print-BROKEN", Failures: []int{0, 1, 0, 0}, Dead: 1, Failed: 1},
			{Fingerprint: flaky, Failures: []int{2, 0, 0, 1}, Live: 3},
		})
		same(s, "every ten minutes", s.errorTrends(time.Minute, 6*time.Minute, flaky)[0].Failures, []int{1})
		same(s, "a day", len(s.errorTrends(24*time.Hour, time.Hour, flaky)[0].Failures), 25)
	}},
	{"unknown error groups have no steps", func(s *scene) {
		s.fail()
		same(s, "trends", s.errorTrends(time.Minute, 0, "unknown", "print-BROKEN", "' OR 1=1"), []store.ErrorTrend{
			{Fingerprint: "unknown"}, {Fingerprint: "print-BROKEN", Failures: []int{1}, Dead: 1, Failed: 1}, {Fingerprint: "' OR 1=1"},
		})
		same(s, "of none", s.errorTrends(time.Hour, 0), []store.ErrorTrend{})
	}},
	{"error trends count the outcomes of the jobs that failed with them", func(s *scene) {
		var leases []store.Lease
		for range 6 {
			leases = append(leases, s.start())
		}
		for _, l := range leases {
			s.settle(retries(l, 0))
		}
		again := s.claim(6)
		s.settle(completes(again[0]), completes(again[1]), fails(again[2], "FLAKY"), fails(again[3], "OTHER"), ends(again[4], holdfast.Cancelled))
		trend := s.errorTrends(time.Hour, 0, flaky)[0]
		same(s, "ends", []int{trend.Dead, trend.Recovered, trend.Failed, trend.Live}, []int{1, 2, 2, 1})
		s.must(s.Store.Discard(s.ctx, by(again[2].ID)))
		same(s, "dead letters", s.errorTrends(time.Hour, 0, flaky)[0].Dead, 0)
	}},
	{"only the jobs of the newest failures count, and dead letters up to a thousand", func(s *scene) {
		s.failAll(201)
		trend := s.errorTrends(time.Hour, 0, "print-BROKEN")[0]
		same(s, "ends", []int{trend.Dead, trend.Failed}, []int{201, 200})
	}},
	{"an invalid query is refused", func(s *scene) {
		for _, bad := range []struct{ within, step time.Duration }{{0, 0}, {-time.Hour, 0}, {193 * time.Hour, 0}, {time.Hour, 193 * time.Hour}, {time.Hour, -time.Minute}} {
			_, err := s.Store.ErrorTrends(s.ctx, []string{flaky}, bad.within, bad.step)
			s.expectError(err, holdfast.ErrInvalid)
		}
		_, err := s.Store.ErrorTrends(s.ctx, make([]string, 201), time.Hour, 0)
		s.expectError(err, holdfast.ErrInvalid)
		_, err = s.Store.ErrorTrends(s.ctx, []string{"\x00"}, time.Hour, 0)
		s.expectError(err, holdfast.ErrInvalid)
	}},
}
