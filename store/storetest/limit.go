package storetest

import (
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// enqueueMany enqueues n plain jobs in one call.
func (s *scene) enqueueMany(n int, change ...func(*holdfast.Draft)) []holdfast.ID {
	s.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = draft()
		for _, c := range change {
			c(&drafts[i])
		}
	}
	var all []holdfast.ID
	for _, r := range s.enqueueAll(drafts...) {
		all = append(all, r.ID)
	}
	return all
}

// rateHold is a rate limit on the default queue.
func rateHold(perSecond, burst, level float64) store.Hold {
	return store.Hold{Queue: "default", Rate: &store.Rate{PerSecond: perSecond, Burst: burst, Level: level}}
}

// expectClaims claims more than there is several times, and expects the given numbers.
func (s *scene) expectClaims(want ...int) (all []store.Lease) {
	s.Helper()
	for i, n := range want {
		leases := s.claim(50)
		same(s, fmt.Sprintf("claimed, time %d", i+1), len(leases), n)
		all = append(all, leases...)
	}
	return all
}

func (s *scene) expectLevel(want float64) {
	s.Helper()
	holds := s.holds()
	if len(holds) != 1 || holds[0].Rate == nil {
		s.Fatalf("one rate limit was placed, and the store shows %+v", holds)
	}
	if got := holds[0].Rate.Level; got < want-1e-6 || got > want+1e-6 {
		s.Fatalf("the rate limit has %v tokens, want %v", got, want)
	}
}

func (s *scene) deposit(h store.Hold, tokens float64) {
	s.Helper()
	s.must(s.Store.Apply(s.ctx, store.Change{Deposits: []store.Deposit{{Hold: h, Tokens: tokens}}}))
}

// claimConcurrently makes twelve concurrent claims over several handles, and expects that they take at most n jobs in total, and that one more claim
// gets the rest of n.
func (s *scene) claimConcurrently(want int) (all []store.Lease) {
	s.Helper()
	stores, taken := s.handles(), make([][]store.Lease, 12)
	together(len(taken), func(i int) {
		leases, err := stores[i%len(stores)].Claim(s.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 3, Start: 3, Lease: shortLease})
		if err != nil {
			s.Errorf("claim: %v", err)
		}
		taken[i] = leases
	})
	for _, leases := range taken {
		all = append(all, leases...)
	}
	if len(all) > want {
		s.Fatalf("%d jobs were claimed at once, the limit is %d", len(all), want)
	}
	all = append(all, s.claim(50)...)
	same(s, "claimed in the end", len(all), want)
	return all
}

