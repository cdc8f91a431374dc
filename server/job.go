package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountJobs() {
	operator := s.cfg.Operator
	mount(s, api.GetJob, func(ctx context.Context, _ Caller, in *api.JobIn) (holdfast.Job, error) {
		return s.waitForJob(ctx, in.ID, in.Wait, operator.Job)
	})
	mount(s, api.ListJobs, func(ctx context.Context, _ Caller, in *api.JobsIn) (out api.JobsOut, err error) {
		out.Jobs, out.Cursor, err = operator.Jobs(ctx, in.Filter())
		return out, err
	})
	mount(s, api.GetStory, func(ctx context.Context, _ Caller, in *api.ByID) (out api.StoryOut, err error) {
		out.Story, err = operator.Story(ctx, in.ID)
		return out, err
	})
	mount(s, api.ExplainJob, func(ctx context.Context, c Caller, in *api.ByID) (ops.Explanation, error) {
		shown, err := operator.Explain(ctx, in.ID)
		if c.Owner != "" {
			shown.Reasons = withoutOperators(shown.Reasons)
		}
		return shown, err
	})
	mount(s, api.GetHistory, func(ctx context.Context, c Caller, in *api.ByID) (store.History, error) {
		h, err := operator.History(ctx, in.ID)
		return historyFor(c, h), err
	})
	mount(s, api.GetArtifacts, func(ctx context.Context, _ Caller, in *api.ByID) (out api.ArtifactsOut, err error) {
		out.Artifacts, err = operator.Artifacts(ctx, in.ID)
		return out, err
	})
	mount(s, api.RetryJob, func(ctx context.Context, c Caller, in *api.RetryIn) (out api.RetryOut, err error) {
		i := c.onJob(in.ID, in.Body.WordOn)
		i.StuckAfter = in.Body.StuckAfter
		out.Ahead, err = operator.Retry(ctx, i)
		return out, err
	})
	mount(s, api.CancelJob, func(ctx context.Context, c Caller, in *api.OnJob) (out api.CancelOut, err error) {
		out.State, err = operator.Cancel(ctx, c.onJob(in.ID, in.Body))
		return out, err
	})
	mount(s, api.DiscardJob, func(ctx context.Context, c Caller, in *api.OnJob) (nothing, error) {
		return nothing{}, operator.Discard(ctx, c.onJob(in.ID, in.Body))
	})
	mount(s, api.EditJob, s.edit)
	mount(s, api.ListStuck, s.stuck)
	mount(s, api.ProcessStuck, func(ctx context.Context, c Caller, in *api.Said) (nothing, error) {
		return nothing{}, operator.RunDuty(ctx, "reclaim", c.by(in.Body))
	})
}

// historyFor is a history as the caller may read it. Former values of an edited job may contain a secret that the edit removed, so only callers that can
// restore them get them. Other callers see the differences in the story, in which credentials are hidden.
func historyFor(c Caller, h store.History) store.History {
	if !c.Scope.Allows(apikey.Operator) {
		for i := range h.Events {
			h.Events[i].Was = nil
		}
	}
	return h
}

// plainReasons are the names of reasons that a job's owner may read in full. All others are holds, which contain names and reasons of operators.
var plainReasons = []string{"scheduled", "retry", "throttled", "released", "jobs ahead", "no worker", "unknown kind", "slots busy", "expiring", "next", "processing", "claimed", "lease expired",
	"cancelling", "complete", "failed", "benign", "discarded", "cancelled", "damaged", "members", "line", "upstream", "skipped", "purged"}

// withoutOperators are reasons as a key that is bound to an owner gets them: what holds a job and until when, but not who holds it or why.
func withoutOperators(reasons []ops.Reason) []ops.Reason {
	shown := slices.Clone(reasons)
	for i := range shown {
		if r := &shown[i]; !slices.Contains(plainReasons, r.Name) {
			r.Text, r.Remedy = "it is held ("+r.Name+")", "wait, or ask the operators of this server"
		}
	}
	return shown
}

// edit edits a job. If the job has changed since the caller read it, the error is ErrPrecondition: the caller may read it again and retry. Any other
// conflict means that the job cannot be edited.
func (s *Server) edit(ctx context.Context, c Caller, in *api.EditIn) (holdfast.Job, error) {
	b := in.Body
	e := store.Edit{Intervention: c.onJob(in.ID, b.WordOn), Patch: b.Args, Args: b.Whole, Restore: b.Restore, Queue: b.Queue, Priority: b.Priority, Tags: b.Tags, MaxAttempts: b.MaxAttempts, Delay: b.Delay}
	var err error
	if e.IfDigest, err = seen(in.Match); err != nil {
		return holdfast.Job{}, err
	}
	job, err := s.cfg.Operator.Edit(ctx, e)
	if e.IfDigest == "" || !errors.Is(err, holdfast.ErrConflict) {
		return job, err
	}
	if now, failed := s.cfg.Operator.Job(ctx, in.ID); failed == nil && now.Digest() != e.IfDigest {
		err = &holdfast.Error{Err: api.ErrPrecondition, Message: err.Error(), Job: in.ID}
	}
	return job, err
}

// seen is the digest in an If-Match header; empty for a star, which matches any.
func seen(match string) (string, error) {
	if match == "" || match == "*" {
		return "", nil
	}
	text, err := strconv.Unquote(match)
	if err != nil || match[0] != '"' || text == "" || strings.ContainsAny(text, "\",") {
		return "", &holdfast.Error{Err: holdfast.ErrInvalid, Message: "If-Match is not valid: send the ETag of the job as you received it, in quotes"}
	}
	return text, nil
}

// mostStuck is the maximum number of processing jobs that one call examines.
const mostStuck = 10_000

// stuck finds processing jobs whose lease has expired, or that a worker has held for longer than in.After.
func (s *Server) stuck(ctx context.Context, _ Caller, in *api.StuckIn) (out api.StuckOut, err error) {
	if in.After < 0 {
		return out, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "after is negative: give a duration such as 10m"}
	}
	f := store.Filter{State: holdfast.Processing, Queue: in.Queue, Kind: in.Kind, Owner: in.Owner, Limit: 200}
	for {
		jobs, cursor, err := s.cfg.Operator.Jobs(ctx, f)
		if err != nil {
			return out, err
		}
		for _, job := range jobs {
			started := !job.StartedAt.IsZero()
			if job.LeaseUntil.Before(job.AsOf) || in.After > 0 && started && job.AsOf.Sub(job.StartedAt) > in.After {
				out.Jobs = append(out.Jobs, job)
			}
		}
		out.Looked += len(jobs)
		if f.Cursor = cursor; cursor == "" || out.Looked >= mostStuck {
			out.More = cursor != ""
			return out, nil
		}
	}
}
