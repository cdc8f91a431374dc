package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// ordered is a draft with the order key k.
func ordered(change ...func(*holdfast.Draft)) holdfast.Draft {
	d := draft()
	d.Order = "k"
	for _, c := range change {
		c(&d)
	}
	return d
}

func holding(d *holdfast.Draft) { d.OrderHold = true }

// inLine enqueues jobs of one line, in order.
func (s *scene) inLine(n int, change ...func(*holdfast.Draft)) []holdfast.ID {
	s.Helper()
	var jobs []holdfast.ID
	for range n {
		jobs = append(jobs, s.enqueueAll(ordered(change...))[0].ID)
	}
	return jobs
}

// next claims everything and expects exactly this job.
func (s *scene) next(id holdfast.ID) store.Lease {
	s.Helper()
	leases := s.claim(9)
	if len(leases) != 1 || leases[0].ID != id {
		s.Fatalf("claimed %v, want %v", ids(leases), id)
	}
	return leases[0]
}

// heldLines lists lines that dead letters hold.
func (s *scene) heldLines(limit int) []store.HeldLine {
	s.Helper()
	lines, err := s.Store.HeldLines(s.ctx, limit)
	s.must(err)
	return lines
}

var orderLaws = []law{
	{"jobs with one order key run one at a time in the order of their enqueue, and the next starts when one ends, in any way", func(s *scene) {
		jobs := s.inLine(7)
		same(s, "waiting", []bool{s.job(jobs[0]).Waiting, s.job(jobs[1]).Waiting, s.job(jobs[6]).Waiting}, []bool{false, true, true})
		same(s, "order", []any{s.job(jobs[0]).Order, s.job(jobs[6]).Order}, []any{"k", "k"})
		same(s, "what the last waits for", s.job(jobs[6]).After, []holdfast.ID{jobs[0]})
		for n, end := range []func(store.Lease){
			func(l store.Lease) { s.settle(completes(l)) },
			func(l store.Lease) { s.settle(fails(l, "BROKEN")) },
			func(l store.Lease) { s.settle(ends(l, holdfast.Cancelled)) },
			func(l store.Lease) { s.cancel(l.ID); s.settle(retries(l, time.Minute)) },
			func(l store.Lease) { s.settle(releases(l, store.ChargeRelease, 0)); s.cancel(l.ID) },
			func(l store.Lease) {
				tx, end := s.Begin()
				answers, err := s.In(tx).Complete(s.ctx, []store.Settlement{completes(l)})
				s.must(err)
				s.must(answers[0])
				s.must(end(true))
			},
		} {
			lease := s.next(jobs[n])
			s.expectClaims(0)
			end(lease)
		}
		s.next(jobs[6])
	}},
	{"a retry, a release and a lost worker of the first job keep the others waiting", func(s *scene) {
		jobs := s.inLine(2)
		s.settle(retries(s.next(jobs[0]), time.Minute))
		s.expectClaims(0)
		s.Advance(time.Minute)
		s.promote(9)
		s.settle(releases(s.next(jobs[0]), store.ChargeRelease, 0))
		s.next(jobs[0])
		s.Advance(longAgo)
		lost := s.reclaim()
		same(s, "reclaimed", ids(lost), []holdfast.ID{jobs[0]})
		s.expectClaims(0)
		s.settle(completes(lost[0]))
		s.next(jobs[1])
	}},
	{"a line has jobs of every insert path, kind and queue of its owner", func(s *scene) {
		first := s.enqueueAll(ordered())[0].ID
		bulk := make([]holdfast.Draft, 150)
		for i := range bulk {
			bulk[i] = draft()
			bulk[i].Queue = "slow"
		}
		bulk[70], bulk[71] = ordered(func(d *holdfast.Draft) { d.Kind = "pdf" }), ordered(func(d *holdfast.Draft) { d.Queue = "slow" })
		receipts := s.enqueueAll(bulk...)
		tx, end := s.Begin()
		_, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{ordered()})
		s.must(err)
		s.must(end(false))
		tx, end = s.Begin()
		in, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{ordered()})
		s.must(err)
		s.must(end(true))
		other := s.enqueueAll(ordered(func(d *holdfast.Draft) { d.Owner = "acme" }))[0].ID
		both := s.claim(9)
		same(s, "the first of each owner", []int{len(both)}, []int{1 + 1})
		for _, l := range both {
			same(s, "first", l.ID == first || l.ID == other, true)
			s.settle(completes(l))
		}
		s.settle(completes(s.next(receipts[70].ID)))
		for {
			leases := s.claimAs(store.Claim{Worker: "w", Limit: 50, Start: 50, Queues: []string{"slow", "default"}})
			if len(leases) == 0 {
				break
			}
			for _, l := range leases {
				same(s, "not before the one ahead of it", l.ID == in[0].ID && s.job(receipts[71].ID).State != holdfast.Complete, false)
				s.settle(completes(l))
			}
		}
		s.expectState(in[0].ID, holdfast.Complete)
	}},
	{"a first job that is scheduled keeps the others waiting, and a job starts at its own time when it is the first", func(s *scene) {
		late := s.inLine(1, at(time.Minute))[0]
		jobs := s.inLine(1, at(2*time.Minute))
		last := s.inLine(1)[0]
		s.expectClaims(0)
		s.Advance(time.Minute)
		s.promote(9)
		s.settle(completes(s.next(late)))
		same(s, "waiting", s.job(jobs[0]).Waiting, false)
		s.expectClaims(0)
		s.Advance(time.Minute)
		s.promote(9)
		s.settle(completes(s.next(jobs[0])))
		s.next(last)
	}},
	{"a dead letter that holds its line keeps the others waiting until it completes after a retry", func(s *scene) {
		jobs := s.inLine(2, holding)
		s.settle(fails(s.next(jobs[0]), "BROKEN"))
		s.expectClaims(0)
		same(s, "what it waits for", s.job(jobs[1]).After, []holdfast.ID{jobs[0]})
		s.retry(jobs[0])
		s.settle(completes(s.next(jobs[0])))
		s.next(jobs[1])
	}},
	{"a dead letter that holds its line lets the others go when it is discarded, redriven to its end, or purged; a benign failure holds nothing", func(s *scene) {
		jobs := s.inLine(5, holding)
		s.settle(fails(s.next(jobs[0]), "BROKEN"))
		s.must(s.Store.Discard(s.ctx, by(jobs[0])))
		s.settle(fails(s.next(jobs[1]), "BROKEN"))
		for n := range 2 {
			answers, err := s.Store.Redrive(s.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: jobs[1:2], Actor: "ada", Reason: "again", Discard: n == 1})
			s.must(err)
			s.must(answers[0])
			if n == 0 {
				s.settle(fails(s.next(jobs[1]), "BROKEN"))
			}
		}
		benign := fails(s.next(jobs[2]), "EXPECTED")
		benign.Failure.Benign = true
		s.settle(benign)
		s.settle(fails(s.next(jobs[3]), "BROKEN"))
		s.Advance(time.Hour)
		same(s, "purged", s.purge(store.Purge{Rules: []store.RetentionRule{{Name: "all", State: holdfast.Failed, For: time.Minute}}}).Jobs, 4)
		s.advanceGroups()
		s.next(jobs[4])
	}},
	{"lines that dead letters hold are listed, the oldest job first, until the dead letters no longer hold them", func(s *scene) {
		jobs := s.inLine(4, holding)
		other := s.enqueueAll(ordered(holding, func(d *holdfast.Draft) { d.Owner, d.Order, d.Kind, d.Queue = "acme", "l", "pdf", "slow" }))[0].ID
		lease := s.next(jobs[0])
		same(s, "none", len(s.heldLines(9)), 0)
		s.settle(fails(lease, "BROKEN"))
		s.Advance(time.Minute)
		at := s.job(other).AsOf
		slow := s.claimAs(store.Claim{Worker: "w1", Queues: []string{"slow"}, Limit: 1, Start: 1, Lease: shortLease})
		s.settle(fails(slow[0], "EMPTY"))
		all := []store.HeldLine{
			{Order: "k", Job: jobs[0], Kind: "mail", Queue: "default", Code: "BROKEN", Since: at.Add(-time.Minute), Waiting: 3},
			{Owner: "acme", Order: "l", Job: other, Kind: "pdf", Queue: "slow", Code: "EMPTY", Since: at},
		}
		same(s, "held", s.heldLines(9), all)
		same(s, "the first", s.heldLines(1), all[:1])
		s.retry(jobs[0])
		same(s, "while the dead letter is retried", s.heldLines(9), all[1:])
		s.settle(fails(s.next(jobs[0]), "BROKEN"))
		same(s, "failed again", len(s.heldLines(9)), 2)
		s.must(s.Store.Discard(s.ctx, by(jobs[0])))
		s.must(s.Store.Discard(s.ctx, by(other)))
		same(s, "discarded", len(s.heldLines(9)), 0)
		benign := fails(s.next(jobs[1]), "EXPECTED")
		benign.Failure.Benign = true
		s.settle(benign)
		same(s, "benign", len(s.heldLines(9)), 0)
		for _, limit := range []int{0, 1001} {
			_, err := s.Store.HeldLines(s.ctx, limit)
			s.expectError(err, holdfast.ErrInvalid)
		}
	}},
	{"a dead letter that does not hold its line goes to the end of it when it is retried or redriven", func(s *scene) {
		jobs := s.inLine(3)
		s.settle(fails(s.next(jobs[0]), "BROKEN"))
		second := s.next(jobs[1])
		s.retry(jobs[0])
		s.expectClaims(0)
		same(s, "waiting", s.job(jobs[0]).Waiting, true)
		_, err := s.Store.Retry(s.ctx, by(jobs[0]))
		s.expectConflict(err, jobs[0])
		s.settle(fails(second, "BROKEN"))
		answers, err := s.Store.Redrive(s.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: jobs[1:2], Actor: "ada"})
		s.must(err)
		s.must(answers[0])
		for _, id := range []holdfast.ID{jobs[2], jobs[0], jobs[1]} {
			s.settle(completes(s.next(id)))
		}
		alone := s.inLine(1)[0]
		s.settle(fails(s.next(alone), "BROKEN"))
		s.retry(alone)
		s.next(alone)
	}},
	{"waiting jobs are cancelled, edited and expire where they wait, and the line continues without those that ended", func(s *scene) {
		jobs := s.inLine(3)
		expiring := s.inLine(1, func(d *holdfast.Draft) { d.ExpireIn = time.Minute })[0]
		last := s.inLine(1)[0]
		s.cancel(jobs[1])
		same(s, "edited", []any{s.edit(jobs[2], toPriority(-5), withPatch(`7`)).Waiting, string(s.job(jobs[2]).Args)}, []any{true, "7"})
		first := s.next(jobs[0])
		s.Advance(2 * time.Minute)
		s.renew(store.Renewal{Batch: first.Batch, Running: []holdfast.ID{first.ID}})
		expired := s.expire()
		same(s, "expired", ids(expired), []holdfast.ID{expiring})
		s.settle(fails(expired[0], "JOB_EXPIRED"))
		s.expectClaims(0)
		s.settle(completes(first))
		s.settle(completes(s.next(jobs[2])))
		s.next(last)
	}},
	{"a line whose first job was ended by a program that knows no lines, or was deleted, moves on with AdvanceGroups", func(s *scene) {
		jobs := s.inLine(3)
		lease := s.next(jobs[0])
		s.must(s.Corrupt("order", jobs[0], "")) // its end does not look for the next
		s.settle(completes(lease))
		s.expectClaims(0)
		s.advanceGroups()
		s.settle(completes(s.next(jobs[1])))
		s.next(jobs[2])
	}},
	{"a draft that takes over the unique key of a running job with the same order key runs after it, and can be replaced until then", func(s *scene) {
		content := func(args string) holdfast.Draft {
			return replacing(args, following, func(d *holdfast.Draft) { d.Order = "k" })
		}
		first := s.enqueueAll(content("1"))[0].ID
		lease := s.next(first)
		second := s.enqueueAll(content("2"))[0]
		same(s, "replaced", s.enqueueAll(content("3"))[0], holdfast.Receipt{ID: second.ID, Existing: true, Replaced: true})
		same(s, "waiting", s.job(second.ID).Waiting, true)
		s.settle(retries(lease, 0))
		s.settle(completes(s.next(first)))
		same(s, "arguments", string(s.next(second.ID).Args), "3")
	}},
	{"a draft with an order key that has no line is refused", func(s *scene) {
		for _, bad := range []func(*holdfast.Draft){
			func(d *holdfast.Draft) { d.Group = holdfast.NewID() }, func(d *holdfast.Draft) { d.Order, d.OrderHold = "", true },
			func(d *holdfast.Draft) { d.Order = strings.Repeat("k", 300) }, func(d *holdfast.Draft) { d.Order = "a\x00" },
		} {
			_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), ordered(bad)})
			s.expectError(err, holdfast.ErrInvalid)
		}
		s.expectJobs(0)
	}},
	{"concurrent enqueues and workers run each job of a line once, and never two at a time", func(s *scene) {
		stores := s.handles()
		const jobs = 40
		var running [3]atomic.Int32
		var left atomic.Int32
		left.Store(jobs)
		ran := &lockedCounts{}
		work := func(i int) int {
			leases, err := stores[i%3].Claim(s.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 3, Start: 3, Lease: longAgo})
			if err != nil {
				s.Errorf("claim: %v", err)
			}
			for _, l := range leases {
				key := l.Priority
				if n := running[key].Add(1); n > 1 {
					s.Errorf("%d jobs of line %d run at the same time", n, key)
				}
				ran.add(l.ID.String())
				running[key].Add(-1)
				if answers, err := stores[i%3].Settle(s.ctx, []store.Settlement{completes(l)}); err != nil || answers[0] != nil {
					s.Errorf("settle: %v %v", answers, err)
				}
			}
			return len(leases)
		}
		together(jobs+4, func(i int) {
			if i >= jobs {
				for left.Load() > 0 {
					work(i)
				}
				return
			}
			defer left.Add(-1)
			if _, err := stores[i%3].Enqueue(s.ctx, []holdfast.Draft{ordered(func(d *holdfast.Draft) { d.Order, d.Priority = fmt.Sprint(i%3), int16(i%3) })}); err != nil {
				s.Errorf("enqueue: %v", err)
			}
		})
		for idle := 0; idle < 3; idle++ {
			if work(0) > 0 {
				idle = 0
			}
			s.advanceGroups()
		}
		same(s, "jobs that ran", []int{len(ran.n), ran.most()}, []int{jobs, 1})
	}},
}
