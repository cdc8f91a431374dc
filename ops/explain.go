package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// A Reason is one thing that keeps a job from being processed now, and what an operator can do about it.
type Reason struct {
	// Name is one of: scheduled, retry, throttled, handed back, jobs ahead, no worker, unknown kind, slots busy, expiring, next,
	// processing, claimed, worker silent, cancelling, complete, failed, benign, discarded, cancelled, nowhere, members, upstream, purged,
	// duty paused; and of holds: queue paused, kind paused, owner paused, dependency paused, tag paused, breaker, budget, window, handler, limit, rate.
	Name   string    `json:"name"`
	Text   string    `json:"text"`
	Remedy string    `json:"remedy,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself, if that is known
}

// An Explanation says why a job is not processed now: every current reason, the strongest first.
type Explanation struct {
	Job     holdfast.Job `json:"job"`
	Reasons []Reason     `json:"reasons"`
}

// Explain answers why a job is not running.
func (s *Service) Explain(ctx context.Context, id holdfast.ID) (Explanation, error) {
	job, err := s.store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrPurged) {
		return s.explainPurged(ctx, id, err)
	}
	if err != nil {
		return Explanation{}, err
	}
	known, err := s.taxonomy(ctx)
	if err != nil {
		return Explanation{}, err
	}
	code := codeOf(known, job.LastFailure)
	switch {
	case job.State == holdfast.Queued && job.Waiting:
		reasons, err := s.explainMember(ctx, job)
		return Explanation{job, reasons}, err
	case job.State == holdfast.Queued:
		queue, err := s.look(ctx, job)
		if err != nil {
			return Explanation{}, err
		}
		queue.code = code
		return Explanation{job, s.waiting(job, queue)}, nil
	case job.State == holdfast.Processing:
		return Explanation{job, processing(job)}, nil
	default:
		return Explanation{job, s.over(job, code)}, nil
	}
}

// A scene is what surrounds a job that waits.
type scene struct {
	ahead    int
	barriers []barrier
	workers  []holdfast.Presence
	busy     []holdfast.Job // of the same queue
	code     failure.Code   // of its last failure
	idle     []Reason       // duties that the job needs and that somebody paused
}

func (s *Service) look(ctx context.Context, job holdfast.Job) (q scene, err error) {
	if q.barriers, err = s.barriers(ctx, job); err != nil {
		return q, err
	}
	if q.workers, err = s.store.Workers(ctx); err != nil {
		return q, err
	}
	if q.ahead, err = s.store.Ahead(ctx, job.ID); err != nil {
		return q, err
	}
	if job.DueAt.After(job.AsOf) || len(q.barriers) > 0 {
		if q.idle, err = s.idle(ctx, "promote", "it is not made claimable when its time comes"); err != nil {
			return q, err
		}
	}
	q.busy, _, err = s.store.Jobs(ctx, holdfast.Filter{State: holdfast.Processing, Queue: job.Queue, Limit: mostListed})
	return q, err
}

// waiting names what keeps a queued job: its time, a hold, the workers, those before it.
func (s *Service) waiting(job holdfast.Job, q scene) []Reason {
	var reasons []Reason
	if job.DueAt.After(job.AsOf) {
		reasons = append(reasons, s.notDue(job, q.code))
	}
	if !job.ExpireAt.IsZero() && !job.ExpireAt.After(job.AsOf) {
		reasons = append(reasons, Reason{Name: "expiring", Text: "it could not start by " + when(job.ExpireAt) + " and will be failed as expired", Remedy: "enqueue it again, with more time"})
	}
	for _, b := range q.barriers {
		if b.stops() {
			reasons = append(reasons, b.reason(job))
		}
	}
	reasons = append(reasons, q.idle...)
	reasons = append(reasons, manning(job, q)...)
	if q.ahead > 0 {
		reasons = append(reasons, ahead(q.ahead))
	}
	if len(reasons) == 0 {
		reasons = append(reasons, Reason{Name: "next", Text: "nothing holds it: it is the next of its queue", Remedy: "wait a moment and look again"})
	}
	return reasons
}

// notDue tells what the job's time is for.
func (s *Service) notDue(job holdfast.Job, code failure.Code) Reason {
	switch {
	case job.Interrupts > 0 && failure.IsThrottled(job.LastFailure):
		return throttled(job, code)
	case job.Failures+job.Crashes > 0:
		reason := Reason{Name: "retry", Until: job.DueAt, Remedy: "retry it manually to start now"}
		reason.Text = fmt.Sprintf("it waits for retry %d until %s", job.Failures+job.Crashes, when(job.DueAt))
		if job.LastFailure != nil {
			reason.Text = fmt.Sprintf("it waits for retry %d after %s until %s", job.Failures+job.Crashes, job.LastFailure.Code, when(job.DueAt))
			if remedy := code.Remedy; remedy != "" {
				reason.Remedy += "; the cause: " + remedy
			}
		}
		return reason
	case job.Interrupts > 0:
		return Reason{Name: "handed back", Until: job.DueAt, Text: "its last attempt was handed back until " + when(job.DueAt), Remedy: "retry it manually to start now"}
	}
	return Reason{Name: "scheduled", Until: job.DueAt, Text: "it is scheduled for " + when(job.DueAt), Remedy: "wait, or cancel it and enqueue it without a time"}
}

// throttled tells that the other side asked the job to come back later.
func throttled(job holdfast.Job, code failure.Code) Reason {
	reason := Reason{Name: "throttled", Until: job.DueAt, Remedy: "wait; or retry it manually to start now"}
	reason.Text = fmt.Sprintf("it was throttled with %s (%s) and waits until %s; no attempt was spent", code.Name, job.LastFailure.Message, when(job.DueAt))
	if code.Remedy != "" {
		reason.Remedy += "; the cause: " + code.Remedy
	}
	return reason
}

// manning names what is wrong with the workers of the job's queue.
func manning(job holdfast.Job, q scene) []Reason {
	var on []holdfast.Presence
	slots, knows := 0, false
	for _, worker := range q.workers {
		if worksOn(worker, job.Queue) {
			on = append(on, worker)
			slots += worker.Slots
			knows = knows || slices.Contains(worker.Kinds, job.Kind)
		}
	}
	if len(on) == 0 {
		text := fmt.Sprintf("no live worker works on queue %s (%d work on others)", job.Queue, len(q.workers))
		return []Reason{{Name: "no worker", Text: text, Remedy: "start a worker for the queue " + job.Queue}}
	}
	var reasons []Reason
	if !knows {
		reasons = append(reasons, Reason{Name: "unknown kind", Text: fmt.Sprintf("no live worker of queue %s handles kind %s: it waits at no cost", job.Queue, job.Kind), Remedy: "deploy a worker that handles " + job.Kind})
	}
	// With more slots than a page of jobs is long, nobody is told that all of them are busy.
	busy := 0
	for _, other := range q.busy {
		if slices.ContainsFunc(on, func(w holdfast.Presence) bool { return w.Worker == other.Worker }) {
			busy++
		}
	}
	if slots > 0 && slots <= mostListed && busy >= slots {
		reasons = append(reasons, Reason{Name: "slots busy", Text: fmt.Sprintf("all %d slots of the %d workers of queue %s are busy", slots, len(on), job.Queue), Remedy: "wait, or start more workers"})
	}
	return reasons
}

func ahead(n int) Reason {
	text := fmt.Sprintf("%d jobs of its queue are claimed before it", n)
	switch {
	case n == 1:
		text = "1 job of its queue is claimed before it"
	case n >= 1000:
		text = "a thousand jobs or more of its queue are claimed before it"
	}
	return Reason{Name: "jobs ahead", Text: text, Remedy: "wait, start more workers, or enqueue urgent jobs with a lower priority number"}
}

// processing tells who has the job and whether that is still to be believed.
func processing(job holdfast.Job) []Reason {
	var reasons []Reason
	switch {
	case !job.LeaseUntil.After(job.AsOf):
		reasons = append(reasons, Reason{Name: "worker silent", Text: fmt.Sprintf("worker %s went silent: its lease ran out %s", job.Worker, when(job.LeaseUntil)), Remedy: "any live worker reclaims it within seconds; without one, start one, or retry it manually"})
	case job.StartedAt.IsZero():
		reasons = append(reasons, Reason{Name: "claimed", Text: fmt.Sprintf("worker %s has claimed it and not started it yet, lease until %s", job.Worker, when(job.LeaseUntil)), Until: job.LeaseUntil, Remedy: "wait for a slot of that worker"})
	default:
		reasons = append(reasons, Reason{Name: "processing", Text: fmt.Sprintf("worker %s processes it since %s, lease until %s", job.Worker, when(job.StartedAt), when(job.LeaseUntil)), Remedy: "wait; if it hangs, cancel it or retry it as stuck"})
	}
	if job.Cancelling {
		reasons = append(reasons, Reason{Name: "cancelling", Text: "it was asked to stop, and its worker has not answered yet", Remedy: "wait: it ends cancelled whatever its handler returns"})
	}
	return reasons
}

// over tells how an ended job ended.
func (s *Service) over(job holdfast.Job, code failure.Code) []Reason {
	switch job.State {
	case holdfast.Complete:
		return []Reason{{Name: "complete", Text: "it is complete since " + when(job.FinishedAt)}}
	case holdfast.Cancelled:
		if !job.Upstream.IsZero() {
			return []Reason{followed(job)}
		}
		return []Reason{{Name: "cancelled", Text: "it was cancelled " + when(job.FinishedAt), Remedy: "enqueue it again: a cancelled job stays cancelled"}}
	case holdfast.Failed:
		return s.failed(job, code)
	}
	return []Reason{{Name: "nowhere", Text: "its row is damaged: it stands nowhere", Remedy: "run doctor"}}
}

func (s *Service) failed(job holdfast.Job, code failure.Code) []Reason {
	remedy := "retry it manually, or discard it with a reason"
	if code.Remedy != "" {
		remedy = strings.TrimSuffix(code.Remedy, ".") + "; then " + remedy
	}
	text := fmt.Sprintf("it failed for good %s with %s after %s", when(job.FinishedAt), code.Name, times(job.Failures, "failure"))
	if job.Crashes > 0 {
		text += " and " + times(job.Crashes, "crash")
	}
	reasons := []Reason{{Name: "failed", Text: text, Remedy: remedy}}
	if job.LastFailure != nil && job.LastFailure.Benign {
		return []Reason{{Name: "benign", Text: text + ", as was to be expected: it is no dead letter", Remedy: "nothing; retry it manually to take it up again"}}
	}
	if job.Discarded {
		reasons = append(reasons, Reason{Name: "discarded", Text: "somebody discarded it: it is no dead letter any more", Remedy: "retry it manually to take it up again"})
	}
	return reasons
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// times is a number of failures or crashes, in words that agree with it.
func times(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "sh"):
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
