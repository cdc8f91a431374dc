package client

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// An Operator implements ops.Operator on a server: each method calls one route. It is safe for concurrent use.
type Operator struct{ c *Client }

// Operator returns the operator interface of the server.
func (c *Client) Operator() *Operator { return &Operator{c} }

// Job returns one job.
func (d *Operator) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return call(ctx, d.c, api.GetJob, api.JobIn{ByID: api.ByID{ID: id}})
}

// WaitJob waits until a job has ended and returns it; see holdfast.WaitJob. The server delays its answers, so the client sends two requests a minute.
func (d *Operator) WaitJob(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return waitJob(ctx, d.c, func(wait time.Duration) (holdfast.Job, error) {
		return call(ctx, d.c, api.GetJob, api.JobIn{ByID: api.ByID{ID: id}, Wait: wait})
	})
}

// Jobs lists jobs that match the filter, newest first.
func (d *Operator) Jobs(ctx context.Context, f store.Filter) (jobs []holdfast.Job, cursor string, err error) {
	out, err := call(ctx, d.c, api.ListJobs, api.JobsInOf(f))
	return out.Jobs, out.Cursor, err
}

// DeadLetters lists jobs that failed for good and were not discarded, newest first.
func (d *Operator) DeadLetters(ctx context.Context, f store.Filter) (letters []ops.DeadLetter, cursor string, err error) {
	out, err := call(ctx, d.c, api.ListDeadLetters, api.SelectionOf(f))
	return out.Letters, out.Cursor, err
}

// History returns everything that is stored about one job.
func (d *Operator) History(ctx context.Context, id holdfast.ID) (store.History, error) {
	return call(ctx, d.c, api.GetHistory, api.ByID{ID: id})
}

// Story returns the history of a job as people read it: each transition once, in order.
func (d *Operator) Story(ctx context.Context, id holdfast.ID) ([]ops.StoryLine, error) {
	out, err := call(ctx, d.c, api.GetStory, api.ByID{ID: id})
	return out.Story, err
}

// Explain returns the reasons why a job is not running, and what can be done.
func (d *Operator) Explain(ctx context.Context, id holdfast.ID) (ops.Explanation, error) {
	return call(ctx, d.c, api.ExplainJob, api.ByID{ID: id})
}

// Artifacts lists the files and other objects outside the store that a job needs or has made.
func (d *Operator) Artifacts(ctx context.Context, job holdfast.ID) ([]store.Artifact, error) {
	out, err := call(ctx, d.c, api.GetArtifacts, api.ByID{ID: job})
	return out.Artifacts, err
}

// Stats counts jobs by queue, and lists the workers.
func (d *Operator) Stats(ctx context.Context) (ops.Stats, error) {
	return call(ctx, d.c, api.GetStats, struct{}{})
}

// Workers lists the workers that are alive.
func (d *Operator) Workers(ctx context.Context) ([]store.WorkerInfo, error) {
	out, err := call(ctx, d.c, api.ListWorkers, struct{}{})
	return out.Workers, err
}

// Analytics summarises the results of attempts.
func (d *Operator) Analytics(ctx context.Context, within time.Duration) (ops.Analytics, error) {
	return call(ctx, d.c, api.GetAnalytics, api.AnalyticsIn{Within: within})
}

// CheckIntegrity runs the integrity check.
func (d *Operator) CheckIntegrity(ctx context.Context) (ops.IntegrityReport, error) {
	return call(ctx, d.c, api.GetDoctor, struct{}{})
}

// Retry queues one job again at once. It returns how many jobs of the same queue are claimed before it.
func (d *Operator) Retry(ctx context.Context, i store.Intervention) (ahead int, err error) {
	out, err := act(ctx, d, api.RetryJob, i.Actor, api.RetryIn{ByID: api.ByID{ID: i.Job}, Asked: api.Asked{Request: i.Request}, Body: api.RetryBody{WordOn: wordOn(i), StuckAfter: i.StuckAfter}})
	return out.Ahead, err
}

// Cancel cancels a queued job at once, or asks the worker of a processing job to stop it. It returns the state after the call.
func (d *Operator) Cancel(ctx context.Context, i store.Intervention) (holdfast.State, error) {
	out, err := act(ctx, d, api.CancelJob, i.Actor, api.OnJob{ByID: api.ByID{ID: i.Job}, Asked: api.Asked{Request: i.Request}, Body: wordOn(i)})
	return out.State, err
}

