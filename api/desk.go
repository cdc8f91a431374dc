package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A Desk implements ops.Desk on a server: each method calls one route. It is safe for concurrent use.
type Desk struct{ c *Client }

// Desk returns the operator interface of the server.
func (c *Client) Desk() *Desk { return &Desk{c} }

var _ ops.Desk = (*Desk)(nil)

// Job returns one job.
func (d *Desk) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return call(ctx, d.c, GetJob, ByID{id})
}

// Jobs lists jobs that match the filter, newest first.
func (d *Desk) Jobs(ctx context.Context, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error) {
	out, err := call(ctx, d.c, ListJobs, jobsIn(f))
	return out.Jobs, out.Cursor, err
}

// DeadLetters lists jobs that failed for good and were not discarded, newest first.
func (d *Desk) DeadLetters(ctx context.Context, f holdfast.Filter) (letters []ops.DeadLetter, cursor string, err error) {
	out, err := call(ctx, d.c, ListDeadLetters, selectionOf(f))
	return out.Letters, out.Cursor, err
}

// History returns everything that is stored about one job.
func (d *Desk) History(ctx context.Context, id holdfast.ID) (holdfast.History, error) {
	return call(ctx, d.c, GetHistory, ByID{id})
}

// Story returns the history of a job as people read it: each transition once, in order.
func (d *Desk) Story(ctx context.Context, id holdfast.ID) ([]ops.Line, error) {
	out, err := call(ctx, d.c, GetStory, ByID{id})
	return out.Story, err
}

// Explain returns the reasons why a job is not running, and what can be done.
func (d *Desk) Explain(ctx context.Context, id holdfast.ID) (ops.Explanation, error) {
	return call(ctx, d.c, ExplainJob, ByID{id})
}

// Artifacts lists the files and other objects outside the store that a job needs or has made.
func (d *Desk) Artifacts(ctx context.Context, job holdfast.ID) ([]holdfast.Artifact, error) {
	out, err := call(ctx, d.c, GetArtifacts, ByID{job})
	return out.Artifacts, err
}

// Stats counts jobs by queue, and lists the workers.
func (d *Desk) Stats(ctx context.Context) (ops.Stats, error) {
	return call(ctx, d.c, GetStats, struct{}{})
}

// Workers lists the workers that are alive.
func (d *Desk) Workers(ctx context.Context) ([]holdfast.Presence, error) {
	out, err := call(ctx, d.c, ListWorkers, struct{}{})
	return out.Workers, err
}

// Analytics summarises the results of attempts.
func (d *Desk) Analytics(ctx context.Context, within time.Duration) (ops.Analytics, error) {
	return call(ctx, d.c, GetAnalytics, AnalyticsIn{within})
}

// Doctor runs the integrity check.
func (d *Desk) Doctor(ctx context.Context) (ops.Report, error) {
	return call(ctx, d.c, GetDoctor, struct{}{})
}

// Retry queues one job again at once. It returns how many jobs of the same queue are claimed before it.
func (d *Desk) Retry(ctx context.Context, i holdfast.Intervention) (ahead int, err error) {
	out, err := act(ctx, d, RetryJob, i.Actor, RetryIn{ByID{i.Job}, Asked{i.Request}, RetryBody{wordOn(i), i.StuckAfter}})
	return out.Ahead, err
}

// Cancel cancels a queued job at once, or asks the worker of a processing job to stop it. It returns the state after the call.
func (d *Desk) Cancel(ctx context.Context, i holdfast.Intervention) (holdfast.State, error) {
	out, err := act(ctx, d, CancelJob, i.Actor, OnJob{ByID{i.Job}, Asked{i.Request}, wordOn(i)})
	return out.State, err
}

// Discard removes a failed job from the dead letters.
func (d *Desk) Discard(ctx context.Context, i holdfast.Intervention) error {
	_, err := act(ctx, d, DiscardJob, i.Actor, OnJob{ByID{i.Job}, Asked{i.Request}, wordOn(i)})
	return err
}

// Edit changes a queued job or a dead letter.
func (d *Desk) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	in := EditIn{ByID: ByID{e.Job}, Asked: Asked{e.Request}, Body: EditBody{WordOn: wordOn(e.Intervention), Args: e.Patch, Whole: e.Args, Restore: e.Restore,
		Queue: e.Queue, Priority: e.Priority, Tags: e.Tags, MaxAttempts: e.MaxAttempts, Delay: e.Delay}}
	if e.Seen != "" {
		in.Match = strconv.Quote(e.Seen)
	}
	job, err := act(ctx, d, EditJob, e.Actor, in)
	if errors.Is(err, ErrPrecondition) { // the conflict that ops.Desk documents
		err = &holdfast.Error{Kind: holdfast.ErrConflict, Message: err.Error(), Job: e.Job, Cause: err}
	}
	return job, err
}

// Groups lists groups that match the filter, newest first.
func (d *Desk) Groups(ctx context.Context, f holdfast.GroupFilter) (groups []holdfast.Group, cursor string, err error) {
	out, err := call(ctx, d.c, ListGroups, GroupsIn(f))
	return out.Groups, out.Cursor, err
}

// Group returns one group with the state of its members.
func (d *Desk) Group(ctx context.Context, id holdfast.ID) (ops.Gathering, error) {
	return call(ctx, d.c, GetGroup, ByGroup{id})
}

// SealGroup declares that a group has all its members.
func (d *Desk) SealGroup(ctx context.Context, i holdfast.Intervention) error {
	_, err := act(ctx, d, SealGroup, i.Actor, OnGroup{ByGroup{i.Group}, Asked{i.Request}, wordOn(i)})
	return err
}

// RetryGroup retries the failed members of a group. It returns how many.
func (d *Desk) RetryGroup(ctx context.Context, i holdfast.Intervention) (int, error) {
	out, err := act(ctx, d, RetryGroup, i.Actor, OnGroup{ByGroup{i.Group}, Asked{i.Request}, wordOn(i)})
	return out.Jobs, err
}

// CancelGroup seals a group and cancels its members.
func (d *Desk) CancelGroup(ctx context.Context, i holdfast.Intervention) error {
	_, err := act(ctx, d, CancelGroup, i.Actor, OnGroup{ByGroup{i.Group}, Asked{i.Request}, wordOn(i)})
	return err
}

// Feed returns events after a number, in order.
func (d *Desk) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	return call(ctx, d.c, GetFeed, FeedIn{after, limit})
}

// Latest returns the newest events.
func (d *Desk) Latest(ctx context.Context, limit int) (holdfast.Feed, error) {
	return call(ctx, d.c, GetLatest, LatestIn{limit})
}

// Trail reads the audit log.
func (d *Desk) Trail(ctx context.Context, f ops.AuditFilter) (ops.Trail, error) {
	return call(ctx, d.c, GetAudit, AuditIn(f))
}
