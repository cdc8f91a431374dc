package store

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Store keeps jobs durably. Everything it acknowledges survives a crash of any process and of the machine. The store has
// the only clock: callers pass durations and the store turns them into points in time, so clocks of machines need not
// agree.
//
// Store is composed of roles. Ask for the smallest role that a function needs. All methods are safe for concurrent use.
// Errors wrap one of the Err variables of package holdfast.
type Store interface {
	holdfast.Enqueuer
	Claimer
	Maintainer
	Operator
	Inspector
	Analyst
	Grouper
	Archiver

	// In returns the store as the caller's transaction sees it. If the store does not know the type of tx, every call
	// returns ErrInvalid.
	In(tx any) Tx
	// Close waits for writes in progress and closes the database.
	Close() error
}

// A Tx is a store inside a transaction of the caller (Store.In). What it writes exists if and when that transaction commits.
type Tx interface {
	holdfast.Enqueuer
	// Jobs lists jobs as Inspector.Jobs does, those included that the transaction has enqueued.
	Jobs(ctx context.Context, f Filter) (jobs []holdfast.Job, cursor string, err error)
	// Complete ends leases of jobs that are complete, if and when the transaction commits. It returns one error for each
	// settlement, in order:
	//
	//   - nil: its job is complete in the transaction, or an earlier transaction with the same settlement has committed;
	//   - ErrLeaseLost: the lease is no longer held; nothing was written;
	//   - ErrInvalid: the settlement is malformed, or not to complete.
	//
	// A refused settlement changes nothing, and the transaction can still be used. As with Claimer.Settle, a job with a pending
	// request to cancel becomes cancelled. From this call until the transaction ends, other changes to jobs of the same batch
	// wait for it, renewals included: call Complete last, right before the commit.
	Complete(ctx context.Context, settlements []Settlement) ([]error, error)
}

// A Claimer is the part of a store that worker processes use.
type Claimer interface {
	// Claim leases due jobs to the caller, moving them from queued to processing, and skips held jobs. Each claimed job
	// gets a new token, one higher than before. No other claim returns these jobs until they are settled, or their batch
	// expires and is reclaimed.
	//
	// Owners share fairly by their weights (records of namespace "share"): no owner gets more than another while both have jobs
	// that may run. Among the jobs of one owner, lower priority numbers are claimed first, and older jobs first within a
	// priority. One claim in sixteen shares evenly between priorities, so that no priority starves. If the jobs of an owner
	// are spread over more than sixteen lanes, the order by age holds within a lane and, between lanes, in runs: a job may
	// be overtaken by up to sixteen younger jobs of each other lane.
	Claim(ctx context.Context, c Claim) ([]Lease, error)
	// Renew extends the leases of batches in one call. It revives a batch that has expired and was not reclaimed yet.
	Renew(ctx context.Context, renewals []Renewal, lease time.Duration) (RenewResult, error)
	// Settle ends leases. It returns one error for each settlement, in order:
	//
	//   - nil: it was applied, now or by an earlier call with the same content, so a call whose answer was lost can be repeated;
	//   - ErrLeaseLost: the lease is no longer held; the settlement is recorded as a late attempt and changes nothing;
	//   - ErrConflict: the settlement only asks whether it was applied (Settlement.Confirm); it was not, and the lease is still held;
	//   - ErrInvalid: the settlement is malformed; the lease is still held.
	//
	// A refused settlement does not affect the others. A job with a pending request to cancel becomes cancelled whatever the
	// settlement says, and the settlement is recorded as its last attempt.
	Settle(ctx context.Context, settlements []Settlement) ([]error, error)
	// Note saves progress and checkpoints. It returns one error for each note, as Settle does.
	Note(ctx context.Context, notes []Note) ([]error, error)
	// Upstreams returns the members of its group for which a leased job waited, sorted by id, and how they ended. The cursor is for
	// the next page and empty on the last; a page ends after a few megabytes of results. It returns ErrLeaseLost if the lease is
	// not held. With a step (UpstreamFilter.Step) it returns one member, or ErrNotFound if the job did not wait for a member with
	// that name, or ErrPurged if retention has deleted it.
	Upstreams(ctx context.Context, f UpstreamFilter) (upstreams []Upstream, cursor string, err error)
	// ReportWorker reports that a worker process is alive, what it works on, and for how long the report is valid.
	ReportWorker(ctx context.Context, p WorkerInfo) error
	// Await returns when there may be new jobs in the queues (in any queue if none is named) or a job to cancel, or when
	// patience has passed. It is a hint: if every wake-up is lost, jobs start at most one poll interval later.
	Await(ctx context.Context, queues []string, patience time.Duration) (Wake, error)
}

