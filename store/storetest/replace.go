package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// replacing is a draft with the key k that replaces the job with the key.
func replacing(args string, change ...func(*holdfast.Draft)) holdfast.Draft {
	d := draft()
	d.UniqueKey, d.Args, d.Replace = "k", raw(args), &holdfast.Replace{}
	for _, c := range change {
		c(&d)
	}
	return d
}

// debounced gives a draft a start time that moves with every draft.
func debounced(quiet, most time.Duration) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Delay, d.Replace = quiet, &holdfast.Replace{Start: true, MaxAge: most} }
}

func following(d *holdfast.Draft) { d.Replace.Follow = true }

var replaceLaws = []law{
	{"a draft replaces the content of the queued job with its key on every insert path: alone, in bulk, in a transaction", func(s *scene) {
		id := s.enqueue(unique("k"), func(d *holdfast.Draft) { d.Args = raw(`{"n":0}`) })
		want := holdfast.Receipt{ID: id, Existing: true, Replaced: true}
		same(s, "alone", s.enqueueAll(replacing(`{"n":1}`))[0], want)
		same(s, "arguments", string(s.job(id).Args), `{"n":1}`)
		bulk := make([]holdfast.Draft, 150)
		for i := range bulk {
			bulk[i] = draft()
			bulk[i].Queue = "slow"
		}
		bulk[70] = replacing(`{"n":2}`)
		same(s, "in bulk", s.enqueueAll(bulk...)[70], want)
		same(s, "arguments", string(s.job(id).Args), `{"n":2}`)
		for _, commit := range []bool{false, true} {
			tx, end := s.Begin()
			receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{replacing(`{"n":3}`)})
			s.must(err)
			same(s, "in a transaction", receipts[0], want)
			s.must(end(commit))
			same(s, "arguments", string(s.job(id).Args), map[bool]string{false: `{"n":2}`, true: `{"n":3}`}[commit])
		}
		s.must(s.Store.Apply(s.ctx, store.Change{Enqueue: []holdfast.Draft{replacing(`{"n":4}`)}}))
		s.expectJobs(1 + 149)
		lease := s.claimOne()
		same(s, "claimed", []any{lease.ID, string(lease.Args)}, []any{id, `{"n":4}`})
		same(s, "nothing else is claimed", len(s.claim(9)), 0)
	}},
	{"the job takes everything from the draft but its id, idempotency key and start time, and its story has the replaced values", func(s *scene) {
		id := s.enqueue(unique("k"), func(d *holdfast.Draft) {
			d.Args, d.Priority, d.Tags, d.Delay, d.IdempotencyKey, d.ExpireIn = raw(`{"n": 1.00}`), 3, []string{"red"}, time.Minute, "once", time.Hour
		})
		want := s.job(id)
		s.Advance(time.Second)
		s.enqueueAll(replacing(`{"n":2}`, func(d *holdfast.Draft) {
			d.Queue, d.Priority, d.Tags, d.MaxAttempts, d.Dependency, d.RetryWithin, d.Trace, d.ExpireIn = "slow", -1, []string{"blue", "green"}, 4, "gateway", time.Minute, traceparent, 2*time.Hour
			d.Delay, d.IdempotencyKey = time.Hour, "twice"
		}))
		job := s.job(id)
		want.Args, want.Queue, want.Priority, want.Tags, want.MaxAttempts, want.Dependency, want.RetryWithin, want.Trace = raw(`{"n":2}`), "slow", -1, []string{"blue", "green"}, 4, "gateway", time.Minute, traceparent
		want.AsOf, want.ExpireAt = job.AsOf, job.AsOf.Add(2*time.Hour)
		same(s, "job", job, want)
		events := s.history(id).Events
		same(s, "lines", len(events), 1)
		e := events[0]
		same(s, "line", []any{e.Name, e.Actor, e.Token, e.Generation, e.At}, []any{"replace", "holdfast", 0, 1, job.AsOf})
		same(s, "replaced", string(e.Was), `{"args":{"n": 1.00},"queue":"default","priority":3,"tags":["red"],"max_attempts":0,"dependency":""}`)
		for _, word := range []string{"arguments", "queue default to slow", "priority 3 to -1", "tags", "attempts 0 to 4", "dependency"} {
			same(s, "the reason says "+word, strings.Contains(e.Reason, word), true)
		}
		s.Advance(time.Minute)
		s.promote(10)
		same(s, "claimed where it was", len(s.claim(9)), 0)
		same(s, "claimed where it is", ids(s.claimAs(store.Claim{Worker: "w1", Limit: 9, Queues: []string{"slow"}})), []holdfast.ID{id})
	}},
	{"a replaced job keeps its place in the order of age, and takes the draft's priority", func(s *scene) {
		first, second, urgent := s.enqueue(unique("k")), s.enqueue(), s.enqueue(func(d *holdfast.Draft) { d.Priority = -1 })
		s.enqueueAll(replacing("1"))
		same(s, "order", ids(s.claim(9)), []holdfast.ID{urgent, first, second})
		id := s.enqueue(unique("k2"), func(d *holdfast.Draft) { d.Priority = 5 })
		other := s.enqueue()
		s.enqueueAll(replacing("1", unique("k2"), func(d *holdfast.Draft) { d.Priority = -5 }))
		same(s, "order by priority", ids(s.claim(9)), []holdfast.ID{id, other})
	}},
	{"drafts with a start time put the job off, at the latest until its maximum age", func(s *scene) {
		id := s.enqueueAll(replacing("0", debounced(time.Minute, 150*time.Second)))[0].ID
		created := s.job(id).CreatedAt
		for n, due := range []time.Duration{90 * time.Second, 120 * time.Second, 150 * time.Second, 150 * time.Second} {
			s.Advance(30 * time.Second)
			same(s, "promoted", s.promote(9), 0)
			receipt := s.enqueueAll(replacing("0", debounced(time.Minute, 150*time.Second)))[0]
			same(s, "receipt", receipt, holdfast.Receipt{ID: id, Existing: true, Replaced: true})
			same(s, fmt.Sprintf("due after %d", n), s.job(id).DueAt, created.Add(due))
		}
		same(s, "events of drafts with the same content", len(s.history(id).Events), 0)
		s.Advance(29 * time.Second)
		s.enqueueAll(replacing("1", debounced(time.Minute, 0)))
		same(s, "without a maximum", s.job(id).DueAt, created.Add(209*time.Second))
		s.enqueueAll(replacing("2", debounced(time.Minute, time.Second)))
		same(s, "past its maximum it is claimable at once", ids(s.claim(9)), []holdfast.ID{id})
		same(s, "events", len(s.history(id).Events), 2)
	}},
	{"a job that was ready can be put off, and one that was put off can be made ready", func(s *scene) {
		id := s.enqueue(unique("k"))
		s.enqueueAll(replacing("1", debounced(time.Minute, 0)))
		s.expectClaims(0)
		s.enqueueAll(replacing("2", debounced(0, 0)))
		lease := s.claimOne()
		same(s, "claimed", []any{lease.ID, string(lease.Args), lease.RunAt.IsZero()}, []any{id, "2", true})
	}},
	{"a job that was claimed is not replaced: while it runs, waits for a retry, or was released", func(s *scene) {
		lease := s.start(unique("k"))
		kept := func(when string) {
			s.Helper()
			before := s.job(lease.ID)
			same(s, when, s.enqueueAll(replacing(`"new"`))[0], holdfast.Receipt{ID: lease.ID, Existing: true})
			same(s, when, s.job(lease.ID), before)
		}
		kept("while it runs")
		s.settle(retries(lease, time.Minute))
		kept("while it waits for a retry")
		s.Advance(time.Minute)
		s.promote(9)
		kept("when its retry is due")
		s.settle(releases(s.claimOne(), store.ChargeRelease, 0))
		kept("after a release")
		s.settle(fails(s.claimOne(), "BROKEN"))
		s.retry(lease.ID)
		kept("after a manual retry")
		s.settle(completes(s.claimOne()))
		same(s, "after its end", s.enqueueAll(replacing(`"new"`))[0].Existing, false)
		same(s, "events", len(s.history(lease.ID).Events), 1)
	}},
	{"a draft that follows takes the key from a job that was claimed, and becomes a new job that can be replaced", func(s *scene) {
		lease := s.start(unique("k"))
		tx, end := s.Begin()
		_, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{replacing("0", following)})
		s.must(err)
		s.must(end(false))
		same(s, "key after a rollback", s.job(lease.ID).UniqueKey, "k")
		receipt := s.enqueueAll(replacing("1", following))[0]
		same(s, "existing", receipt.Existing, false)
		same(s, "key of the running job", s.job(lease.ID).UniqueKey, "")
		events := s.history(lease.ID).Events
		same(s, "event", []any{len(events), events[0].Name, strings.Contains(events[0].Reason, receipt.ID.String()), events[0].Token}, []any{1, "key passed", true, 1})
		same(s, "next", s.enqueueAll(replacing("2", following))[0], holdfast.Receipt{ID: receipt.ID, Existing: true, Replaced: true})
		s.settle(fails(lease, "BROKEN"))
		same(s, "the end of the other job does not free the key", s.enqueueAll(replacing("3"))[0].ID, receipt.ID)
		s.retry(lease.ID) // it needs no key
		s.expectJobs(2)
		same(s, "arguments", string(s.job(receipt.ID).Args), "3")
		for _, l := range s.claim(9) {
			s.settle(retries(l, time.Hour))
		}
		tx, end = s.Begin()
		receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{replacing("4", following)})
		s.must(err)
		s.must(end(true))
		same(s, "from a job that waits for a retry", []any{receipts[0].Existing, s.job(receipt.ID).UniqueKey}, []any{false, ""})
	}},
	{"a complete job that keeps its key is returned, also to a draft that follows", func(s *scene) {
		done := func(d *holdfast.Draft) { d.UniqueDone = true }
		lease := s.start(unique("k"), done)
		s.settle(completes(lease))
		same(s, "receipt", s.enqueueAll(replacing("1", following, done))[0], holdfast.Receipt{ID: lease.ID, Existing: true})
		s.expectJobs(1)
	}},
	{"drafts of one call with one key are one job with the content of the last", func(s *scene) {
		receipts := s.enqueueAll(replacing("1"), replacing("2"), draft(), replacing("3", func(d *holdfast.Draft) { d.Queue = "slow" }))
		same(s, "receipts", []bool{receipts[0].Existing, receipts[1].Replaced, receipts[3].Replaced}, []bool{false, true, true})
		same(s, "ids", []holdfast.ID{receipts[1].ID, receipts[3].ID}, []holdfast.ID{receipts[0].ID, receipts[0].ID})
		job := s.job(receipts[0].ID)
		same(s, "job", []any{string(job.Args), job.Queue, len(s.history(job.ID).Events)}, []any{"3", "slow", 2})
		s.expectJobs(2)
	}},
	{"a draft that is repeated with its idempotency key replaces once", func(s *scene) {
		id := s.enqueue(unique("k"))
		once := replacing("1", func(d *holdfast.Draft) { d.IdempotencyKey = "once" })
		same(s, "first", s.enqueueAll(once)[0], holdfast.Receipt{ID: id, Existing: true, Replaced: true})
		s.enqueueAll(replacing("2"))
		same(s, "again", s.enqueueAll(once)[0], holdfast.Receipt{ID: id, Existing: true})
		same(s, "arguments", string(s.job(id).Args), "2")
		other := once
		other.Replace = &holdfast.Replace{Follow: true}
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{other})
		s.expectConflict(err, id)
	}},
	{"the expiry of the last draft counts", func(s *scene) {
		id := s.enqueue(unique("k"), func(d *holdfast.Draft) { d.ExpireIn = time.Minute })
		s.enqueueAll(replacing("1", func(d *holdfast.Draft) { d.ExpireIn = time.Hour }))
		s.Advance(2 * time.Minute)
		same(s, "expired early", len(s.expire()), 0)
		s.Advance(time.Hour)
		expired := s.expire()
		same(s, "expired", ids(expired), []holdfast.ID{id})
		s.settle(fails(expired[0], "JOB_EXPIRED"))
		next := s.enqueueAll(replacing("2", unique("k3"), func(d *holdfast.Draft) { d.ExpireIn = time.Minute }))[0].ID
		s.enqueueAll(replacing("3", unique("k3")))
		s.Advance(time.Hour)
		same(s, "expired without an expiry", len(s.expire()), 0)
		same(s, "expiry", s.job(next).ExpireAt.IsZero(), true)
	}},
	{"a replaced job that was set aside behind a held tag is claimable without the tag", func(s *scene) {
		s.pause(store.Hold{Tag: "red"})
		id := s.enqueue(unique("k"), tagged("red"))
		s.expectClaims(0)
		s.enqueueAll(replacing("1", tagged("red")))
		s.expectClaims(0)
		s.enqueueAll(replacing("2"))
		same(s, "claimed", ids(s.claim(9)), []holdfast.ID{id})
	}},
	{"a member of a group that waits for others takes the content of a draft, and still waits", func(s *scene) {
		group := s.gather()
		receipts := s.enqueueAll(holdfast.Draft{ID: holdfast.NewID(), Kind: "mail", Group: group})
		member := s.enqueueAll(holdfast.Draft{Kind: "mail", Group: group, UniqueKey: "k", After: []holdfast.ID{receipts[0].ID}})[0].ID
		same(s, "receipt", s.enqueueAll(replacing("1", debounced(time.Minute, 0)))[0], holdfast.Receipt{ID: member, Existing: true, Replaced: true})
		same(s, "receipt", s.enqueueAll(replacing("2", debounced(0, 0)))[0], holdfast.Receipt{ID: member, Existing: true, Replaced: true})
		job := s.job(member)
		same(s, "member", []any{string(job.Args), job.Waiting, job.Group}, []any{"2", true, group})
		same(s, "claimed", ids(s.claim(9)), []holdfast.ID{receipts[0].ID})
	}},
	{"a draft that cannot replace is refused, and nothing is written", func(s *scene) {
		id := s.enqueue(unique("k"))
		for _, bad := range []func(*holdfast.Draft){
			func(d *holdfast.Draft) { d.UniqueKey = "" }, func(d *holdfast.Draft) { d.Replace.MaxAge = time.Second },
			func(d *holdfast.Draft) { d.Replace = &holdfast.Replace{Start: true, MaxAge: -1} }, func(d *holdfast.Draft) { d.Group = holdfast.NewID() },
		} {
			_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), replacing("1", bad)})
			s.expectError(err, holdfast.ErrInvalid)
		}
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{replacing("1"), {ID: id, Kind: "mail"}})
		s.expectConflict(err, id)
		same(s, "arguments", string(s.job(id).Args), "null")
		s.expectJobs(1)
	}},
	{"of concurrent drafts that replace each other and are claimed, each content that an untouched job had last runs, and no other", func(s *scene) {
		stores := s.handles()
		const drafts = 60
		var last [drafts]atomic.Pointer[holdfast.Receipt]
		ran := &lockedCounts{}
		var left atomic.Int32
		left.Store(drafts)
		claim := func(i int) int {
			leases, err := stores[i%3].Claim(s.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 3, Start: 3, Lease: longAgo})
			if err != nil {
				s.Errorf("claim: %v", err)
			}
			var done []store.Settlement
			for _, l := range leases {
				ran.add(l.ID.String() + " " + string(l.Args))
				done = append(done, completes(l))
			}
			if len(done) > 0 {
				if _, err := stores[i%3].Settle(s.ctx, done); err != nil {
					s.Errorf("settle: %v", err)
				}
			}
			return len(leases)
		}
		together(drafts+4, func(i int) {
			if i >= drafts {
				for left.Load() > 0 {
					claim(i)
				}
				return
			}
			defer left.Add(-1)
			receipts, err := stores[i%3].Enqueue(s.ctx, []holdfast.Draft{replacing(fmt.Sprint(i), following)})
			if err != nil {
				s.Errorf("enqueue: %v", err)
				return
			}
			last[i].Store(&receipts[0])
		})
		for claim(0) > 0 {
		}
		perJob := map[string]int{}
		for what, n := range ran.n {
			job, _, _ := strings.Cut(what, " ")
			perJob[job] += n
		}
		fresh := 0
		for i := range last {
			if r := last[i].Load(); r != nil && !r.Existing {
				fresh++
				same(s, "runs of "+r.ID.String(), perJob[r.ID.String()], 1)
			} else if r != nil {
				same(s, "replaced or new", r.Replaced, true)
			}
		}
		same(s, "jobs", len(perJob), fresh)
		for _, job := range s.jobs(store.Filter{Limit: 200}) {
			same(s, "the content that ran is the one that is stored", ran.n[job.ID.String()+" "+string(job.Args)], 1)
		}
	}},
}
