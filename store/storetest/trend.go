package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// inQueue sets the queue of a settlement, as an engine does.
func inQueue(queue string, e store.Settlement) store.Settlement {
	e.Queue = queue
	return e
}

// beginStep advances to the next full hour, at which steps of every length begin, and returns it.
func (s *scene) beginStep() time.Time {
	s.Helper()
	now := s.job(s.enqueue(at(1000 * time.Hour))).AsOf
	next := now.Truncate(time.Hour).Add(time.Hour)
	s.Advance(next.Sub(now))
	return next
}

func (s *scene) trends(within, step time.Duration) []store.Trend {
	s.Helper()
	trends, err := s.Store.Trends(s.ctx, within, step)
	s.must(err)
	return trends
}

// runAttempt claims one job of the default queue and settles it for a queue.
func (s *scene) runAttempt(queue string, say func(store.Lease) store.Settlement) store.Settlement {
	s.Helper()
	e := inQueue(queue, say(s.start()))
	s.settle(e)
	return e
}

// retriesLater is a retry that is not due within a law.
func retriesLater(l store.Lease) store.Settlement { return retries(l, 900*time.Hour) }

func failsBroken(l store.Lease) store.Settlement { return fails(l, "BROKEN") }

func releasesLater(l store.Lease) store.Settlement {
	return releases(l, store.ChargeRelease, 900*time.Hour)
}

func cancels(l store.Lease) store.Settlement { return ends(l, holdfast.Cancelled) }

// sum adds up all steps, by queue.
func sum(trends []store.Trend) map[string][4]int {
	all := map[string][4]int{}
	for _, t := range trends {
		n := all[t.Queue]
		all[t.Queue] = [4]int{n[0] + t.Complete, n[1] + t.Failed, n[2] + t.Retried, n[3] + t.Cancelled}
	}
	return all
}

