package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var inspectLaws = []law{
	{"an unknown job is not found", func(s *scene) {
		_, err := s.Store.Job(s.ctx, holdfast.NewID())
		s.expectError(err, holdfast.ErrNotFound)
		_, err = s.Store.History(s.ctx, holdfast.NewID())
		s.expectError(err, holdfast.ErrNotFound)
		_, err = s.Store.Ahead(s.ctx, holdfast.NewID())
		s.expectError(err, holdfast.ErrNotFound)
	}},
	{"lists are newest first, and cursors lead through all jobs without gaps or repeats", func(s *scene) {
		var want []holdfast.ID
		for range 25 {
			want = append(want, s.enqueue())
		}
		slices.Reverse(want)
		var got []holdfast.ID
		for _, job := range s.jobs(store.Filter{Limit: 4}) {
			got = append(got, job.ID)
		}
		same(s, "order", got, want)
	}},
	{"a page has fifty jobs by default and at most two hundred, and invalid filters are refused", func(s *scene) {
		drafts := make([]holdfast.Draft, 210)
		for i := range drafts {
			drafts[i] = draft()
		}
		s.enqueueAll(drafts...)
		page, cursor, err := s.Store.Jobs(s.ctx, store.Filter{})
		s.must(err)
		same(s, "page", []any{len(page), cursor != ""}, []any{50, true})
		page, _, err = s.Store.Jobs(s.ctx, store.Filter{Limit: 200})
		s.must(err)
		same(s, "page", len(page), 200)
		for _, bad := range []store.Filter{{Limit: -1}, {Cursor: "nonsense!"}, {Cursor: "AAAA"}, {State: "dead"}} {
			_, _, err = s.Store.Jobs(s.ctx, bad)
			s.expectError(err, holdfast.ErrInvalid)
		}
		if page, _, err := s.Store.Jobs(s.ctx, store.Filter{Limit: 100000}); err == nil && len(page) > 200 {
			s.Fatalf("a page of %d", len(page))
		}
	}},
	{"a page of large jobs ends at about 8 MiB, and its cursor leads on", func(s *scene) {
		large, _ := json.Marshal(strings.Repeat("x", 900<<10))
		var want []holdfast.ID
		for range 20 {
			want = append(want, s.enqueue(func(d *holdfast.Draft) { d.Args = large }))
		}
		slices.Reverse(want)
		page, cursor, err := s.Store.Jobs(s.ctx, store.Filter{Limit: 200})
		s.must(err)
		same(s, "page", []any{len(page), cursor != ""}, []any{9, true})
		var got []holdfast.ID
		for _, job := range s.jobs(store.Filter{Limit: 200}) {
			got = append(got, job.ID)
		}
		same(s, "order", got, want)
	}},
	{"each filter returns the jobs it describes", func(s *scene) {
		queued := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Tags = "slow", []string{"red", "blue"} })
		owned := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Kind, d.Owner = "slow", "pdf", "acme" })
		failed := s.fail().ID
		flaky := s.start()
		s.settle(retries(flaky, time.Hour))
		finished := s.start()
		s.settle(completes(finished))
		done := finished.ID
		for _, c := range []struct {
			filter store.Filter
			want   []holdfast.ID
		}{
			{store.Filter{State: holdfast.Queued}, []holdfast.ID{flaky.ID, owned, queued}},
			{store.Filter{State: holdfast.Failed}, []holdfast.ID{failed}}, {store.Filter{DeadLetters: true}, []holdfast.ID{failed}},
			{store.Filter{State: holdfast.Complete}, []holdfast.ID{done}}, {store.Filter{State: holdfast.Processing}, nil},
			{store.Filter{Kind: "pdf"}, []holdfast.ID{owned}}, {store.Filter{Queue: "slow"}, []holdfast.ID{owned, queued}},
			{store.Filter{Owner: "acme"}, []holdfast.ID{owned}}, {store.Filter{Owner: "nobody"}, nil},
			{store.Filter{Tag: "blue"}, []holdfast.ID{queued}}, {store.Filter{Tag: "blu"}, nil}, {store.Filter{Tag: "%"}, nil},
			{store.Filter{Code: "BROKEN"}, []holdfast.ID{failed}}, {store.Filter{Code: "FLAKY"}, []holdfast.ID{flaky.ID}},
			{store.Filter{Fingerprint: "print-FLAKY"}, []holdfast.ID{flaky.ID}}, {store.Filter{Code: "FLAKY", State: holdfast.Failed}, nil},
			{store.Filter{Kind: "mail", Queue: "slow", State: holdfast.Queued}, []holdfast.ID{queued}},
		} {
			var got []holdfast.ID
			for _, job := range s.jobs(c.filter) {
				got = append(got, job.ID)
			}
			same(s, "jobs of a filter", got, c.want)
		}
	}},
	{"filters by dependency, generation and redrive agree with the jobs as they are shown", func(s *scene) {
		named := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Dependency = "slow", "gateway" })
		declared := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Kind = "slow", "pdf" })
		s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Kind, d.Dependency = "slow", "pdf", "printer" })
		s.depends("pdf", "gateway")
		again, redriven, redrive := s.fail(), s.fail(), holdfast.NewID()
		s.retry(again.ID)
		s.redrive(step(redrive, redriven.ID))
		for _, c := range []struct {
			filter store.Filter
			want   []holdfast.ID
		}{
			{store.Filter{Dependency: "gateway"}, []holdfast.ID{declared, named}}, {store.Filter{Dependency: "gateway", Kind: "pdf"}, []holdfast.ID{declared}},
			{store.Filter{Dependency: "gate%"}, nil}, {store.Filter{Generation: 2}, []holdfast.ID{redriven.ID, again.ID}}, {store.Filter{Generation: 3}, nil},
			{store.Filter{Redrive: redrive}, []holdfast.ID{redriven.ID}}, {store.Filter{Redrive: redrive, State: holdfast.Failed}, nil},
		} {
			var got []holdfast.ID
			for _, job := range s.jobs(c.filter) {
				got = append(got, job.ID)
			}
			same(s, "jobs of a filter", got, c.want)
		}
	}},
	{"age filters use the store's clock", func(s *scene) {
		old := s.enqueue()
		s.Advance(time.Hour)
		young := s.enqueue()
		only := func(f store.Filter, want holdfast.ID) {
			s.Helper()
			jobs := s.jobs(f)
			same(s, "jobs", []any{len(jobs), jobs[0].ID}, []any{1, want})
		}
		only(store.Filter{OlderThan: 30 * time.Minute}, old)
		only(store.Filter{NewerThan: 30 * time.Minute}, young)
	}},
	{"texts in filters are literal, whatever characters they have", func(s *scene) {
		s.enqueue(func(d *holdfast.Draft) { d.Owner, d.Tags = "o'brien", []string{`a"b`, "100%"} })
		for _, f := range []store.Filter{{Owner: "o'brien"}, {Tag: `a"b`}, {Tag: "100%"}} {
			same(s, "found", len(s.jobs(f)), 1)
		}
		for _, f := range []store.Filter{{Owner: "' OR 1=1 --"}, {Tag: "100_"}, {Code: "'"}, {Kind: "a;b"}, {Fingerprint: `\`}} {
			same(s, "found", len(s.jobs(f)), 0)
		}
	}},
	{"a list and a single read show the same of every job", func(s *scene) {
		s.settle(fails(s.start(), "BROKEN"))
		flaky := s.start()
		s.settle(retries(flaky, time.Hour))
		running := s.start()
		s.note(nil, store.Note{Batch: running.Batch, Job: running.ID, Token: 1, Progress: &holdfast.Progress{Percent: 10}})
		s.cancel(running.ID)
		s.enqueue(unique("k"), expiresIn(time.Hour))
		for _, listed := range s.jobs(store.Filter{}) {
			same(s, "job", listed, s.job(listed.ID))
			same(s, "job of the history", listed, s.history(listed.ID).Job)
		}
	}},
	{"the history is oldest first, with late settlements", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, 0))
		second := s.claimOne()
		s.Advance(time.Minute)
		third := s.reclaim()[0]
		s.settle(releases(third, store.ChargeCrash, 0))
		s.Advance(time.Second)
		s.expectError(s.trySettle(completes(second))[0], holdfast.ErrLeaseLost)
		s.Advance(time.Second)
		s.settle(fails(s.claimOne(), "BROKEN"))
		s.retry(lease.ID)
		h := s.history(lease.ID)
		var tokens, late []int
		for _, a := range h.Attempts {
			if a.Late {
				late = append(late, a.Token)
			} else {
				tokens = append(tokens, a.Token)
			}
		}
		same(s, "tokens", [][]int{tokens, late}, [][]int{{1, 3, 4}, {2}})
		same(s, "generation", []int{h.Job.Generation, h.Events[0].Generation}, []int{2, 2})
	}},
	{"counts add up by queue, kind and state", func(s *scene) {
		s.enqueueAll(draft(), draft(), holdfast.Draft{Kind: "pdf", Delay: time.Hour})
		s.claimOne()
		counts, err := s.Store.Counts(s.ctx)
		s.must(err)
		got := map[string]int{}
		for _, c := range counts {
			if c.Jobs > 0 {
				key := c.Queue + " " + c.Kind + " " + string(c.State)
				if c.Due {
					key += " due"
				}
				got[key] = c.Jobs
			}
		}
		same(s, "counts", got, map[string]int{"default mail queued due": 1, "default mail processing": 1, "default pdf queued": 1})
	}},
	{"the number of jobs ahead uses the order of claims", func(s *scene) {
		s.enqueue(func(d *holdfast.Draft) { d.Priority = -1 })
		s.enqueue(func(d *holdfast.Draft) { d.Kind = "pdf" })
		id := s.enqueue()
		s.enqueue()
		ahead, err := s.Store.Ahead(s.ctx, id)
		s.must(err)
		same(s, "ahead", ahead, 2)
	}},
	{"the number of jobs ahead is counted up to a thousand", func(s *scene) {
		drafts := make([]holdfast.Draft, 1100)
		for i := range drafts {
			drafts[i] = draft()
		}
		receipts := s.enqueueAll(drafts...)
		ahead, err := s.Store.Ahead(s.ctx, receipts[1099].ID)
		s.must(err)
		same(s, "ahead", ahead, 1000)
	}},
	{"ten thousand dead letters are all kept and counted (asynq#885)", func(s *scene) {
		drafts := make([]holdfast.Draft, 10000)
		for i := range drafts {
			drafts[i] = draft()
		}
		s.enqueueAll(drafts...)
		for range 10 {
			var all []store.Settlement
			for _, l := range s.claim(1000) {
				all = append(all, fails(l, "BROKEN"))
			}
			s.settle(all...)
		}
		same(s, "dead letters", len(s.jobs(store.Filter{DeadLetters: true, Limit: 200})), 10000)
	}},
}
