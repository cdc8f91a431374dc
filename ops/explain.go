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
	"github.com/holdfastdev/holdfast/store"
)

// A Reason is one thing that keeps a job from running now, and what an operator can do about it.
type Reason struct {
	// Name is one of: scheduled, retry, throttled, released, jobs ahead, no worker, unknown kind, slots busy, expiring,
	// next, processing, claimed, lease expired, cancelling, complete, failed, benign, discarded, cancelled, damaged,
	// members, line, upstream, skipped, purged, duty paused; and of holds: queue paused, kind paused, owner paused, dependency paused, tag
	// paused, breaker, budget, window, handler, limit, rate.
	Name   string    `json:"name"`
	Text   string    `json:"text"`
	Remedy string    `json:"remedy,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself, if that is known
}

// An Explanation says why a job does not run now: every current reason, the most important first.
type Explanation struct {
	Job     holdfast.Job `json:"job"`
	Reasons []Reason     `json:"reasons"`
}

// Explain says why a job does not run. It also explains purged jobs, as long as their tombstones are kept.
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
	case job.State == holdfast.Queued && job.Waiting && job.Order != "":
		reasons, err := s.explainLine(ctx, job)
		return Explanation{job, reasons}, err
	case job.State == holdfast.Queued && job.Waiting:
		reasons, err := s.explainMember(ctx, job)
		return Explanation{job, reasons}, err
	case job.State == holdfast.Queued:
		queue, err := s.viewQueue(ctx, job)
		if err != nil {
			return Explanation{}, err
		}
		queue.code = code
		return Explanation{job, s.queuedReasons(job, queue)}, nil
	case job.State == holdfast.Processing:
		return Explanation{job, processingReasons(job)}, nil
	default:
		return Explanation{job, s.endedReasons(job, code)}, nil
	}
}

// A queueView is the state around a queued job.
type queueView struct {
	ahead        int
	holds        []jobHold
	workers      []store.WorkerInfo
	busy         []holdfast.Job // running jobs of the same queue
	code         failure.Code   // of the job's last failure
	pausedDuties []Reason       // duties that the job needs and that are paused
}

func (s *Service) viewQueue(ctx context.Context, job holdfast.Job) (q queueView, err error) {
	if q.holds, err = s.holdsOn(ctx, job); err != nil {
		return q, err
	}
	if q.workers, err = s.store.Workers(ctx); err != nil {
		return q, err
	}
	if q.ahead, err = s.store.Ahead(ctx, job.ID); err != nil {
		return q, err
	}
	if job.DueAt.After(job.AsOf) || len(q.holds) > 0 {
		if q.pausedDuties, err = s.pausedDuty(ctx, "promote", "it is not made claimable when its time comes"); err != nil {
			return q, err
		}
	}
	q.busy, _, err = s.store.Jobs(ctx, store.Filter{State: holdfast.Processing, Queue: job.Queue, Limit: maxPage})
	return q, err
}

// queuedReasons returns what a queued job waits for: its time, holds, workers, and the jobs ahead of it.
func (s *Service) queuedReasons(job holdfast.Job, q queueView) []Reason {
	var reasons []Reason
	if job.DueAt.After(job.AsOf) {
		reasons = append(reasons, s.notDue(job, q.code))
	}
	if !job.ExpireAt.IsZero() && !job.ExpireAt.After(job.AsOf) {
		reasons = append(reasons, Reason{Name: "expiring", Text: "it could not start by " + when(job.ExpireAt) + " and will fail as expired", Remedy: "enqueue it again, with a later expiry"})
	}
	for _, b := range q.holds {
		if b.blocks() {
			reasons = append(reasons, b.reason(job))
		}
	}
	reasons = append(reasons, q.pausedDuties...)
	reasons = append(reasons, workerReasons(job, q)...)
	if q.ahead > 0 {
		reasons = append(reasons, ahead(q.ahead))
	}
	if len(reasons) == 0 {
		reasons = append(reasons, Reason{Name: "next", Text: "nothing holds it: it is next in its queue", Remedy: "wait a moment and check again"})
	}
	return reasons
}

// notDue says why the job is not due yet.
func (s *Service) notDue(job holdfast.Job, code failure.Code) Reason {
	switch {
	case job.Releases > 0 && failure.IsThrottled(job.LastFailure):
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
	case job.Releases > 0:
		return Reason{Name: "released", Until: job.DueAt, Text: "its last attempt was released, and the next starts at " + when(job.DueAt) + " or later", Remedy: "retry it manually to start now"}
	}
	return Reason{Name: "scheduled", Until: job.DueAt, Text: "it is scheduled for " + when(job.DueAt), Remedy: "wait, or cancel it and enqueue it without a time"}
}

// throttled says that the dependency asked for a later call.
func throttled(job holdfast.Job, code failure.Code) Reason {
	reason := Reason{Name: "throttled", Until: job.DueAt, Remedy: "wait; or retry it manually to start now"}
	reason.Text = fmt.Sprintf("it was throttled with %s (%s) and waits until %s; no attempt was spent", code.Name, job.LastFailure.Message, when(job.DueAt))
	if detail := failure.Summary(job.LastFailure.Detail); detail != "" {
		reason.Text += ": " + detail
	}
	if code.Remedy != "" {
		reason.Remedy += "; the cause: " + code.Remedy
	}
	return reason
}

// workerReasons says what is wrong with the workers of the job's queue.
func workerReasons(job holdfast.Job, q queueView) []Reason {
	var on []store.WorkerInfo
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
	// Only one page of running jobs was read: with more slots than that it is not known whether all of them are busy.
	busy := 0
	for _, other := range q.busy {
		if slices.ContainsFunc(on, func(w store.WorkerInfo) bool { return w.Worker == other.Worker }) {
			busy++
		}
	}
	if slots > 0 && slots <= maxPage && busy >= slots {
		reasons = append(reasons, Reason{Name: "slots busy", Text: fmt.Sprintf("all %d slots of the %d workers of queue %s are busy", slots, len(on), job.Queue), Remedy: "wait, or start more workers"})
	}
	return reasons
}

func ahead(n int) Reason {
	text := fmt.Sprintf("%d jobs of its queue are ahead of it", n)
	switch {
	case n == 1:
		text = "1 job of its queue is ahead of it"
	case n >= 1000:
		text = "a thousand jobs or more of its queue are ahead of it"
	}
	return Reason{Name: "jobs ahead", Text: text, Remedy: "wait, start more workers, or enqueue urgent jobs with a lower priority number"}
}

// processingReasons says which worker runs the job and whether its lease is still valid.
func processingReasons(job holdfast.Job) []Reason {
	var reasons []Reason
	switch {
	case !job.LeaseUntil.After(job.AsOf):
		reasons = append(reasons, Reason{Name: "lease expired", Text: fmt.Sprintf("worker %s stopped renewing: its lease expired at %s", job.Worker, when(job.LeaseUntil)), Remedy: "a live worker reclaims it within seconds; if there is none, start one or retry the job manually"})
	case job.StartedAt.IsZero():
		reasons = append(reasons, Reason{Name: "claimed", Text: fmt.Sprintf("worker %s has claimed it and not started it yet, lease until %s", job.Worker, when(job.LeaseUntil)), Until: job.LeaseUntil, Remedy: "wait for a slot of that worker"})
	default:
		reasons = append(reasons, Reason{Name: "processing", Text: fmt.Sprintf("worker %s has been running it since %s, lease until %s", job.Worker, when(job.StartedAt), when(job.LeaseUntil)), Remedy: "wait; if it hangs, cancel it or retry it as stuck"})
	}
	if job.Cancelling {
		reasons = append(reasons, Reason{Name: "cancelling", Text: "it was asked to stop, and its worker has not settled it yet", Remedy: "wait: it ends as cancelled whatever its handler returns"})
	}
	return reasons
}

// endedReasons says how an ended job ended.
func (s *Service) endedReasons(job holdfast.Job, code failure.Code) []Reason {
	switch job.State {
	case holdfast.Complete:
		return []Reason{{Name: "complete", Text: "it completed at " + when(job.FinishedAt)}}
	case holdfast.Cancelled:
		if !job.Upstream.IsZero() || job.Skipped {
			return []Reason{upstreamReason(job)}
		}
		return []Reason{{Name: "cancelled", Text: "it was cancelled at " + when(job.FinishedAt), Remedy: "enqueue it again: a cancelled job stays cancelled"}}
	case holdfast.Failed:
		return s.failedReasons(job, code)
	}
	return []Reason{{Name: "damaged", Text: "its row is damaged: it has no valid state", Remedy: "run holdfast doctor"}}
}

func (s *Service) failedReasons(job holdfast.Job, code failure.Code) []Reason {
	remedy := "retry it manually, or discard it with a reason"
	if code.Remedy != "" {
		remedy = strings.TrimSuffix(code.Remedy, ".") + "; then " + remedy
	}
	text := fmt.Sprintf("it failed for good at %s with %s after %s", when(job.FinishedAt), code.Name, times(job.Failures, "failure"))
	if job.Crashes > 0 {
		text += " and " + times(job.Crashes, "crash")
	}
	reasons := []Reason{{Name: "failed", Text: text, Remedy: remedy}}
	if job.LastFailure != nil && job.LastFailure.Benign {
		return []Reason{{Name: "benign", Text: text + "; the failure is benign, so it is not a dead letter", Remedy: "no action needed; to run it again, retry it manually"}}
	}
	if job.Discarded {
		reasons = append(reasons, Reason{Name: "discarded", Text: "it was discarded: it is no longer a dead letter", Remedy: "to run it again, retry it manually"})
	}
	return reasons
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// times formats a number of failures or crashes.
func times(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "sh"):
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