var limitLaws = []law{
	{"no more jobs than a limit are processing at once, however many workers claim", func(s *scene) {
		for _, hold := range []store.Hold{{Queue: "default"}, {Kind: "mail"}, {Owner: "acme"}, {Dependency: "gateway"}} {
			s.Wipe()
			s.enqueueMany(9, func(d *holdfast.Draft) { d.Owner, d.Dependency = "acme", "gateway" })
			hold.AtMost = 4
			s.pause(hold)
			same(s, "claimed", len(s.claim(3)), 3)
			s.expectClaims(1, 0)
		}
	}},
	{"a settlement frees a place under a limit, whatever its result", func(s *scene) {
		s.enqueueMany(9)
		s.pause(store.Hold{Queue: "default", AtMost: 3})
		l := s.expectClaims(3)
		s.settle(completes(l[0]), fails(l[1], "BROKEN"))
		l = append(l[2:], s.expectClaims(2)...)
		s.settle(releases(l[0], store.ChargeRelease, time.Hour))
		s.expectClaims(1, 0)
	}},
	{"a limit counts jobs that were processing before it was placed, and those with a cancel request that have not ended", func(s *scene) {
		s.enqueueMany(6)
		l := s.claim(3)
		s.pause(store.Hold{Kind: "mail", AtMost: 2})
		s.cancel(l[0].ID)
		s.expectClaims(0)
		s.settle(completes(l[0]))
		s.expectClaims(0)
		s.settle(completes(l[1]))
		s.expectClaims(1)
	}},
	{"a lost worker's jobs count until they are reclaimed, and not afterwards", func(s *scene) {
		s.enqueueMany(6)
		s.pause(store.Hold{Queue: "default", AtMost: 2})
		same(s, "claimed", len(s.claimAs(store.Claim{Worker: "dead", Limit: 5, Start: 1})), 2)
		s.Advance(longAgo)
		s.expectClaims(0)
		taken := s.reclaim()
		same(s, "reclaimed", len(taken), 1)
		s.expectClaims(1, 0)
		s.settle(releases(taken[0], store.ChargeCrash, time.Hour))
		s.expectClaims(1, 0)
	}},
	{"a renewal changes nothing under a limit", func(s *scene) {
		s.enqueueMany(4)
		s.pause(store.Hold{Queue: "default", AtMost: 2})
		l := s.expectClaims(2)
		for range 3 {
			s.Advance(20 * time.Second)
			s.renew(store.Renewal{Batch: l[0].Batch, Running: ids(l)})
			s.expectClaims(0)
		}
	}},
	{"a limit on a pattern applies to each name separately", func(s *scene) {
		for _, owner := range []string{"eu.a", "eu.b", "us.c"} {
			s.enqueueMany(4, owned(owner))
		}
		s.pause(store.Hold{Owner: "eu.*", AtMost: 2})
		got := map[string]int{}
		for _, l := range s.claim(50) {
			got[l.Owner]++
		}
		same(s, "claimed", got, map[string]int{"eu.a": 2, "eu.b": 2, "us.c": 4})
	}},
	{"a limit on retries counts retries only, and lets first attempts pass", func(s *scene) {
		s.enqueueMany(4)
		for _, l := range s.claim(4) {
			s.settle(retries(l, 0))
		}
		s.enqueueMany(3)
		s.pause(store.Hold{Queue: "default", AtMost: 1, Retries: true})
		leases := s.expectClaims(4, 0)
		for _, l := range leases {
			s.settle(completes(l))
		}
		s.expectClaims(1, 0)
	}},
	{"a limit on a dependency counts all kinds that were declared to call it", func(s *scene) {
		s.depends("mail", "gateway")
		s.depends("pdf", "gateway")
		s.enqueueMany(3)
		s.enqueueMany(3, func(d *holdfast.Draft) { d.Kind = "pdf" })
		s.enqueueMany(3, func(d *holdfast.Draft) { d.Kind, d.Dependency = "fax", "gateway" })
		s.pause(store.Hold{Dependency: "gateway", AtMost: 5})
		s.expectClaims(5, 0)
	}},
	{"all limits on a job must let it through", func(s *scene) {
		s.enqueueMany(5, owned("acme"))
		s.enqueueMany(5, owned("zeta"))
		s.pause(store.Hold{Owner: "acme", AtMost: 1})
		s.pause(store.Hold{Queue: "default", AtMost: 4})
		got := map[string]int{}
		for _, l := range s.claim(50) {
			got[l.Owner]++
		}
		same(s, "claimed", got, map[string]int{"acme": 1, "zeta": 3})
	}},
	{"a limited line gives its first jobs, and a full one does not hide others", func(s *scene) {
		urgent := s.enqueueMany(5, func(d *holdfast.Draft) { d.Kind, d.Priority = "pdf", -1 })
		plain := s.enqueueMany(3)
		s.pause(store.Hold{Kind: "pdf", AtMost: 2})
		leases := s.reopened().claim(4)
		same(s, "claimed", ids(leases), append(urgent[:2:2], plain[:2]...))
		s.settle(completes(leases[0]))
		same(s, "next", ids(s.claim(50)), []holdfast.ID{urgent[2], plain[2]})
	}},
	{"twelve concurrent claims over three handles never exceed a limit", func(s *scene) {
		s.enqueueMany(60)
		s.pause(store.Hold{Queue: "default", AtMost: 5})
		for range 5 {
			for _, l := range s.claimConcurrently(5) {
				s.settle(completes(l))
			}
		}
	}},
	{"workers that claim and settle for a while never hold more than a limit", func(s *scene) {
		s.enqueueMany(90)
		s.pause(store.Hold{Kind: "mail", AtMost: 4})
		stores, done := s.handles(), &lockedCounts{}
		together(9, func(i int) {
			db := stores[i%3]
			for range 30 {
				leases, err := db.Claim(s.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 2, Start: 2, Lease: shortLease})
				if err != nil {
					s.Errorf("claim: %v", err)
				}
				running, _, err := db.Jobs(s.ctx, store.Filter{State: holdfast.Processing})
				if err != nil || len(running) > 4 {
					s.Errorf("%d jobs are processed at once, the limit is 4 (%v)", len(running), err)
				}
				for _, l := range leases {
					if answers, err := db.Settle(s.ctx, []store.Settlement{completes(l)}); err != nil || answers[0] != nil {
						s.Errorf("settle: %v %v", err, answers)
					}
					done.add(l.ID.String())
				}
			}
		})
		same(s, "how often a job was claimed at most", done.most(), 1)
	}},
}