// A Maintainer is the part of a store that duties use: changes that time brings, and shared records. Any process may call its
// methods at any time; repeating a call is harmless.
type Maintainer interface {
	// Promote makes up to limit queued jobs claimable whose start time has come, and returns how many.
	Promote(ctx context.Context, limit int) (int, error)
	// Reclaim takes over batches that have expired. Jobs that their worker never started return to their queue at no cost (one
	// release). The others are leased to the caller in a new batch, under a new token, with Lost naming the old worker: the
	// caller decides and settles them like any attempt. If the caller dies too, they are reclaimed again, and the crash is
	// counted once.
	Reclaim(ctx context.Context, c Claim) ([]Lease, error)
	// Expire leases queued jobs whose expiry has passed to the caller, in a batch of its own, to be settled as expired.
	Expire(ctx context.Context, c Claim) ([]Lease, error)
	// MissedDeadlines finds jobs whose next attempt did not start within the time that their last settlement gave (Settlement.StartWithin). It
	// records this once in the story of each job and returns up to limit of them.
	MissedDeadlines(ctx context.Context, limit int) ([]holdfast.ID, error)

	// Records returns the records of a namespace, sorted by name.
	Records(ctx context.Context, namespace string) ([]Record, error)
	// Apply makes the changes, all or none. See Change for conflicts.
	Apply(ctx context.Context, c Change) error
	// Redrive sends dead letters to their queues again or discards them. It returns one error for each job, in order: nil
	// if it was done, now or by an earlier step of the same redrive; ErrConflict if the job is not a dead letter;
	// ErrNotFound.
	Redrive(ctx context.Context, r Redrive) ([]error, error)
	// Redriven counts the jobs of a redrive by their current state.
	Redriven(ctx context.Context, redrive holdfast.ID) (RedriveCounts, error)
}

// An Operator is the part of a store through which people intervene. Each change is recorded in the job's story with actor and
// reason.
type Operator interface {
	// Retry sends a job to its queue at once, as a new generation with counters at zero. It applies to a failed job, to a
	// job that waits for an automatic retry (which it replaces; the job is never in the queue twice), and to a stuck job:
	// one that is past its lease, or processing for longer than StuckAfter. Any other job is ErrConflict, and so is a job
	// whose expiry has passed. It returns how many jobs of the same queue are ahead of it.
	Retry(ctx context.Context, i Intervention) (ahead int, err error)
	// Cancel ends a queued job at once and returns Cancelled. It asks the worker of a processing job to stop and returns
	// Processing: that job will end as cancelled, whatever its handler returns. An ended job is ErrConflict.
	Cancel(ctx context.Context, i Intervention) (holdfast.State, error)
	// Discard removes a failed job from the dead letters. It stays failed and can still be retried. A reason is required.
	Discard(ctx context.Context, i Intervention) error
	// Edit changes a queued or failed job and returns the changed job. It returns ErrConflict if the job is in another
	// state, or if it has changed since the editor saw it (Edit.IfDigest).
	Edit(ctx context.Context, e Edit) (holdfast.Job, error)
	// Pause places a hold. It replaces the hold of the same source on the same name.
	Pause(ctx context.Context, h Hold) error
	// Resume lifts a hold. Lifting a hold that does not exist is no error.
	Resume(ctx context.Context, h Hold) error
	// Triage changes the status of an error group, or adds a note to it.
	Triage(ctx context.Context, t Triage) error
}

// An Inspector reads single jobs and the state of the store. It changes nothing.
type Inspector interface {
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	// Jobs lists the jobs that match, newest first. The cursor is for the next page and empty on the last.
	Jobs(ctx context.Context, f Filter) (jobs []holdfast.Job, cursor string, err error)
	// History returns everything that the store has recorded about one job.
	History(ctx context.Context, id holdfast.ID) (History, error)
	// Ahead counts the claimable jobs of the same queue that are ahead of this one, up to a thousand.
	Ahead(ctx context.Context, id holdfast.ID) (int, error)
	Holds(ctx context.Context) ([]Hold, error)
	// HeldLines lists up to limit lines of order keys that a dead letter holds, the oldest job first. The limit is at most a thousand.
	HeldLines(ctx context.Context, limit int) ([]HeldLine, error)
	Workers(ctx context.Context) ([]WorkerInfo, error)
	// Counts reads every row. It is for the integrity check and for tests; for anything periodic use Depths.
	Counts(ctx context.Context) ([]Count, error)
	// CheckIntegrity is the integrity check (holdfast doctor). It verifies every invariant of the store and returns the rows that
	// violate one. A healthy store returns none.
	CheckIntegrity(ctx context.Context) ([]Finding, error)
}

