package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// lockedCounts counts under a lock.
type lockedCounts struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *lockedCounts) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[what]++
}

// most is the highest count.
func (t *lockedCounts) most() (highest int) {
	for _, n := range t.n {
		highest = max(highest, n)
	}
	return highest
}

// handles opens the same data several times: goroutines share few of them, as processes would.
func (s *scene) handles() []store.Store {
	return []store.Store{s.Store, s.Reopen(), s.Reopen()}
}

var raceLaws = []law{
	{"sixty-four concurrent enqueues with one unique key create one job", func(s *scene) {
		stores, seen, fresh := s.handles(), &lockedCounts{}, &lockedCounts{}
		together(64, func(i int) {
			d := draft()
			d.UniqueKey = "k"
			receipts, err := stores[i%3].Enqueue(s.ctx, []holdfast.Draft{d})
			if err != nil {
				s.Errorf("enqueue: %v", err)
				return
			}
			seen.add(receipts[0].ID.String())
			if !receipts[0].Existing {
				fresh.add("fresh")
			}
		})
		same(s, "jobs, and how many were first", []int{len(seen.n), fresh.n["fresh"]}, []int{1, 1})
		s.expectJobs(1)
	}},
	{"sixty-four concurrent enqueues with one idempotency key create one job", func(s *scene) {
		stores, seen := s.handles(), &lockedCounts{}
		together(64, func(i int) {
			d := draft()
			d.IdempotencyKey = "once"
			receipts, err := stores[i%3].Enqueue(s.ctx, []holdfast.Draft{d})
			if err != nil {
				s.Errorf("enqueue: %v", err)
				return
			}
			seen.add(receipts[0].ID.String())
		})
		same(s, "jobs", len(seen.n), 1)
		s.expectJobs(1)
	}},
	{"calls with the same keys in opposite order do not deadlock", func(s *scene) {
		stores := s.handles()
		together(16, func(i int) {
			drafts := make([]holdfast.Draft, 8)
			for k := range drafts {
				drafts[k] = draft()
				drafts[k].UniqueKey = fmt.Sprintf("k%d", (k*(1-2*(i%2))+8)%8)
				drafts[k].Queue = fmt.Sprintf("q%d", (k*(1-2*(i%2))+8)%8)
			}
			if _, err := stores[i%3].Enqueue(s.ctx, drafts); err != nil {
				s.Errorf("enqueue: %v", err)
			}
		})
		s.expectJobs(8)
	}},
	{"queues and kinds that appear concurrently are created once", func(s *scene) {
		stores := s.handles()
		name := "lane-" + holdfast.NewID().String()
		together(24, func(i int) {
			if _, err := stores[i%3].Enqueue(s.ctx, []holdfast.Draft{{Kind: name, Queue: name}}); err != nil {
				s.Errorf("enqueue: %v", err)
			}
		})
		same(s, "claimed", len(s.claimAs(store.Claim{Worker: "w", Limit: 100, Queues: []string{name}})), 24)
	}},
	{"concurrent promotions and claims take each job once (sidekiq PR#1495, asynq#90)", func(s *scene) {
		drafts := make([]holdfast.Draft, 200)
		for i := range drafts {
			drafts[i] = draft()
			drafts[i].Delay = time.Second
		}
		s.enqueueAll(drafts...)
		s.Advance(time.Second)
		stores, seen := s.handles(), &lockedCounts{}
		together(20, func(i int) {
			db := stores[i%3]
			for round := range 40 {
				if _, err := db.Promote(s.ctx, 15); err != nil {
					s.Errorf("promote: %v", err)
				}
				leases, err := db.Claim(s.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 7, Start: 7, Lease: shortLease})
				if err != nil {
					s.Errorf("claim: %v", err)
				}
				for _, l := range leases {
					seen.add(l.ID.String())
				}
				if len(leases) == 0 && round > 15 {
					return
				}
			}
		})
		same(s, "jobs claimed, and how often at most", []int{len(seen.n), seen.most()}, []int{200, 1})
	}},
	{"of twenty concurrent manual retries of one job one succeeds", func(s *scene) {
		lease := s.fail()
		stores, won := s.handles(), &lockedCounts{}
		together(20, func(i int) {
			_, err := stores[i%3].Retry(s.ctx, by(lease.ID))
			switch {
			case err == nil:
				won.add("won")
			case !errors.Is(err, holdfast.ErrConflict):
				s.Errorf("retry: %v", err)
			}
		})
		same(s, "winners", won.n["won"], 1)
		s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 2})
		same(s, "events", len(s.history(lease.ID).Events), 1)
	}},
	{"of two failed jobs with one unique key that are retried at once, one gets the key and the error of the other names it", func(s *scene) {
		a := s.fail(unique("k"))
		b := s.fail(unique("k"))
		stores, won := s.handles(), &lockedCounts{}
		together(2, func(i int) {
			_, err := stores[i].Retry(s.ctx, by([]holdfast.ID{a.ID, b.ID}[i]))
			if err == nil {
				won.add("won")
			} else if !errors.Is(err, holdfast.ErrConflict) {
				s.Errorf("retry: %v", err)
			}
		})
		same(s, "winners", won.n["won"], 1)
	}},
	{"when a settlement races a reclaim, exactly one of them has the job (river#1302)", func(s *scene) {
		for range 15 {
			s.raceForJob(completes)
		}
	}},
	{"when a renewal races a reclaim, its answer is true (asynq: a renewed lease was stolen)", func(s *scene) {
		stores := s.handles()
		for range 15 {
			lease := s.start()
			s.Advance(time.Minute)
			var news store.RenewResult
			var taken []store.Lease
			together(2, func(i int) {
				var err error
				if i == 0 {
					news, err = stores[1].Renew(s.ctx, []store.Renewal{{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}}, shortLease)
				} else {
					taken, err = stores[2].Reclaim(s.ctx, store.Claim{Worker: "reclaimer", Limit: 10, Lease: shortLease})
				}
				if err != nil {
					s.Errorf("renew or reclaim: %v", err)
				}
			})
			same(s, "lost and taken", len(news.Lost), len(taken))
			if len(taken) == 1 {
				lease = taken[0]
			}
			s.settle(completes(lease))
		}
	}},
	{"twenty concurrent reclaims take each job once", func(s *scene) {
		for range 10 {
			s.enqueueAll(draft(), draft(), draft())
			s.claimAs(store.Claim{Worker: "w", Limit: 3, Start: 2})
		}
		s.Advance(time.Minute)
		stores, seen := s.handles(), &lockedCounts{}
		together(20, func(i int) {
			for range 10 {
				leases, err := stores[i%3].Reclaim(s.ctx, store.Claim{Worker: fmt.Sprint("k", i), Limit: 3, Lease: shortLease})
				if err != nil {
					s.Errorf("reclaim: %v", err)
				}
				for _, l := range leases {
					seen.add(l.ID.String())
				}
			}
		})
		for _, l := range s.reclaim() { // what each of them left for another
			seen.add(l.ID.String())
		}
		same(s, "reclaimed, and how often at most", []int{len(seen.n), seen.most()}, []int{20, 1})
		same(s, "back in the queue", len(s.claim(100)), 10)
	}},
	{"when a cancel races a completion, it takes effect or is refused as too late", func(s *scene) {
		stores := s.handles()
		for range 15 {
			lease := s.start()
			var answer, refused error
			together(2, func(i int) {
				if i == 0 {
					_, refused = stores[1].Cancel(s.ctx, by(lease.ID))
					return
				}
				answers, err := stores[2].Settle(s.ctx, []store.Settlement{completes(lease)})
				if answer = err; err == nil {
					answer = answers[0]
				}
			})
			s.must(answer)
			if refused == nil {
				s.expectState(lease.ID, holdfast.Cancelled)
			} else {
				s.expectError(refused, holdfast.ErrConflict)
				s.expectState(lease.ID, holdfast.Complete)
			}
		}
	}},
	{"when a cancel races a claim, it takes effect", func(s *scene) {
		stores := s.handles()
		for range 15 {
			id := s.enqueue()
			var leases []store.Lease
			together(2, func(i int) {
				var err error
				if i == 0 {
					_, err = stores[1].Cancel(s.ctx, by(id))
				} else {
					leases, err = stores[2].Claim(s.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: shortLease})
				}
				if err != nil {
					s.Errorf("cancel or claim: %v", err)
				}
			})
			for _, l := range leases {
				s.settle(completes(l))
			}
			s.expectState(id, holdfast.Cancelled)
		}
	}},
	{"a batch settled concurrently, job by job and twice, ends each job once", func(s *scene) {
		drafts := make([]holdfast.Draft, 60)
		for i := range drafts {
			drafts[i] = draft()
		}
		s.enqueueAll(drafts...)
		leases, stores := s.claim(60), s.handles()
		together(12, func(i int) {
			for k := range 10 {
				answers, err := stores[i%3].Settle(s.ctx, []store.Settlement{completes(leases[(i*5+k)%60])})
				if err != nil || answers[0] != nil {
					s.Errorf("settle: %v %v", err, answers)
				}
			}
		})
		same(s, "complete", len(s.jobs(store.Filter{State: holdfast.Complete, Limit: 200})), 60)
	}},
}

// raceForJob lets a worker settle and a reclaim take the same expired job, and expects that exactly one succeeds.
func (s *scene) raceForJob(say func(store.Lease) store.Settlement) {
	s.Helper()
	lease := s.start()
	s.Advance(time.Minute)
	var answer error
	var taken []store.Lease
	together(2, func(i int) {
		if i == 0 {
			answers, err := s.Store.Settle(s.ctx, []store.Settlement{say(lease)})
			if answer = err; err == nil {
				answer = answers[0]
			}
			return
		}
		var err error
		if taken, err = s.Store.Reclaim(s.ctx, store.Claim{Worker: "reclaimer", Limit: 10, Lease: shortLease}); err != nil {
			s.Errorf("reclaim: %v", err)
		}
	})
	if len(taken) == 1 {
		s.expectError(answer, holdfast.ErrLeaseLost)
		s.settle(releases(taken[0], store.ChargeCrash, 0))
		s.settle(completes(s.claimOne()))
	} else {
		s.must(answer)
	}
	s.expectState(lease.ID, holdfast.Complete)
}
