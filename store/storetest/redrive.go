package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// step is one call of a redrive.
func step(id holdfast.ID, jobs ...holdfast.ID) store.Redrive {
	return store.Redrive{ID: id, Jobs: jobs, Actor: "ada", Reason: "the gateway is back"}
}

func (s *scene) tryRedrive(r store.Redrive) []error {
	s.Helper()
	answers, err := s.Store.Redrive(s.ctx, r)
	s.must(err)
	if len(answers) != len(r.Jobs) {
		s.Fatalf("%d jobs got %d answers", len(r.Jobs), len(answers))
	}
	return answers
}

func (s *scene) redrive(r store.Redrive) {
	s.Helper()
	for _, err := range s.tryRedrive(r) {
		s.must(err)
	}
}

func (s *scene) expectRedriveCounts(id holdfast.ID, want store.RedriveCounts) {
	s.Helper()
	got, err := s.Store.Redriven(s.ctx, id)
	s.must(err)
	same(s, "counts", got, want)
}

// failAll makes n dead letters.
func (s *scene) failAll(n int, change ...func(*holdfast.Draft)) (dead []holdfast.ID) {
	s.Helper()
	s.enqueueMany(n, change...)
	for _, l := range s.claim(n) {
		s.settle(fails(l, "BROKEN"))
		dead = append(dead, l.ID)
	}
	return dead
}

func withArgs(text string) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Args = raw(text) }
}