var bucketLaws = []law{
	{"a rate limit gives no more jobs than it has tokens", func(s *scene) {
		s.enqueueMany(9)
		s.pause(rateHold(0, 5, 3))
		l := s.expectClaims(3, 0)
		s.expectLevel(0)
		s.settle(completes(l[0]), releases(l[1], store.ChargeRelease, 0))
		s.expectClaims(0)
	}},
	{"a rate limit refills by the clock, up to its burst", func(s *scene) {
		s.enqueueMany(9)
		s.pause(rateHold(0.5, 3, 1))
		s.expectClaims(1, 0)
		s.Advance(time.Second)
		s.expectLevel(0.5)
		s.expectClaims(0)
		s.Advance(time.Second)
		s.expectClaims(1, 0)
		s.Advance(time.Minute)
		s.expectLevel(3)
		s.expectClaims(3, 0)
	}},
	{"claims that find nothing take no tokens from a rate limit that refills slowly", func(s *scene) {
		s.enqueueMany(2)
		s.pause(rateHold(0.1, 1, 0))
		for range 9 {
			s.Advance(time.Second)
			s.expectClaims(0)
		}
		s.Advance(time.Second)
		s.expectClaims(1, 0)
	}},
	{"a rate limit keeps its level when it is placed again, within the new burst", func(s *scene) {
		s.pause(rateHold(1, 10, 4))
		s.Advance(2 * time.Second)
		s.pause(rateHold(0, 20, 20))
		s.expectLevel(6)
		s.must(s.Store.Apply(s.ctx, store.Change{Place: []store.Hold{{Queue: "default", Actor: "bob", Rate: &store.Rate{PerSecond: 0, Burst: 5}}}}))
		s.expectLevel(5)
		s.pause(store.Hold{Queue: "default"})
		s.pause(rateHold(0, 3, 2))
		s.expectLevel(2)
	}},
	{"a rate limit takes deposits up to its burst, and one that does not exist takes none", func(s *scene) {
		s.enqueueMany(9)
		s.deposit(rateHold(0, 3, 0), 2)
		same(s, "holds", len(s.holds()), 0)
		s.pause(rateHold(0, 3, 0))
		s.deposit(store.Hold{Queue: "default"}, 1.5)
		s.expectLevel(1.5)
		s.expectClaims(1, 0)
		s.deposit(store.Hold{Queue: "default", Source: store.SourceBudget}, 1)
		s.expectLevel(0.5)
		s.deposit(store.Hold{Queue: "default"}, 100)
		s.expectLevel(3)
		s.expectClaims(3, 0)
	}},
	{"a rate limit on retries charges retries only", func(s *scene) {
		s.enqueueMany(3)
		for _, l := range s.claim(3) {
			s.settle(retries(l, 0))
		}
		s.enqueueMany(3)
		hold := rateHold(0, 2, 2)
		hold.Retries, hold.Source = true, store.SourceBudget
		s.pause(hold)
		s.expectClaims(5, 0)
		s.expectLevel(0)
	}},
	{"a rate limit and a limit on the same jobs must both let them through, and jobs held by the limit cost no tokens", func(s *scene) {
		s.enqueueMany(9)
		s.pause(store.Hold{Kind: "mail", AtMost: 2})
		hold := rateHold(0, 5, 5)
		s.pause(hold)
		s.expectClaims(2, 0)
		s.resume(store.Hold{Kind: "mail"})
		s.expectLevel(3)
		s.expectClaims(3, 0)
	}},
	{"a hold may limit both the number and the rate", func(s *scene) {
		s.enqueueMany(9)
		hold := rateHold(0, 5, 3)
		hold.AtMost = 2
		s.pause(hold)
		l := s.expectClaims(2, 0)
		s.settle(completes(l[0]), completes(l[1]))
		s.expectClaims(1, 0)
	}},
	{"twelve concurrent claims over three handles get no more jobs than a rate limit has tokens", func(s *scene) {
		s.enqueueMany(60)
		s.pause(rateHold(0, 10, 7))
		s.claimConcurrently(7)
		s.deposit(store.Hold{Queue: "default"}, 4)
		s.claimConcurrently(4)
		s.expectLevel(0)
	}},
}
