package opstest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func retryOfAFailedJob(s *scene) {
	id := s.failed()
	before := s.enqueue(func(d *holdfast.Draft) { d.Priority = -1 })
	ahead, err := s.operator.Retry(s.ctx, by(id))
	s.must(err)
	if ahead != 1 {
		s.Errorf("%d jobs are ahead of it, wanted 1", ahead)
	}
	job := s.expectState(id, holdfast.Queued)
	if job.Failures != 0 || job.Generation != 2 || job.Token != 1 || job.LastFailure != nil {
		s.Errorf("a retried job starts afresh: %+v", job)
	}
	_, err = s.operator.Retry(s.ctx, by(id))
	s.expect(err, holdfast.ErrConflict)
	s.settle(s.claim(before), complete)
	s.settle(s.claim(id), complete)
	s.expectState(id, holdfast.Complete)
}

func retryReplacesAutomaticRetry(s *scene) {
	id := s.enqueue()
	s.settle(s.claim(id), postpone)
	_, err := s.operator.Retry(s.ctx, by(id))
	s.must(err)
	s.settle(s.claim(id), complete)
	jobs, _, err := s.operator.Jobs(s.ctx, store.Filter{})
	s.must(err)
	if len(jobs) != 1 || jobs[0].State != holdfast.Complete {
		s.Errorf("there must be one job, complete: %+v", jobs)
	}
}

func retryWithoutSource(s *scene) {
	gone := errors.New("the file was deleted")
	operator := s.another(ops.Config{Sources: map[string]func(context.Context, holdfast.Job) error{
		"mail": func(context.Context, holdfast.Job) error { return gone },
	}})
	id := s.failed()
	_, err := operator.Retry(s.ctx, by(id))
	s.expect(err, holdfast.ErrConflict)
	if _, near := operator.(*ops.Service); near { // from far there is only what is told
		s.expect(err, gone)
	}
	s.expectState(id, holdfast.Failed)
	gone = nil
	_, err = operator.Retry(s.ctx, by(id))
	s.must(err)
	s.expectState(id, holdfast.Queued)
}

func foreignOwner(s *scene) {
	id := s.enqueue(func(d *holdfast.Draft) { d.Owner = "bob" })
	s.settle(s.claim(id), fail)
	foreign := by(id)
	foreign.Owner = "eve"
	_, err := s.operator.Retry(s.ctx, foreign)
	s.expect(err, holdfast.ErrNotFound)
	_, err = s.operator.Cancel(s.ctx, foreign)
	s.expect(err, holdfast.ErrNotFound)
	s.expect(s.operator.Discard(s.ctx, foreign), holdfast.ErrNotFound)
	s.expectState(id, holdfast.Failed)
	nobody := by(id)
	nobody.Actor = ""
	_, err = s.operator.Retry(s.ctx, nobody)
	s.expect(err, holdfast.ErrInvalid)
}

func retryRefused(s *scene) {
	id := s.enqueue()
	_, err := s.operator.Retry(s.ctx, by(id))
	s.expect(err, holdfast.ErrConflict)
	lease := s.claim(id)
	_, err = s.operator.Retry(s.ctx, by(id))
	s.expect(err, holdfast.ErrConflict)
	s.settle(lease, complete)
	_, err = s.operator.Retry(s.ctx, by(id))
	s.expect(err, holdfast.ErrConflict)
	_, err = s.operator.Retry(s.ctx, by(holdfast.NewID()))
	s.expect(err, holdfast.ErrNotFound)
}

func cancelQueued(s *scene) {
	id := s.enqueue()
	state, err := s.operator.Cancel(s.ctx, by(id))
	s.must(err)
	if state != holdfast.Cancelled {
		s.Errorf("answered %s", state)
	}
	s.expectState(id, holdfast.Cancelled)
	s.expectStory(id, "queued", "cancelled")
	_, err = s.operator.Cancel(s.ctx, by(id))
	s.expect(err, holdfast.ErrConflict)
}

func cancelProcessing(s *scene) {
	id := s.enqueue()
	lease := s.claim(id)
	state, err := s.operator.Cancel(s.ctx, by(id))
	s.must(err)
	if job := s.expectState(id, holdfast.Processing); state != holdfast.Processing || !job.Cancelling {
		s.Errorf("answered %s, and the job is %+v", state, job)
	}
	s.expectReasons(id, "processing", "cancelling")
	s.settle(lease, func(x *store.Settlement) { x.Took = time.Microsecond })
	s.expectState(id, holdfast.Cancelled)
	s.expectStory(id, "queued", "processing", "cancel requested", "cancelled")
}