var redriveLaws = []law{
	{"a redrive retries dead letters as a manual retry does, and records an event for each", func(s *scene) {
		lease := s.fail()
		s.Advance(time.Hour)
		id := holdfast.NewID()
		s.redrive(step(id, lease.ID))
		job := s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 2})
		same(s, "job", []any{job.State, job.DueAt, job.LastFailure == nil}, []any{holdfast.Queued, job.AsOf, true})
		same(s, "events", s.history(lease.ID).Events, []store.Event{{
			Job: lease.ID, At: job.AsOf, Name: "redrive", Actor: "ada", Reason: id.String() + ": the gateway is back", Token: 1, Generation: 2,
		}})
		again := s.claimOne()
		same(s, "lease", []any{again.Token, again.Generation, again.Since}, []any{2, 2, job.AsOf})
		same(s, "found", len(s.jobs(store.Filter{Redrive: id})), 1)
		same(s, "found by another", len(s.jobs(store.Filter{Redrive: holdfast.NewID()})), 0)
	}},
	{"a repeated redrive call changes nothing, whatever became of its jobs", func(s *scene) {
		dead := s.failAll(3)
		id := holdfast.NewID()
		s.redrive(step(id, dead...))
		s.redrive(step(id, dead...))
		for i, l := range s.claim(3) {
			s.settle([]store.Settlement{completes(l), fails(l, "AGAIN"), ends(l, holdfast.Cancelled)}[i])
		}
		s.redrive(step(id, dead[0], dead[1], dead[1], dead[2]))
		for _, job := range dead {
			same(s, "generation and events", []int{s.job(job).Generation, len(s.history(job).Events)}, []int{2, 1})
		}
		s.expectState(dead[1], holdfast.Failed)
		s.redrive(step(holdfast.NewID(), dead[1]))
		same(s, "generation by another redrive", s.job(dead[1]).Generation, 3)
	}},
	{"a job that is no dead letter is a conflict, an unknown job is not found, and each job has its own answer", func(s *scene) {
		dead := s.failAll(3)
		done, queued := s.start(), holdfast.ID{}
		s.settle(completes(done))
		s.must(s.Store.Discard(s.ctx, by(dead[1])))
		s.redrive(step(holdfast.NewID(), dead[2]))
		queued = dead[2]
		answers := s.tryRedrive(step(holdfast.NewID(), done.ID, dead[0], queued, holdfast.NewID(), dead[1]))
		s.must(answers[1])
		for i, want := range []error{holdfast.ErrConflict, nil, holdfast.ErrConflict, holdfast.ErrNotFound, holdfast.ErrConflict} {
			if want != nil {
				s.expectError(answers[i], want)
			}
		}
		same(s, "taken", s.job(dead[0]).Generation, 2)
	}},
	{"a job whose unique key is held by another is a conflict that names it, and the others are redriven", func(s *scene) {
		blocked := s.fail(unique("k"))
		free := s.fail()
		holder := s.enqueue(unique("k"))
		id := holdfast.NewID()
		answers := s.tryRedrive(step(id, blocked.ID, free.ID))
		s.expectConflict(answers[0], holder)
		s.must(answers[1])
		s.expectState(blocked.ID, holdfast.Failed)
		s.cancel(holder)
		s.redrive(step(id, blocked.ID))
		same(s, "key", s.enqueue(unique("k")), blocked.ID)
	}},
	{"of two dead letters with one unique key in one call the first is redriven, and the error of the second names it", func(s *scene) {
		a := s.fail(unique("k"))
		b := s.fail(unique("k"))
		answers := s.tryRedrive(step(holdfast.NewID(), a.ID, b.ID))
		s.must(answers[0])
		s.expectConflict(answers[1], a.ID)
	}},
	{"a job past its expiry is a conflict, and the others are redriven", func(s *scene) {
		expired := s.fail(expiresIn(time.Minute))
		free := s.fail()
		s.Advance(time.Minute)
		answers := s.tryRedrive(step(holdfast.NewID(), expired.ID, free.ID))
		s.expectError(answers[0], holdfast.ErrConflict)
		s.must(answers[1])
		s.expectState(expired.ID, holdfast.Failed)
	}},
	{"a patch changes exactly the members it names, and keeps numbers as they were written", func(s *scene) {
		for _, c := range []struct{ args, patch, want string }{
			{`{"a": 10000000000000000001, "b": 1.50, "c": {"x": 1, "y": [1, 2]}, "d": "ä\u0000"}`, `{"c": {"x": null, "z": 2.0}, "e": 12345678901234567890}`,
				`{"a": 10000000000000000001, "b": 1.50, "c": {"y": [1, 2], "z": 2.0}, "d": "ä\u0000", "e": 12345678901234567890}`},
			{`null`, `{"a": {"b": null}}`, `{"a": {}}`}, {`[1]`, `{"a": 1}`, `{"a": 1}`}, {`{"a": 1}`, `[2.50]`, `[2.50]`}, {`{"a": [1]}`, `{"a": [2]}`, `{"a": [2]}`},
			{`{"a": 1}`, `{"missing": null}`, `{"a": 1}`},
		} {
			lease := s.fail(withArgs(c.args))
			r := step(holdfast.NewID(), lease.ID)
			r.Patch = raw(c.patch)
			s.redrive(r)
			same(s, "arguments of "+c.args+" patched by "+c.patch, decode(s.job(lease.ID).Args), decode(raw(c.want)))
			again := s.claimOne()
			same(s, "arguments as claimed", decode(again.Args), decode(raw(c.want)))
			s.settle(completes(again))
			same(s, "events", len(s.history(lease.ID).Events), 1)
		}
	}},
	{"a patch does not change the arguments of other jobs", func(s *scene) {
		dead := s.failAll(3, withArgs(`{"n": 1}`))
		r := step(holdfast.NewID(), dead[1])
		r.Patch = raw(`{"n": 2}`)
		s.redrive(r)
		for i, want := range []string{`{"n": 1}`, `{"n": 2}`, `{"n": 1}`} {
			same(s, "arguments", decode(s.job(dead[i]).Args), decode(raw(want)))
		}
	}},
	{"a redrive to another queue moves the job there, and the holds of that queue apply", func(s *scene) {
		lease := s.fail(owned("acme"))
		s.pause(store.Hold{Queue: "slow"})
		r := step(holdfast.NewID(), lease.ID)
		r.Queue = "slow"
		s.redrive(r)
		same(s, "queue", s.job(lease.ID).Queue, "slow")
		same(s, "claimed from the old queue, and behind the hold", len(s.claim(10))+len(s.claimAll()), 0)
		s.resume(store.Hold{Queue: "slow"})
		again := s.claimAs(store.Claim{Worker: "w", Limit: 1, Start: 1, Queues: []string{"slow"}})
		same(s, "claimed", ids(again), []holdfast.ID{lease.ID})
		s.settle(retries(again[0], 0))
		same(s, "claimed from the new queue after a retry", len(s.claimAs(store.Claim{Worker: "w", Limit: 1, Queues: []string{"slow"}})), 1)
	}},
	{"a redrive that discards removes dead letters from the list, with an event for each", func(s *scene) {
		dead := s.failAll(2)
		id := holdfast.NewID()
		r := step(id, dead...)
		r.Discard = true
		s.redrive(r)
		s.redrive(r)
		for _, job := range dead {
			same(s, "discarded", s.expectState(job, holdfast.Failed).Discarded, true)
			events := s.history(job).Events
			same(s, "event", []any{len(events), events[0].Name, events[0].Actor, strings.Contains(events[0].Reason, "the gateway is back")}, []any{1, "discard", "ada", true})
		}
		s.expectRedriveCounts(id, store.RedriveCounts{Taken: 2, Discarded: 2})
	}},
	{"the outcomes of redriven jobs are counted, and do not change later", func(s *scene) {
		dead := s.failAll(5)
		id := holdfast.NewID()
		s.expectRedriveCounts(id, store.RedriveCounts{})
		s.redrive(step(id, dead...))
		s.expectRedriveCounts(id, store.RedriveCounts{Taken: 5, InFlight: 5})
		l := s.claim(5)
		s.settle(completes(l[0]), fails(l[1], "AGAIN"), ends(l[2], holdfast.Cancelled), retries(l[3], time.Hour))
		want := store.RedriveCounts{Taken: 5, InFlight: 2, Complete: 1, Failed: 1, Cancelled: 1}
		s.expectRedriveCounts(id, want)
		s.retry(l[1].ID)
		s.settle(completes(s.claimOne()))
		s.expectRedriveCounts(id, want)
		s.settle(completes(l[4]))
		s.expectRedriveCounts(id, store.RedriveCounts{Taken: 5, InFlight: 1, Complete: 2, Failed: 1, Cancelled: 1})
	}},
	{"a redrive without an actor, with a patch that is not JSON or to an invalid queue is refused", func(s *scene) {
		dead := s.failAll(1)
		for _, bad := range []func(*store.Redrive){
			func(r *store.Redrive) { r.Actor = "" }, func(r *store.Redrive) { r.Patch = raw(`{`) }, func(r *store.Redrive) { r.Queue = "no blanks" },
		} {
			r := step(holdfast.NewID(), dead[0])
			bad(&r)
			_, err := s.Store.Redrive(s.ctx, r)
			s.expectError(err, holdfast.ErrInvalid)
		}
		same(s, "generation", s.job(dead[0]).Generation, 1)
	}},
	{"when a manual retry races a redrive, one has the job and the other is refused", func(s *scene) {
		stores := s.handles()
		for range 10 {
			lease := s.fail()
			var retried, redriven error
			together(2, func(i int) {
				if i == 0 {
					_, retried = stores[1].Retry(s.ctx, by(lease.ID))
					return
				}
				answers, err := stores[2].Redrive(s.ctx, step(holdfast.NewID(), lease.ID))
				if redriven = err; err == nil {
					redriven = answers[0]
				}
			})
			if (retried == nil) == (redriven == nil) {
				s.Fatalf("the manual retry was answered with %v, the redrive with %v", retried, redriven)
			}
			s.expectError(errors.Join(retried, redriven), holdfast.ErrConflict)
			s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 2})
			s.settle(completes(s.claimOne()))
		}
	}},
	{"sixteen concurrent repeats of one redrive call take each job once", func(s *scene) {
		dead := s.failAll(20)
		stores, id := s.handles(), holdfast.NewID()
		together(16, func(i int) {
			answers, err := stores[i%3].Redrive(s.ctx, step(id, append(dead[i:len(dead):len(dead)], dead[:i]...)...))
			if err != nil {
				s.Errorf("redrive: %v", err)
			}
			for _, answer := range answers {
				if answer != nil {
					s.Errorf("a repeated redrive call was refused: %v", answer)
				}
			}
		})
		for _, job := range dead {
			same(s, "generation and events", []int{s.job(job).Generation, len(s.history(job).Events)}, []int{2, 1})
		}
		s.expectRedriveCounts(id, store.RedriveCounts{Taken: 20, InFlight: 20})
		for _, answer := range s.tryRedrive(step(holdfast.NewID(), dead...)) {
			s.expectError(answer, holdfast.ErrConflict)
		}
		same(s, "claimed", len(s.claim(50)), 20)
	}},
}