// An Analyst answers questions about many jobs at once. It changes nothing.
type Analyst interface {
	// ErrorGroups lists the error groups that match, the last seen first. The cursor is for the next page and empty on the last.
	ErrorGroups(ctx context.Context, f ErrorFilter) (groups []ErrorGroup, cursor string, err error)
	// Events lists up to limit events of a subject that is not a job, newest first.
	Events(ctx context.Context, subject string, limit int) ([]Event, error)
	// RetryStats sums up the attempts of jobs that were created within that time.
	RetryStats(ctx context.Context, within time.Duration) ([]RetryStats, error)
	// CountHeld counts the due jobs that a hold keeps back, up to ten thousand.
	CountHeld(ctx context.Context, h Hold) (int, error)
	// Count counts the jobs that match, up to most: if it returns most, there may be more. It reads no more rows than a
	// list would.
	Count(ctx context.Context, f Filter, most int) (int, error)
	// Depths counts the jobs of each queue, sorted by name, without reading all of them.
	Depths(ctx context.Context) ([]Depth, error)
	// Trends counts the attempts that ended within that time, by step and queue, the oldest step first. The step is rounded
	// up to whole minutes; a step in which no attempt ended is left out.
	Trends(ctx context.Context, within, step time.Duration) ([]Trend, error)
	// ErrorTrends returns the trends of up to 200 error groups within that time, in the order of the fingerprints. Steps
	// are at least five minutes. Unknown fingerprints have none.
	ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]ErrorTrend, error)
}

// A Grouper reads and changes groups.
type Grouper interface {
	// Group returns a group with the counts of its members.
	Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error)
	// Groups lists the groups that match, newest first, without member counts. The cursor is for the next page and empty on
	// the last.
	Groups(ctx context.Context, f GroupFilter) (groups []holdfast.Group, cursor string, err error)
	// GroupGraph returns the first members of a group, by id, and what each of them waits for.
	GroupGraph(ctx context.Context, id holdfast.ID) (GroupGraph, error)
	// RetryGroup retries the failed members and those that were cancelled because of them, also in nested groups, and returns how
	// many. The group is processing again. A group without such members is ErrConflict.
	RetryGroup(ctx context.Context, i Intervention) (int, error)
	// CancelGroup seals the group and requests the cancellation of its members, also in nested groups; AdvanceGroups carries it
	// out. A settled group is ErrConflict.
	CancelGroup(ctx context.Context, i Intervention) error
	// AdvanceGroups processes the consequences of ended members, in steps that any process may take at any time: it starts or
	// cancels the members that waited for them, settles groups whose members have all ended, and cancels the remaining
	// members of groups that were cancelled or have expired. It returns how many changes it made; unless that is 0, there
	// may be more.
	AdvanceGroups(ctx context.Context, limit int) (int, error)
}

// An Archiver keeps events, tombstones and artifacts, and deletes by retention.
type Archiver interface {
	// Sequence assigns feed numbers to the events since the last call and adds audit-log entries to a chain of hashes. It
	// returns how many pages it processed; if that equals limit, there may be more.
	Sequence(ctx context.Context, limit int) (int, error)
	// Feed returns up to limit events after a number, in order. Feed.Missed tells if some were deleted.
	Feed(ctx context.Context, after int64, limit int) (Feed, error)
	// Purge deletes ended jobs whose retention time has passed. Each leaves a tombstone and is counted.
	Purge(ctx context.Context, p Purge) (PurgeResult, error)
	// DeleteHistory deletes up to limit entries of one kind of history (one of the History constants) that are older than that, the oldest first, and returns how many.
	DeleteHistory(ctx context.Context, history string, older time.Duration, limit int) (int, error)
	// Tombstones lists tombstones, the last purged first.
	Tombstones(ctx context.Context, f TombstoneFilter) (stones []Tombstone, cursor string, err error)
	PurgeCounts(ctx context.Context) ([]PurgeCount, error)
	Artifacts(ctx context.Context, f ArtifactFilter) ([]Artifact, error)
}

func invalid(message string) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: message}
}
