package storetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

var enqueueLaws = []law{
	{"an acknowledged job is stored with every fact exactly", func(s *scene) {
		d := holdfast.Draft{
			Kind: "mail.send", Queue: "slow/eu", Args: raw(`{"b": 1.50,  "a":"ü\u0041"}`), Priority: -3, Owner: "acme",
			Tags: []string{"x", "y z"}, MaxAttempts: 7, UniqueKey: "k", IdempotencyKey: "once", ExpireIn: time.Hour,
		}
		id := s.enqueueAll(d)[0].ID
		got := s.job(id)
		now := got.AsOf
		same(s, "job", got, holdfast.Job{
			ID: id, Kind: d.Kind, Queue: d.Queue, Args: d.Args, Priority: -3, Owner: "acme", Tags: d.Tags, MaxAttempts: 7, UniqueKey: "k",
			IdempotencyKey: "once", CreatedAt: now, ExpireAt: now.Add(time.Hour), State: holdfast.Queued, DueAt: now, Generation: 1, AsOf: now,
		})
	}},
	{"a job's trace is shown wherever the job is, on every insert path, and is not part of a draft's digest", func(s *scene) {
		s.expectTraced(s.enqueueAll(traced(draft()))[0].ID)
		s.expectTraced(s.enqueue(at(time.Minute), func(d *holdfast.Draft) { d.Trace = traceparent }))
		many := make([]holdfast.Draft, 150)
		for i := range many {
			many[i] = traced(draft())
		}
		s.expectTraced(s.enqueueAll(many...)[149].ID)
		tx, end := s.Begin()
		receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{traced(draft())})
		s.must(err)
		s.must(end(true))
		s.expectTraced(receipts[0].ID)
		s.must(s.Store.Apply(s.ctx, store.Change{Enqueue: []holdfast.Draft{traced(holdfast.Draft{Kind: "kept", Queue: "default"})}}))
		s.expectTraced(s.jobs(store.Filter{Kind: "kept"})[0].ID)
		group := s.gather(func(g *holdfast.Group) {
			g.Then = []holdfast.Then{{Draft: traced(holdfast.Draft{Kind: "continued", Queue: "next"})}}
		})
		s.expectTraced(s.enqueue(in(group), func(d *holdfast.Draft) { d.Trace = traceparent }))
		s.seal(group)
		s.Advance(time.Minute)
		s.promote(9)
		s.run()
		s.expectTraced(s.jobs(store.Filter{Kind: "continued"})[0].ID)
		once := traced(draft())
		once.IdempotencyKey = "once"
		id := s.enqueueAll(once)[0].ID
		once.Trace = ""
		same(s, "the same draft from elsewhere", s.enqueueAll(once)[0], holdfast.Receipt{ID: id, Existing: true})
	}},
	{"leases of a claim, a reclaim and an expiry carry the trace", func(s *scene) {
		id := s.enqueueAll(traced(draft()))[0].ID
		same(s, "claimed", s.claimOne().Trace, traceparent)
		s.Advance(shortLease)
		lost := s.reclaim()
		same(s, "reclaimed", lost[0].Trace, traceparent)
		s.settle(completes(lost[0]))
		soon := traced(draft())
		soon.ExpireIn = time.Second
		s.enqueueAll(soon)
		s.Advance(time.Second)
		late := s.expire()
		same(s, "expired", late[0].Trace, traceparent)
		s.settle(fails(late[0], "EXPIRED"))
		same(s, "ended", s.job(id).Trace, traceparent)
		same(s, "untraced", s.start().Trace, "")
	}},
	{"a job without a queue waits in the default one, and without arguments carries null", func(s *scene) {
		job := s.job(s.enqueueAll(holdfast.Draft{Kind: "mail"})[0].ID)
		same(s, "queue", job.Queue, holdfast.DefaultQueue)
		same(s, "args", string(job.Args), "null")
	}},
	{"receipts come in the order of the drafts", func(s *scene) {
		drafts := make([]holdfast.Draft, 150)
		for i := range drafts {
			drafts[i] = draft()
			drafts[i].ID = holdfast.NewID()
		}
		drafts[3], drafts[120] = drafts[120], drafts[3]
		for i, r := range s.enqueueAll(drafts...) {
			same(s, "receipt", r, holdfast.Receipt{ID: drafts[i].ID})
		}
	}},
	{"an empty enqueue returns no receipts", func(s *scene) {
		receipts, err := s.Store.Enqueue(s.ctx, nil)
		s.must(err)
		same(s, "receipts", receipts, []holdfast.Receipt{})
	}},
	{"one invalid draft refuses them all", func(s *scene) {
		for _, bad := range []func(*holdfast.Draft){
			func(d *holdfast.Draft) { d.Kind = "" },
			func(d *holdfast.Draft) { d.Kind = "two words" },
			func(d *holdfast.Draft) { d.Queue = strings.Repeat("q", check.MaxName+1) },
			func(d *holdfast.Draft) { d.Args = raw(`{"a":`) },
			func(d *holdfast.Draft) { d.Args = raw(`"` + strings.Repeat("x", check.MaxArgs) + `"`) },
			func(d *holdfast.Draft) { d.Args = raw("\"\xff\"") },
			func(d *holdfast.Draft) { d.Delay = -1 },
			func(d *holdfast.Draft) { d.Delay, d.RunAt = 1, time.Now() },
			func(d *holdfast.Draft) { d.ExpireIn = 1 << 62 },
			func(d *holdfast.Draft) { d.Tags = []string{""} },
			func(d *holdfast.Draft) { d.Owner = "a\nb" },
			func(d *holdfast.Draft) { d.UniqueKey = strings.Repeat("k", check.MaxKey+1) },
			func(d *holdfast.Draft) { d.MaxAttempts = -1 },
		} {
			d := draft()
			bad(&d)
			_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), d})
			s.expectError(err, holdfast.ErrInvalid)
		}
		s.expectJobs(0)
	}},
	{"the largest allowed arguments are stored", func(s *scene) {
		args := raw(`"` + strings.Repeat("x", check.MaxArgs-2) + `"`)
		s.enqueue(func(d *holdfast.Draft) { d.Args = args })
		same(s, "args", string(s.claimOne().Args), string(args))
	}},
	{"unusual but valid arguments are returned unchanged: escaped NUL bytes, duplicate names, large numbers (river#1153)", func(s *scene) {
		for _, args := range []string{`"\u0000"`, `{"a":1,"a":2}`, `123456789012345678901234567890.5e3`, `[]`, ` {} `, `"\ud800"`, `""`, `false`} {
			id := s.enqueue(func(d *holdfast.Draft) { d.Args = raw(args) })
			same(s, "args shown", string(s.job(id).Args), args)
			lease := s.claimOne()
			same(s, "args claimed", string(lease.Args), args)
			same(s, "corrupt", lease.Corrupt, "")
			s.settle(completes(lease))
		}
	}},
	{"a delayed job is not claimable before its due time, and is after promotion", func(s *scene) {
		id := s.enqueue(at(time.Minute))
		job := s.job(id)
		same(s, "due", job.DueAt, job.AsOf.Add(time.Minute))
		s.Advance(time.Minute - time.Microsecond)
		same(s, "promoted", s.promote(10), 0)
		same(s, "claimed", len(s.claim(1)), 0)
		s.Advance(time.Microsecond)
		same(s, "promoted", s.promote(10), 1)
		same(s, "due after promotion", s.job(id).DueAt, job.DueAt)
		same(s, "claimed", s.claimOne().ID, id)
	}},
	{"a run time in the past means at once, and one in the future is the due time", func(s *scene) {
		now := s.job(s.enqueue()).AsOf
		old := s.enqueue(func(d *holdfast.Draft) { d.RunAt = now.Add(-time.Hour) })
		next := s.enqueue(func(d *holdfast.Draft) { d.RunAt = now.Add(time.Hour) })
		same(s, "claimed", ids(s.claim(9))[1], old)
		same(s, "due", s.job(next).DueAt, now.Add(time.Hour))
	}},
	{"a delay of a hundred years is not an overflow (pg-boss#389)", func(s *scene) {
		id := s.enqueue(at(check.MaxDelay))
		job := s.job(id)
		same(s, "due", job.DueAt, job.AsOf.Add(check.MaxDelay))
		same(s, "promoted", s.promote(10), 0)
	}},
	{"an id that exists is refused, the error names it, and nothing of the call is written (river PR#1390, bullmq#458: ids are never reused)", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		again := draft()
		again.ID = lease.ID
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), again})
		s.expectConflict(err, lease.ID)
		s.expectJobs(1)
	}},
	{"a call whose context has ended writes everything or nothing", func(s *scene) {
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		if _, err := s.Store.Enqueue(ctx, []holdfast.Draft{draft(), draft()}); err == nil {
			s.expectJobs(2)
		} else {
			s.expectJobs(0)
		}
	}},
	{"the caller's drafts are not changed", func(s *scene) {
		drafts := []holdfast.Draft{{Kind: "mail"}}
		_, err := s.Store.Enqueue(s.ctx, drafts)
		s.must(err)
		same(s, "queue of the caller's draft", drafts[0].Queue, "")
	}},
	{"acknowledged jobs exist after the store is reopened", func(s *scene) {
		before := s.Reopen()
		receipts, err := before.Enqueue(s.ctx, []holdfast.Draft{draft()})
		s.must(err)
		s.must(before.Close())
		after := s.Reopen()
		job, err := after.Job(s.ctx, receipts[0].ID)
		s.must(err)
		same(s, "state", job.State, holdfast.Queued)
	}},
	{"a closed store refuses every call, and can be closed again", func(s *scene) {
		db := s.Reopen()
		s.must(db.Close())
		_ = db.Close()
		if _, err := db.Enqueue(s.ctx, []holdfast.Draft{draft()}); err == nil {
			s.Fatal("a closed store acknowledged a job")
		}
		s.expectJobs(0)
	}},
	{"jobs of a caller's transaction exist if it commits, and do not if it rolls back", func(s *scene) {
		for _, commit := range []bool{false, true} {
			tx, end := s.Begin()
			receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{draft(), {Kind: "fresh", Queue: "fresh"}})
			s.must(err)
			same(s, "receipts", len(receipts), 2)
			s.must(end(commit))
			_, err = s.Store.Job(s.ctx, receipts[1].ID)
			if commit {
				s.must(err)
			} else {
				s.expectError(err, holdfast.ErrNotFound)
			}
		}
		same(s, "claimed", len(s.claimAs(store.Claim{Worker: "w", Limit: 9, Queues: []string{"default", "fresh"}})), 2)
	}},
	{"a caller's transaction lists what it has enqueued with every fact, and others see it after the commit", func(s *scene) {
		before := s.enqueue()
		tx, end := s.Begin()
		d := holdfast.Draft{
			Kind: "mail", Queue: "slow", Args: raw(`{"b": [1.5, "ü"]}`), Priority: -3, Owner: "acme", Tags: []string{"x", "y z"}, MaxAttempts: 7,
			UniqueKey: "k", IdempotencyKey: "once", Delay: time.Minute, ExpireIn: time.Hour,
		}
		receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{d})
		s.must(err)
		seen, cursor, err := s.In(tx).Jobs(s.ctx, store.Filter{Kind: "mail"})
		s.must(err)
		same(s, "cursor", cursor, "")
		same(s, "jobs in the transaction", []holdfast.ID{seen[0].ID, seen[1].ID}, []holdfast.ID{receipts[0].ID, before})
		same(s, "jobs outside", len(s.jobs(store.Filter{Kind: "mail"})), 1)
		_, _, err = s.In(tx).Jobs(s.ctx, store.Filter{State: "lost"})
		s.expectError(err, holdfast.ErrInvalid)
		s.must(end(true))
		after := s.job(receipts[0].ID)
		seen[0].AsOf = after.AsOf
		same(s, "the job as the transaction saw it", seen[0], after)
		_, _, err = s.In("no transaction").Jobs(s.ctx, store.Filter{})
		s.expectError(err, holdfast.ErrInvalid)
	}},
	{"drafts of every sort have the same result in bulk as one by one (river#161)", func(s *scene) {
		sorts := []func(*holdfast.Draft){
			func(d *holdfast.Draft) {}, at(time.Hour), expiresIn(time.Minute), unique("k"),
			func(d *holdfast.Draft) { d.IdempotencyKey, d.Owner = "once", "acme" }, func(d *holdfast.Draft) { d.Priority, d.Queue = -4, "bulk" },
			func(d *holdfast.Draft) { d.Tags, d.MaxAttempts = []string{"a", "b\\c"}, 3 },
		}
		var bulk []holdfast.Draft
		for i := range 210 {
			d := draft()
			sorts[i%len(sorts)](&d)
			bulk = append(bulk, d)
		}
		receipts := s.enqueueAll(bulk...)
		s.expectJobs(5*30 + 2)
		for i, sort := range sorts {
			if i == 3 || i == 4 { // the first draft takes the keys
				same(s, "existing job", receipts[i+len(sorts)], holdfast.Receipt{ID: receipts[i].ID, Existing: true})
				continue
			}
			got, want := s.job(receipts[i+len(sorts)].ID), s.job(s.enqueue(sort))
			got.ID = want.ID
			same(s, "job of a bulk", got, want)
		}
	}},
	{"a transaction of an unknown type is refused by the first enqueue, and the error names the type", func(s *scene) {
		_, err := s.Store.In(42).Enqueue(s.ctx, []holdfast.Draft{draft()})
		s.expectError(err, holdfast.ErrInvalid)
		if !strings.Contains(err.Error(), "int") {
			s.Fatalf("the refusal does not name the type: %v", err)
		}
	}},
}

// traceparent is a trace that another service began.
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func traced(d holdfast.Draft) holdfast.Draft {
	d.Trace = traceparent
	return d
}

// expectTraced expects the trace wherever a job is shown.
func (s *scene) expectTraced(id holdfast.ID) {
	s.Helper()
	job := s.job(id)
	list := s.jobs(store.Filter{Limit: 200, Kind: job.Kind})
	listed := list[slices.IndexFunc(list, func(j holdfast.Job) bool { return j.ID == id })]
	same(s, "traces", []string{job.Trace, listed.Trace, s.history(id).Job.Trace}, []string{traceparent, traceparent, traceparent})
}