func pauseQueue(s *scene) {
	s.must(s.operator.Pause(s.ctx, store.Hold{Queue: holdfast.DefaultQueue, Actor: "ann", Reason: "too much"}))
	id := s.enqueue()
	s.expectReasons(id, "queue paused", "no worker")
	leases, err := s.store.Claim(s.ctx, store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Lease: time.Minute})
	s.must(err)
	if len(leases) != 0 {
		s.Fatalf("claimed from a paused queue: %v", leases)
	}
	holds, err := s.operator.Holds(s.ctx)
	s.must(err)
	if len(holds) != 1 || holds[0].Actor != "ann" || holds[0].Reason != "too much" || holds[0].Since.IsZero() {
		s.Errorf("holds: %+v", holds)
	}
	s.must(s.operator.Resume(s.ctx, store.Hold{Queue: holdfast.DefaultQueue, Actor: "ann"}))
	s.settle(s.claim(id), complete)
}

func pauseKind(s *scene) {
	s.must(s.operator.Pause(s.ctx, store.Hold{Kind: "mail", For: time.Hour, Actor: "ann"}))
	held, other := s.enqueue(), s.enqueue(func(d *holdfast.Draft) { d.Kind = "report" })
	s.expectReasons(held, "kind paused", "no worker")
	s.expectReasons(other, "jobs ahead", "no worker")
	s.settle(s.claim(other), complete)
	s.must(s.operator.Resume(s.ctx, store.Hold{Kind: "mail", Actor: "ann"}))
	s.settle(s.claim(held), complete)
}

func deadLetters(s *scene) {
	id := s.failed()
	other := s.enqueue()
	s.settle(s.claim(other), complete)
	letters, _, err := s.operator.DeadLetters(s.ctx, store.Filter{})
	s.must(err)
	if len(letters) != 1 || letters[0].Job.ID != id || letters[0].Code.Name != "TIMEOUT" || letters[0].Code.Remedy == "" {
		s.Fatalf("dead letters: %+v", letters)
	}
	silent := by(id)
	silent.Reason = ""
	s.expect(s.operator.Discard(s.ctx, silent), holdfast.ErrInvalid)
	s.must(s.operator.Discard(s.ctx, by(id)))
	s.expect(s.operator.Discard(s.ctx, by(id)), holdfast.ErrConflict)
	letters, _, err = s.operator.DeadLetters(s.ctx, store.Filter{})
	s.must(err)
	if len(letters) != 0 {
		s.Errorf("dead letters after the discard: %+v", letters)
	}
	s.expectReasons(id, "failed", "discarded")
	_, err = s.operator.Retry(s.ctx, by(id))
	s.must(err)
	s.expectStory(id, "queued", "failed", "discard", "manual retry")
}

func explainWaiting(s *scene) {
	retrying := s.enqueue()
	s.settle(s.claim(retrying), postpone)
	first, second := s.enqueue(), s.enqueue()
	later := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Delay = "bulk", time.Hour })
	s.expectReasons(first, "no worker")
	present := store.WorkerInfo{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Kinds: []string{"report"}, Slots: 1, For: time.Hour}
	s.must(s.store.ReportWorker(s.ctx, present))
	s.expectReasons(first, "unknown kind")
	present.Kinds = []string{"mail"}
	s.must(s.store.ReportWorker(s.ctx, present))
	s.expectReasons(first, "next")
	s.expectReasons(second, "jobs ahead")
	s.expectReasons(later, "scheduled", "no worker")
	s.expectReasons(retrying, "retry")
	explanation, err := s.operator.Explain(s.ctx, retrying)
	s.must(err)
	if text := explanation.Reasons[0].Text; !strings.Contains(text, "retry 1 after TIMEOUT") || explanation.Reasons[0].Until.IsZero() {
		s.Errorf("the retry is explained by %+v", explanation.Reasons[0])
	}
	lease := s.claim(first)
	s.expectReasons(second, "slots busy")
	s.settle(lease, complete)
	s.expectReasons(second, "next")
}

func explainProcessing(s *scene) {
	id := s.enqueue()
	lease := s.claim(id)
	s.expectReasons(id, "processing")
	s.settle(lease, complete)
	unstarted := s.enqueue()
	leases, err := s.store.Claim(s.ctx, store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 1, Lease: time.Minute})
	s.must(err)
	s.expectReasons(unstarted, "claimed")
	s.settle(leases[0], complete)
}