var trendLaws = []law{
	{"every outcome of an attempt is counted once, in its queue; a released attempt is not", func(s *scene) {
		step := s.beginStep()
		crashes := func(l store.Lease) store.Settlement { return releases(l, store.ChargeCrash, 900*time.Hour) }
		for _, say := range []func(store.Lease) store.Settlement{completes, failsBroken, retriesLater, crashes, releasesLater, cancels, completes, retriesLater, completes} {
			s.runAttempt("mails", say)
		}
		s.runAttempt("ads", failsBroken)
		s.runAttempt("", completes)
		same(s, "trends", s.trends(time.Hour, time.Minute), []store.Trend{
			{Step: step, Queue: "", Complete: 1}, {Step: step, Queue: "ads", Failed: 1}, {Step: step, Queue: "mails", Complete: 3, Failed: 1, Retried: 3, Cancelled: 1},
		})
	}},
	{"an attempt overruled by a cancel request counts as cancelled, whatever it reported", func(s *scene) {
		step := s.beginStep()
		for _, say := range []func(store.Lease) store.Settlement{completes, failsBroken, retriesLater, releasesLater} {
			lease := s.start()
			same(s, "state", s.cancel(lease.ID), holdfast.Processing)
			s.settle(inQueue("default", say(lease)))
			s.settle(inQueue("default", say(lease)))
		}
		same(s, "trends", s.trends(time.Hour, 0), []store.Trend{{Step: step, Queue: "default", Cancelled: 4}})
	}},
	{"an attempt that lost its worker is counted when it is settled after the reclaim, and one that never started is not", func(s *scene) {
		s.enqueueMany(3)
		leases, err := s.Store.Claim(s.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 3, Start: 2, Lease: shortLease})
		s.must(err)
		same(s, "claimed", len(leases), 3)
		s.Advance(longAgo)
		taken := s.reclaim()
		same(s, "taken over", len(taken), 2)
		same(s, "before they are settled", len(s.trends(time.Hour, 0)), 0)
		crashed := fails(taken[1], "BROKEN")
		crashed.Charge = store.ChargeCrash
		s.settle(inQueue("default", releases(taken[0], store.ChargeCrash, 0)), inQueue("default", crashed))
		same(s, "trends", sum(s.trends(time.Hour, 0)), map[string][4]int{"default": {0, 1, 1, 0}})
	}},
	{"jobs that end without an attempt are not counted in trends", func(s *scene) {
		s.cancel(s.enqueue())
		dead := s.fail()
		s.retry(dead.ID)
		s.cancel(dead.ID)
		same(s, "trends", sum(s.trends(time.Hour, 0)), map[string][4]int{"": {0, 1, 0, 0}})
	}},
	{"a repeated settlement counts once, also within a call; a late or invalid one never", func(s *scene) {
		for _, say := range []func(store.Lease) store.Settlement{completes, failsBroken, retriesLater, cancels} {
			e := s.runAttempt("default", say)
			s.settle(e, e)
			e = inQueue("default", say(s.start()))
			s.settle(e, e)
		}
		lost := s.start()
		invalid := inQueue("default", ends(lost, "nowhere"))
		s.expectError(s.trySettle(invalid)[0], holdfast.ErrInvalid)
		s.Advance(longAgo)
		s.settle(inQueue("default", completes(s.reclaim()[0])))
		for _, e := range []store.Settlement{completes(lost), fails(lost, "BROKEN"), retries(lost, 0), cancels(lost)} {
			s.expectError(s.trySettle(inQueue("default", e))[0], holdfast.ErrLeaseLost)
		}
		same(s, "trends", sum(s.trends(time.Hour, 0)), map[string][4]int{"default": {3, 2, 2, 2}})
	}},
	{"attempts are counted in the minute in which they are settled, and can be read in longer steps", func(s *scene) {
		start := s.beginStep()
		minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
		for n, wait := range []time.Duration{0, time.Minute - time.Microsecond, time.Microsecond, 2 * time.Minute, 4 * time.Minute} {
			s.Advance(wait)
			s.runAttempt(fmt.Sprint("q", n%2), completes)
		}
		for _, c := range []struct {
			step time.Duration
			want []store.Trend
		}{
			{time.Minute, []store.Trend{{Step: minute(0), Queue: "q0", Complete: 1}, {Step: minute(0), Queue: "q1", Complete: 1}, {Step: minute(1), Queue: "q0", Complete: 1},
				{Step: minute(3), Queue: "q1", Complete: 1}, {Step: minute(7), Queue: "q0", Complete: 1}}},
			{2*time.Minute + time.Nanosecond, []store.Trend{{Step: minute(0), Queue: "q0", Complete: 2}, {Step: minute(0), Queue: "q1", Complete: 1},
				{Step: minute(3), Queue: "q1", Complete: 1}, {Step: minute(6), Queue: "q0", Complete: 1}}},
			{time.Hour, []store.Trend{{Step: minute(0), Queue: "q0", Complete: 3}, {Step: minute(0), Queue: "q1", Complete: 2}}},
		} {
			same(s, fmt.Sprint("trends in steps of ", c.step), s.trends(time.Hour, c.step), c.want)
		}
	}},
	{"steps are counted from 1970, and one that lies partly in the requested time is returned whole", func(s *scene) {
		start := s.beginStep()
		s.runAttempt("default", completes)
		s.Advance(20 * time.Minute)
		s.runAttempt("default", completes)
		for _, c := range []struct {
			within, step time.Duration
			want         int
		}{
			{time.Minute, time.Minute, 1}, {20 * time.Minute, time.Minute, 2}, {19 * time.Minute, time.Minute, 1}, {time.Minute, time.Hour, 2}, {19 * time.Minute, 30 * time.Minute, 2},
		} {
			got := s.trends(c.within, c.step)
			same(s, fmt.Sprintf("complete within %v in steps of %v", c.within, c.step), sum(got)["default"][0], c.want)
			for _, trend := range got {
				same(s, "beginning", trend.Step.UnixMicro()%c.step.Microseconds(), int64(0))
			}
		}
		const seven = 7 * time.Minute // hours are no multiple of it
		first := start.UnixMicro() - start.UnixMicro()%seven.Microseconds()
		same(s, "first of seven minutes", s.trends(time.Hour, seven)[0].Step, time.UnixMicro(first).UTC())
		s.Advance(8*24*time.Hour - time.Minute)
		same(s, "after a week", sum(s.trends(8*24*time.Hour, time.Minute)), map[string][4]int{"default": {1, 0, 0, 0}})
	}},
	{"settlements of one call are counted together, over many queues", func(s *scene) {
		s.enqueueMany(90)
		var all []store.Settlement
		for i, l := range s.claim(90) {
			say := []func(store.Lease) store.Settlement{completes, failsBroken, retriesLater}[i%3]
			all = append(all, inQueue(fmt.Sprint("q", i%5), say(l)))
		}
		s.settle(all...)
		want := map[string][4]int{}
		for n := range 5 {
			want[fmt.Sprint("q", n)] = [4]int{6, 6, 6, 0}
		}
		same(s, "trends", sum(s.trends(time.Hour, 0)), want)
	}},
	{"concurrent settlements add up, and do not block each other", func(s *scene) {
		const crowd, each = 24, 10
		s.enqueueMany(crowd * each)
		leases, stores := s.claim(crowd*each), s.handles()
		together(crowd, func(i int) {
			mine := leases[i*each : (i+1)*each]
			calls := [][]store.Settlement{nil} // one call with all settlements, or one for each, in different orders of queues
			for k, l := range mine {
				e := inQueue(fmt.Sprint("q", (k*(1-2*(i%2))+each)%4), completes(l))
				if i%3 == 0 {
					calls = append(calls, []store.Settlement{e})
				} else {
					calls[0] = append(calls[0], e)
				}
			}
			for _, call := range calls {
				answers, err := stores[i%3].Settle(s.ctx, call)
				for _, answer := range answers {
					if answer != nil {
						err = answer
					}
				}
				if err != nil {
					s.Errorf("settle: %v", err)
				}
			}
		})
		total := 0
		for _, n := range sum(s.trends(time.Hour, 0)) {
			total += n[0]
		}
		same(s, "complete", total, crowd*each)
	}},
	{"a queue name that cannot be stored is cleaned, and no settlement fails", func(s *scene) {
		for _, queue := range []string{"a\x00b", "a\xffb", "ab", strings.Repeat("x", 10_000)} {
			s.runAttempt(queue, completes)
		}
		same(s, "trends", sum(s.trends(time.Hour, 0)), map[string][4]int{"ab": {2, 0, 0, 0}, "a\uFFFDb": {1, 0, 0, 0}, "": {1, 0, 0, 0}})
	}},
	{"trends cover up to eight days, and an invalid query is refused", func(s *scene) {
		for _, bad := range [][2]time.Duration{{0, time.Minute}, {-time.Hour, time.Minute}, {8*24*time.Hour + 1, time.Hour}, {time.Hour, -time.Minute}, {time.Hour, 9 * 24 * time.Hour}} {
			_, err := s.Store.Trends(s.ctx, bad[0], bad[1])
			s.expectError(err, holdfast.ErrInvalid)
		}
		same(s, "trends", len(s.trends(8*24*time.Hour, time.Minute)), 0)
	}},
	{"trends are deleted by age with the counts of error groups, the oldest first", func(s *scene) {
		s.beginStep()
		for n := range 6 {
			s.runAttempt(fmt.Sprint("q", n), completes)
			s.Advance(time.Minute)
		}
		left := func(want ...string) {
			s.Helper()
			var got []string
			for _, trend := range s.trends(time.Hour, 0) {
				got = append(got, trend.Queue)
			}
			same(s, "left", got, want)
		}
		s.deleteHistory(store.HistoryCounts, time.Hour, 100, 0)
		s.deleteHistory(store.HistoryCounts, 150*time.Second, 1, 1)
		left("q1", "q2", "q3", "q4", "q5")
		s.deleteHistory(store.HistoryCounts, 150*time.Second, 100, 2)
		s.deleteHistory(store.HistoryCounts, 150*time.Second, 100, 0)
		left("q3", "q4", "q5")
	}},
}
