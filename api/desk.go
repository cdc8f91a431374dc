package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A Desk is an operator's desk at a server: what is asked and done here is asked and done there.
type Desk struct{ c *Client }

// Desk opens the desk.
func (c *Client) Desk() *Desk { return &Desk{c} }

var _ ops.Desk = (*Desk)(nil)

// Job tells all about one job.
func (d *Desk) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return call(ctx, d.c, GetJob, ByID{id})
}

// Jobs lists what matches, newest first.
func (d *Desk) Jobs(ctx context.Context, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error) {
	out, err := call(ctx, d.c, ListJobs, jobsIn(f))
	return out.Jobs, out.Cursor, err
}

// DeadLetters lists failed jobs that nobody has discarded, newest first.
func (d *Desk) DeadLetters(ctx context.Context, f holdfast.Filter) (letters []ops.DeadLetter, cursor string, err error) {
	out, err := call(ctx, d.c, ListDeadLetters, selectionOf(f))
	return out.Letters, out.Cursor, err
}

// History is everything the store can prove about one job.
func (d *Desk) History(ctx context.Context, id holdfast.ID) (holdfast.History, error) {
	return call(ctx, d.c, GetHistory, ByID{id})
}

// Story tells how a job came to stand where it stands.
func (d *Desk) Story(ctx context.Context, id holdfast.ID) ([]ops.Line, error) {
	out, err := call(ctx, d.c, GetStory, ByID{id})
	return out.Story, err
}

// Explain answers why a job is not running.
func (d *Desk) Explain(ctx context.Context, id holdfast.ID) (ops.Explanation, error) {
	return call(ctx, d.c, ExplainJob, ByID{id})
}

// Artifacts lists what a job needs or has made that lies elsewhere.
func (d *Desk) Artifacts(ctx context.Context, job holdfast.ID) ([]holdfast.Artifact, error) {
	out, err := call(ctx, d.c, GetArtifacts, ByID{job})
	return out.Artifacts, err
}

// Stats counts jobs by queue, and who works on them.
func (d *Desk) Stats(ctx context.Context) (ops.Stats, error) {
	return call(ctx, d.c, GetStats, struct{}{})
}

// Workers lists those that are alive.
func (d *Desk) Workers(ctx context.Context) ([]holdfast.Presence, error) {
	out, err := call(ctx, d.c, ListWorkers, struct{}{})
	return out.Workers, err
}

// Analytics sums up what became of attempts.
func (d *Desk) Analytics(ctx context.Context, within time.Duration) (ops.Analytics, error) {
	return call(ctx, d.c, GetAnalytics, AnalyticsIn{within})
}

// Doctor puts every promise to the test.
func (d *Desk) Doctor(ctx context.Context) (ops.Report, error) {
	return call(ctx, d.c, GetDoctor, struct{}{})
}

// Retry sends one job round again at once, and answers how many are claimed before it.
func (d *Desk) Retry(ctx context.Context, i holdfast.Intervention) (ahead int, err error) {
	out, err := act(ctx, d, RetryJob, i.Actor, RetryIn{ByID{i.Job}, Asked{i.Request}, RetryBody{wordOn(i), i.StuckAfter}})
	return out.Ahead, err
}

// Cancel ends a queued job at once, or asks one in process to stop.
func (d *Desk) Cancel(ctx context.Context, i holdfast.Intervention) (holdfast.State, error) {
	out, err := act(ctx, d, CancelJob, i.Actor, OnJob{ByID{i.Job}, Asked{i.Request}, wordOn(i)})
	return out.State, err
}

// Discard takes a failed job off the dead letters.
func (d *Desk) Discard(ctx context.Context, i holdfast.Intervention) error {
	_, err := act(ctx, d, DiscardJob, i.Actor, OnJob{ByID{i.Job}, Asked{i.Request}, wordOn(i)})
	return err
}

// Edit changes a job that is queued.
func (d *Desk) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	in := EditIn{ByID: ByID{e.Job}, Asked: Asked{e.Request}, Body: EditBody{WordOn: wordOn(e.Intervention), Args: e.Patch, Whole: e.Args, Restore: e.Restore,
		Queue: e.Queue, Priority: e.Priority, Tags: e.Tags, MaxAttempts: e.MaxAttempts, Delay: e.Delay}}
	if e.Seen != "" {
		in.Match = strconv.Quote(e.Seen)
	}
	job, err := act(ctx, d, EditJob, e.Actor, in)
	if errors.Is(err, ErrPrecondition) { // near the store this is a conflict like any other
		err = &holdfast.Error{Kind: holdfast.ErrConflict, Message: err.Error(), Job: e.Job, Cause: err}
	}
	return job, err
}

// Groups lists what matches, newest first.
func (d *Desk) Groups(ctx context.Context, f holdfast.GroupFilter) (groups []holdfast.Group, cursor string, err error) {
	out, err := call(ctx, d.c, ListGroups, GroupsIn(f))
	return out.Groups, out.Cursor, err
}

// Group tells all about one group.
func (d *Desk) Group(ctx context.Context, id holdfast.ID) (ops.Gathering, error) {
	return call(ctx, d.c, GetGroup, ByGroup{id})
}

// SealGroup says that a group has all its members.
func (d *Desk) SealGroup(ctx context.Context, i holdfast.Intervention) error {
	_, err := act(ctx, d, SealGroup, i.Actor, OnGroup{ByGroup{i.Group}, Asked{i.Request}, wordOn(i)})
	return err
}

// RetryGroup sends round what failed in a group, and answers how many.
func (d *Desk) RetryGroup(ctx context.Context, i holdfast.Intervention) (int, error) {
	out, err := act(ctx, d, RetryGroup, i.Actor, OnGroup{ByGroup{i.Group}, Asked{i.Request}, wordOn(i)})
	return out.Jobs, err
}

// CancelGroup seals a group and has its members cancelled.
func (d *Desk) CancelGroup(ctx context.Context, i holdfast.Intervention) error {
	_, err := act(ctx, d, CancelGroup, i.Actor, OnGroup{ByGroup{i.Group}, Asked{i.Request}, wordOn(i)})
	return err
}

// Feed tells what happened after a number, in order.
func (d *Desk) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	return call(ctx, d.c, GetFeed, FeedIn{after, limit})
}

// Latest tells the last events there are.
func (d *Desk) Latest(ctx context.Context, limit int) (holdfast.Feed, error) {
	return call(ctx, d.c, GetLatest, LatestIn{limit})
}

// Trail tells what people did.
func (d *Desk) Trail(ctx context.Context, f ops.AuditFilter) (ops.Trail, error) {
	return call(ctx, d.c, GetAudit, AuditIn(f))
}