// Discard removes a failed job from the dead letters.
func (d *Operator) Discard(ctx context.Context, i store.Intervention) error {
	_, err := act(ctx, d, api.DiscardJob, i.Actor, api.OnJob{ByID: api.ByID{ID: i.Job}, Asked: api.Asked{Request: i.Request}, Body: wordOn(i)})
	return err
}

// Edit changes a queued job or a dead letter.
func (d *Operator) Edit(ctx context.Context, e store.Edit) (holdfast.Job, error) {
	in := api.EditIn{ByID: api.ByID{ID: e.Job}, Asked: api.Asked{Request: e.Request}, Body: api.EditBody{WordOn: wordOn(e.Intervention), Args: e.Patch, Whole: e.Args, Restore: e.Restore,
		Queue: e.Queue, Priority: e.Priority, Tags: e.Tags, MaxAttempts: e.MaxAttempts, Delay: e.Delay}}
	if e.IfDigest != "" {
		in.Match = strconv.Quote(e.IfDigest)
	}
	job, err := act(ctx, d, api.EditJob, e.Actor, in)
	if errors.Is(err, api.ErrPrecondition) { // the conflict that ops.Operator documents
		err = &holdfast.Error{Err: holdfast.ErrConflict, Message: err.Error(), Job: e.Job, Cause: err}
	}
	return job, err
}

// Groups lists groups that match the filter, newest first.
func (d *Operator) Groups(ctx context.Context, f store.GroupFilter) (groups []holdfast.Group, cursor string, err error) {
	out, err := call(ctx, d.c, api.ListGroups, api.GroupsIn(f))
	return out.Groups, out.Cursor, err
}

// Group returns one group with the state of its members.
func (d *Operator) Group(ctx context.Context, id holdfast.ID) (ops.GroupDetail, error) {
	return call(ctx, d.c, api.GetGroup, api.ByGroup{ID: id})
}

// GroupGraph returns the members of a group and what they wait for.
func (d *Operator) GroupGraph(ctx context.Context, id holdfast.ID) (ops.Graph, error) {
	return call(ctx, d.c, api.GetGraph, api.ByGroup{ID: id})
}

// SealGroup declares that a group has all its members.
func (d *Operator) SealGroup(ctx context.Context, i store.Intervention) error {
	_, err := act(ctx, d, api.SealGroup, i.Actor, api.OnGroup{ByGroup: api.ByGroup{ID: i.Group}, Asked: api.Asked{Request: i.Request}, Body: wordOn(i)})
	return err
}

// RetryGroup retries the failed members of a group. It returns how many.
func (d *Operator) RetryGroup(ctx context.Context, i store.Intervention) (int, error) {
	out, err := act(ctx, d, api.RetryGroup, i.Actor, api.RetryGroupIn{ByGroup: api.ByGroup{ID: i.Group}, Asked: api.Asked{Request: i.Request}, Body: api.RetryGroupBody{WordOn: wordOn(i), Compensated: i.Compensated}})
	return out.Jobs, err
}

// CancelGroup seals a group and cancels its members.
func (d *Operator) CancelGroup(ctx context.Context, i store.Intervention) error {
	_, err := act(ctx, d, api.CancelGroup, i.Actor, api.OnGroup{ByGroup: api.ByGroup{ID: i.Group}, Asked: api.Asked{Request: i.Request}, Body: wordOn(i)})
	return err
}

// Feed returns events after a number, in order.
func (d *Operator) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	return call(ctx, d.c, api.GetFeed, api.FeedIn{After: after, Limit: limit})
}

// LatestEvents returns the newest events.
func (d *Operator) LatestEvents(ctx context.Context, limit int) (store.Feed, error) {
	return call(ctx, d.c, api.GetLatest, api.LatestIn{Limit: limit})
}

// AuditLog reads the audit log.
func (d *Operator) AuditLog(ctx context.Context, f ops.AuditFilter) (ops.AuditLog, error) {
	return call(ctx, d.c, api.GetAudit, api.AuditIn(f))
}

var _ ops.Operator = (*Operator)(nil)