func explainEnded(s *scene) {
	failed := s.failed()
	s.expectReasons(failed, "failed")
	id := s.enqueue()
	s.settle(s.claim(id), complete)
	s.expectReasons(id, "complete")
	id = s.enqueue()
	_, err := s.operator.Cancel(s.ctx, by(id))
	s.must(err)
	s.expectReasons(id, "cancelled")
	_, err = s.operator.Explain(s.ctx, holdfast.NewID())
	s.expect(err, holdfast.ErrNotFound)
}

func story(s *scene) {
	id := s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Hour })
	s.expectStory(id, "scheduled")
	id = s.enqueue()
	s.expectStory(id, "queued")
	s.settle(s.claim(id), postpone)
	_, err := s.operator.Retry(s.ctx, by(id))
	s.must(err)
	s.settle(s.claim(id), func(x *store.Settlement) { x.To, x.Charge = holdfast.Queued, store.ChargeRelease })
	s.settle(s.claim(id), fail)
	_, err = s.operator.Retry(s.ctx, by(id))
	s.must(err)
	lease := s.claim(id)
	s.expectStory(id, "queued", "retry", "manual retry", "released", "failed", "manual retry", "processing")
	s.settle(lease, complete)
	lines := s.expectStory(id, "queued", "retry", "manual retry", "released", "failed", "manual retry", "processing", "complete")
	if retry := lines[2]; retry.Actor != "ann" || retry.Reason != "because" || retry.Generation != 2 {
		s.Errorf("the manual retry: %+v", retry)
	}
	if failed := lines[4]; failed.Code != "TIMEOUT" || failed.Attempt != 2 || failed.Token != 3 || failed.Worker != "w1" || failed.Error != "dial tcp:  no answer" {
		s.Errorf("the failed attempt: %+v", failed)
	}
}

func storyOfALateResult(s *scene) {
	id := s.enqueue()
	lease := s.claim(id)
	stuck := by(id)
	stuck.StuckAfter = time.Nanosecond
	if _, err := s.operator.Retry(s.ctx, stuck); err != nil {
		s.Fatalf("a stuck job was not retried: %v", err)
	}
	answers, err := s.store.Settle(s.ctx, []store.Settlement{{Batch: lease.Batch, Job: id, Token: lease.Token, To: holdfast.Complete}})
	s.must(err)
	s.expect(answers[0], holdfast.ErrLeaseLost)
	s.expectState(id, holdfast.Queued)
	lines, err := s.operator.Story(s.ctx, id)
	s.must(err)
	if last := lines[len(lines)-1]; last.Name != "late result" || last.Worker != "w1" || last.Token != 1 {
		s.Errorf("the story ends with %+v", last)
	}
	s.settle(s.claim(id), complete)
	s.expectState(id, holdfast.Complete)
}

func doctor(s *scene) {
	s.failed()
	s.settle(s.claim(s.enqueue()), complete)
	s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Hour })
	s.enqueue()
	report, err := s.operator.CheckIntegrity(s.ctx)
	s.must(err)
	if report.Jobs[holdfast.Failed] != 1 || report.Jobs[holdfast.Complete] != 1 || report.Jobs[holdfast.Queued] != 2 || len(report.Jobs) != 3 {
		s.Errorf("the doctor counted %v", report.Jobs)
	}
}

func stats(s *scene) {
	s.failed()
	s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Hour })
	s.enqueue()
	s.enqueue(func(d *holdfast.Draft) { d.Queue = "bulk" })
	s.must(s.store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w1", Queues: []string{"bulk"}, Kinds: []string{"mail"}, Slots: 4, For: time.Hour}))
	s.must(s.store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w2", Queues: []string{"*"}, Kinds: []string{"mail"}, Slots: 1, For: time.Hour})) // of every queue, which is no queue
	s.must(s.operator.Pause(s.ctx, store.Hold{Queue: "bulk", Actor: "ann"}))
	got, err := s.operator.Stats(s.ctx)
	s.must(err)
	if got.Workers != 2 || got.Slots != 5 || len(got.Queues) != 2 {
		s.Fatalf("stats: %+v", got)
	}
	bulk, usual := got.Queues[0], got.Queues[1]
	if bulk.Queue != "bulk" || bulk.Ready != 1 || !bulk.Held || bulk.Oldest.IsZero() {
		s.Errorf("stats of bulk: %+v", bulk)
	}
	if usual.Ready != 1 || usual.Later != 1 || usual.Dead != 1 || len(usual.AtLeast) > 0 || usual.Held {
		s.Errorf("stats of the default queue: %+v", usual)
	}
}
