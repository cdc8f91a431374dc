package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// failsBenign is an attempt that ended its job with a benign failure.
func failsBenign(l store.Lease, code string) store.Settlement {
	e := fails(l, code)
	e.Failure.Benign, e.Failure.Fingerprint, e.Queue = true, "", l.Queue
	return e
}

var benignLaws = []law{
	{"a benign failure ends as failed and is no dead letter", func(s *scene) {
		lease := s.start()
		e := failsBenign(lease, "NOT_PDF")
		s.settle(e)
		other := s.fail()
		job := s.expectState(lease.ID, holdfast.Failed)
		same(s, "failure", job.LastFailure, e.Failure)
		same(s, "off the dead letters", job.Discarded, true)
		letters := s.jobs(store.Filter{DeadLetters: true})
		same(s, "dead letters", []holdfast.ID{letters[0].ID}, []holdfast.ID{other.ID})
		same(s, "their number", len(letters), 1)
		groups, _, err := s.Store.ErrorGroups(s.ctx, store.ErrorFilter{})
		s.must(err)
		same(s, "error groups", len(groups), 1)
		s.expectHealthy()
	}},
	{"a benign failure is not counted in trends", func(s *scene) {
		s.settle(failsBenign(s.start(), "NOT_PDF"))
		trends, err := s.Store.Trends(s.ctx, time.Hour, 0)
		s.must(err)
		same(s, "trends", len(trends), 0)
	}},
	{"benign failures can be filtered", func(s *scene) {
		benign, other := s.start(), s.start()
		s.settle(failsBenign(benign, "NOT_PDF"), fails(other, "BROKEN"))
		s.settle(completes(s.start()))
		yes, no := true, false
		for _, c := range []struct {
			filter store.Filter
			want   []holdfast.ID
		}{
			{store.Filter{Benign: &yes}, []holdfast.ID{benign.ID}},
			{store.Filter{Benign: &no}, []holdfast.ID{other.ID}},
			{store.Filter{Benign: &yes, State: holdfast.Failed, Code: "NOT_PDF"}, []holdfast.ID{benign.ID}},
			{store.Filter{Benign: &yes, State: holdfast.Complete}, nil},
			{store.Filter{Benign: &yes, DeadLetters: true}, nil},
			{store.Filter{Benign: &no, DeadLetters: true}, []holdfast.ID{other.ID}},
			{store.Filter{Benign: &yes, MaxScan: 100}, []holdfast.ID{benign.ID}},
			{store.Filter{Benign: &no, MaxScan: 100}, []holdfast.ID{other.ID}},
		} {
			var got []holdfast.ID
			for _, j := range s.jobs(c.filter) {
				got = append(got, j.ID)
			}
			same(s, "jobs", got, c.want)
		}
	}},
	{"a benign failure can be retried manually, and is not redriven", func(s *scene) {
		lease := s.start()
		s.settle(failsBenign(lease, "NOT_PDF"))
		err := s.Store.Discard(s.ctx, by(lease.ID))
		s.expectError(err, holdfast.ErrConflict)
		s.retry(lease.ID)
		again := s.claimOne()
		same(s, "claimed", again.ID, lease.ID)
		s.settle(fails(again, "BROKEN"))
		same(s, "dead letters", len(s.jobs(store.Filter{DeadLetters: true})), 1)
		s.expectHealthy()
	}},
	{"benign failures are purged like ended jobs even if dead letters are spared", func(s *scene) {
		s.settle(failsBenign(s.start(), "NOT_PDF"))
		kept := s.fail()
		p := rules(store.RetentionRule{Name: "all"})
		p.SpareDeadLetters = true
		same(s, "purged", s.purge(p), store.PurgeResult{Jobs: 1, Rules: map[string]int{"all": 1}, Spared: map[string]int{"all": 1}})
		s.expectState(kept.ID, holdfast.Failed)
	}},
	{"the feed distinguishes a benign failure", func(s *scene) {
		s.listen(store.EventFailed)
		s.settle(failsBenign(s.start(), "NOT_PDF"))
		s.fail()
		var names []string
		for _, e := range s.feed(0) {
			if !e.Job.IsZero() {
				names = append(names, e.Name+" "+e.Code)
			}
		}
		same(s, "events", names, []string{"benign NOT_PDF", "failed BROKEN"})
	}},
}
