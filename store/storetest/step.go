package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// stepNamed names a draft within its group.
func stepNamed(name string) func(*holdfast.Draft) { return func(d *holdfast.Draft) { d.Step = name } }

// upstreams returns the members for which a leased job waited, over all pages.
func (s *scene) upstreams(l store.Lease, step string) (all []store.Upstream) {
	s.Helper()
	f := store.UpstreamFilter{Batch: l.Batch, Job: l.ID, Token: l.Token, Step: step}
	for range 100 {
		page, cursor, err := s.Store.Upstreams(s.ctx, f)
		s.must(err)
		all = append(all, page...)
		if f.Cursor = cursor; cursor == "" {
			return all
		}
	}
	s.Fatal("the list of upstream members has no end")
	return nil
}

func (s *scene) upstreamError(l store.Lease, step string) error {
	s.Helper()
	found, _, err := s.Store.Upstreams(s.ctx, store.UpstreamFilter{Batch: l.Batch, Job: l.ID, Token: l.Token, Step: step})
	if err == nil {
		s.Fatalf("wanted an error, got %+v", found)
	}
	return err
}

var stepLaws = []law{
	{"a member has the name of its step, in its own view and in lists", func(s *scene) {
		group := s.gather()
		load, other := s.enqueue(in(group), stepNamed("load")), s.enqueue(in(group))
		same(s, "step", s.job(load).Step, "load")
		same(s, "no step", s.job(other).Step, "")
		same(s, "in a list", s.jobs(store.Filter{Group: group})[1].Step, "load")
		same(s, "digest", s.jobs(store.Filter{Group: group})[1].Digest(), s.job(load).Digest())
	}},
	{"a name is used once in a group, on every way to enqueue; the refusal names the member that has it, and nothing is written", func(s *scene) {
		group, other := s.gather(), s.gather()
		load := s.enqueue(in(group), stepNamed("load"))
		s.enqueue(in(other), stepNamed("load"))
		twice := []holdfast.Draft{{Kind: "mail", Group: group, Step: "parse"}, {Kind: "mail", ID: holdfast.NewID(), Group: group, Step: "parse"}}
		for n := range 150 {
			twice = append(twice, holdfast.Draft{Kind: "mail", Group: group, Step: fmt.Sprint("page-", n)})
		}
		for name, drafts := range map[string][]holdfast.Draft{"stored": {{Kind: "mail", Group: group}, {Kind: "mail", Group: group, Step: "load"}}, "in the call": twice} {
			for way, enqueue := range s.insertPaths(drafts) {
				err := enqueue()
				if !errors.Is(err, holdfast.ErrConflict) || !strings.Contains(err.Error(), "use another name") || name == "stored" && !strings.Contains(err.Error(), load.String()) {
					s.Errorf("%s, %s: got %v, want a refusal that names the member", name, way, err)
				}
			}
		}
		s.expectJobs(2)
		s.enqueue(in(group), stepNamed("parse"))
		s.enqueueAll(twice[2:]...)
	}},
	{"a draft with a step is refused outside a group, and a step that is no name is refused", func(s *scene) {
		group := s.gather()
		for _, d := range []holdfast.Draft{{Kind: "mail", Step: "load"}, {Kind: "mail", Group: group, Step: "load it"}, {Kind: "mail", Group: group, Step: strings.Repeat("x", 129)}} {
			_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{d})
			s.expectError(err, holdfast.ErrInvalid)
		}
		_, err := s.Store.CreateGroup(s.ctx, holdfast.Group{Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "mail", Step: "load"}}}})
		s.expectError(err, holdfast.ErrInvalid)
	}},
	{"an idempotency key or a unique key returns the job that has the step", func(s *scene) {
		group := s.gather()
		d := holdfast.Draft{Kind: "mail", Group: group, Step: "load", IdempotencyKey: "once"}
		first := s.enqueueAll(d)[0]
		same(s, "again", s.enqueueAll(d)[0], holdfast.Receipt{ID: first.ID, Existing: true})
		d.Step = "parse"
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{d})
		s.expectError(err, holdfast.ErrConflict)
	}},
	{"two processes that add the same step at once: one of them is refused", func(s *scene) {
		group := s.gather()
		stores := []store.Store{s.Store, s.Reopen(), s.Store, s.Reopen()}
		added := make(chan error, len(stores))
		for _, db := range stores {
			go func() {
				_, err := db.Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Group: group, Step: "load"}})
				added <- err
			}()
		}
		won := 0
		for range stores {
			if err := <-added; err == nil {
				won++
			} else {
				s.expectError(err, holdfast.ErrConflict)
			}
		}
		same(s, "added", won, 1)
		s.expectJobs(1)
	}},
	{"a leased member reads the results of the members for which it waited, by step or all of them, byte for byte", func(s *scene) {
		group := s.gather()
		load, parse := s.enqueue(in(group), stepNamed("load")), s.enqueue(in(group))
		broken := s.enqueue(in(group), stepNamed("check"))
		s.enqueue(in(group), stepNamed("aside"))
		next := s.enqueue(in(group), after(load, parse, broken), afterAll)
		for _, l := range s.claim(10) {
			e := completes(l)
			switch l.ID {
			case load:
				e.Result = json.RawMessage(`{"b":1.50,  "a":"ü"}`)
			case broken:
				e = fails(l, "BROKEN")
			}
			s.settle(e)
		}
		s.advanceGroups()
		lease := s.claimOne()
		same(s, "claimed", lease.ID, next)
		of := map[holdfast.ID]store.Upstream{}
		for _, one := range s.upstreams(lease, "") {
			of[one.Job] = one
		}
		same(s, "upstreams", of, map[holdfast.ID]store.Upstream{
			load:   {Job: load, Kind: "mail", Step: "load", State: holdfast.Complete, Result: json.RawMessage(`{"b":1.50,  "a":"ü"}`)},
			parse:  {Job: parse, Kind: "mail", State: holdfast.Complete},
			broken: {Job: broken, Kind: "mail", Step: "check", State: holdfast.Failed, Code: "BROKEN"},
		})
		same(s, "by step", s.upstreams(lease, "load"), []store.Upstream{of[load]})
		s.expectRefusal(s.upstreamError(lease, "aside"), holdfast.ErrNotFound, textNoUpstream, next, "aside")
		s.expectRefusal(s.upstreamError(lease, "nowhere"), holdfast.ErrNotFound, textNoUpstream, next, "nowhere")
	}},
	{"results are only for the holder of the lease", func(s *scene) {
		group := s.gather()
		s.enqueue(in(group), stepNamed("next"), after(s.enqueue(in(group), stepNamed("load"))))
		s.run()
		lease := s.claimOne()
		for _, l := range []store.Lease{{Job: lease.Job, Batch: holdfast.NewID()}, func() store.Lease { l := lease; l.Token++; return l }(), func() store.Lease { l := lease; l.ID = holdfast.NewID(); return l }()} {
			s.expectRefusal(s.upstreamError(l, "load"), holdfast.ErrLeaseLost, textLost, l.ID)
		}
		s.Advance(shortLease + time.Second)
		again := s.reclaim()[0]
		s.expectRefusal(s.upstreamError(lease, ""), holdfast.ErrLeaseLost, textLost, lease.ID)
		same(s, "the new holder", len(s.upstreams(again, "load")), 1)
		s.settle(completes(again))
		s.expectRefusal(s.upstreamError(again, ""), holdfast.ErrLeaseLost, textLost, lease.ID)
	}},
	{"results of a thousand members come in pages, each once", func(s *scene) {
		group := s.gather()
		var first []holdfast.ID
		for range 30 {
			first = append(first, s.enqueue(in(group)))
		}
		s.enqueue(in(group), after(first...))
		big := json.RawMessage(`"` + strings.Repeat("x", 1<<20-2) + `"`)
		for _, l := range s.claim(100) {
			e := completes(l)
			e.Result = big
			s.settle(e)
		}
		s.advanceGroups()
		var seen []holdfast.ID
		for _, one := range s.upstreams(s.claimOne(), "") {
			seen = append(seen, one.Job)
			same(s, "bytes", len(one.Result), len(big))
		}
		same(s, "members", sortIDs(seen), sortIDs(first))
	}},
	{"a job that waited for no member has no upstream members", func(s *scene) {
		same(s, "upstreams", len(s.upstreams(s.start(), "")), 0)
	}},
	{"a step that retention has deleted is purged, and a purged step leaves no name behind", func(s *scene) {
		group := s.gather()
		load := s.enqueue(in(group), stepNamed("load"))
		next := s.enqueue(in(group), stepNamed("next"), after(load))
		s.seal(group)
		s.run()
		s.run(next)
		s.expectGroup(group, holdfast.GroupPartial, 1)
		s.purge(rules(store.RetentionRule{Name: "complete", State: holdfast.Complete}))
		s.retry(next)
		lease := s.claimOne()
		if err := s.upstreamError(lease, "load"); !errors.Is(err, holdfast.ErrPurged) || !strings.Contains(err.Error(), load.String()) || !strings.Contains(err.Error(), "rule complete") {
			s.Fatalf("got %v, want that the step was purged, with its job and the rule", err)
		}
		s.expectRefusal(s.upstreamError(lease, "nowhere"), holdfast.ErrNotFound, textNoUpstream, next, "nowhere")
	}},
}
