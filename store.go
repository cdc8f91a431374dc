package holdfast

import (
	"context"
	"time"
)

// A Store remembers. Everything it acknowledges survives any crash of any process, and of the machine. It owns the clock:
// callers pass durations, the store turns them into instants, so machines need not agree on the time.
//
// It is written as roles, so that whoever needs one asks for one. Every verb is plural where work is plural.
type Store interface {
	Enqueuer
	Worker
	Keeper
	Operator
	Inspector
	Analyst
	Grouper
	Historian

	// In binds an enqueuer to the caller's own transaction: the jobs exist if and when that commits. A transaction of a
	// type the store does not know is refused by the first Enqueue.
	In(tx any) Enqueuer
	// Close waits for writes under way and lets go of the database.
	Close() error
}

// An Enqueuer accepts work.
type Enqueuer interface {
	// Enqueue makes the drafts durable, all or none, and answers each in order. A draft that meets a twin is answered with
	// the twin; a draft that is invalid or whose idempotency key was used for another draft refuses them all.
	Enqueue(ctx context.Context, drafts []Draft) ([]Receipt, error)
	// Gather makes a group durable, so that drafts may name it, and answers with it. An id that exists is ErrConflict, and so is a parent
	// that is sealed.
	Gather(ctx context.Context, g Group) (Group, error)
	// Seal says that a group has all its members. Sealing it again is no error.
	Seal(ctx context.Context, group ID) error
}

// A Worker takes jobs on, and gives account of each.
type Worker interface {
	// Claim moves due jobs from queued to processing, skipping what is held. Owners share fairly, by their weights (records of
	// room "share"): no owner gets more than another while both have jobs that may run. The jobs of one owner are taken
	// lowest priority number first and oldest first within it; but one claim in sixteen shares evenly between priorities,
	// so that none starves. Where they wait in more than sixteen lanes, age counts within a lane, and between lanes in runs: a job may be
	// overtaken by up to sixteen younger ones of each other lane. Each claimed job's token grows by one. Nobody else can claim them until they are settled or the
	// batch expires and is reclaimed.
	Claim(ctx context.Context, c Claim) ([]Lease, error)
	// Renew extends batches, all in one go. A batch that has expired but was not reclaimed yet is revived.
	Renew(ctx context.Context, renewals []Renewal, lease time.Duration) (Renewed, error)
	// Settle ends leases. The answers are in order: nil where it was applied, now or by an earlier call that said the same
	// (so that a call whose answer was lost can be repeated); ErrLeaseLost where the lease is no longer held, and then the
	// settlement is kept as evidence and changes nothing; ErrInvalid where it makes no sense, and then the lease is still
	// held. One bad settlement does not touch the others. A job with a pending request to cancel becomes cancelled whatever
	// the settlement says, and the settlement is kept as its last attempt.
	Settle(ctx context.Context, settlements []Settlement) ([]error, error)
	// Note keeps progress and checkpoints, answered like settlements.
	Note(ctx context.Context, notes []Note) ([]error, error)
	// Present says that a worker process is alive, what it works on, and for how long to believe it.
	Present(ctx context.Context, p Presence) error
	// Await returns when there may be new work in the queues (in any, if none is named) or a job to cancel, or when patience runs out. It is a hint:
	// losing every wake-up costs at most one poll.
	Await(ctx context.Context, queues []string, patience time.Duration) (Wake, error)
}

// A Keeper moves what time moves. Each verb is an idempotent batch that any process may run at any time.
type Keeper interface {
	// Promote makes up to limit queued jobs claimable whose time has come, and reports how many.
	Promote(ctx context.Context, limit int) (int, error)
	// Reclaim takes over batches that have expired. Jobs their worker never started go back to their queue for free
	// (one interrupt). The others are handed to the caller in a batch of its own, under a new token, with Lost naming the
	// old worker: the caller decides and settles them like any attempt. If the caller dies too, they are reclaimed again,
	// and counted once.
	Reclaim(ctx context.Context, c Claim) ([]Lease, error)
	// Expire hands the caller queued jobs whose expiry has passed, in a batch of its own, to be settled.
	Expire(ctx context.Context, c Claim) ([]Lease, error)
	// Breach finds jobs whose next attempt did not start within the time their last settlement promised, says so in the story
	// of each, once, and answers with up to limit of them.
	Breach(ctx context.Context, limit int) ([]ID, error)

	// Records reads a room, by name.
	Records(ctx context.Context, room string) ([]Record, error)
	// Keep makes a change durable, all or none.
	Keep(ctx context.Context, c Change) error
	// Redrive takes dead letters on their way. The answers are in order: nil where it was done, now or by an earlier step of the
	// same redrive; ErrConflict where the job is no dead letter; ErrNotFound.
	Redrive(ctx context.Context, r Redrive) ([]error, error)
	// Redriven counts what has become of the jobs a redrive took.
	Redriven(ctx context.Context, redrive ID) (Tally, error)
}

// An Operator intervenes for a person. What a person does is appended to the job's story with actor and reason.
type Operator interface {
	// Retry sends a job round again at once, as a new generation with fresh counts. It applies to a failed job, to one that
	// waits for an automatic retry (which it replaces: there is never a second copy), and to one that is stuck: processing
	// for longer than StuckAfter, or past its lease. Anything else is ErrConflict, and so is a job whose expiry has passed. It answers how many jobs of the same
	// queue are claimed before it.
	Retry(ctx context.Context, i Intervention) (ahead int, err error)
	// Cancel ends a queued job at once and answers Cancelled. A processing job is asked to stop, and the answer is
	// Processing: it will end cancelled, whatever its handler returns. An ended job is ErrConflict.
	Cancel(ctx context.Context, i Intervention) (State, error)
	// Discard takes a failed job off the dead letters, for good unless it is retried. A reason is required.
	Discard(ctx context.Context, i Intervention) error
	// Edit changes a queued job and answers with it as it is then. A job that is processing or has ended, or that is not as the editor saw
	// it, is ErrConflict.
	Edit(ctx context.Context, e Edit) (Job, error)
	// Pause places a hold: what it holds stays queued and spends nothing. It replaces the hold of the same source.
	Pause(ctx context.Context, h Hold) error
	// Resume lifts a hold. Lifting one that is not there is no error.
	Resume(ctx context.Context, h Hold) error
	// Triage keeps a person's word on an error group.
	Triage(ctx context.Context, t Triage) error
}

// An Inspector answers questions. It changes nothing.
type Inspector interface {
	Job(ctx context.Context, id ID) (Job, error)
	// Jobs lists what matches, newest first. The cursor leads to the next page and is empty on the last.
	Jobs(ctx context.Context, f Filter) (jobs []Job, cursor string, err error)
	// History is everything the store can prove about one job.
	History(ctx context.Context, id ID) (History, error)
	// Ahead counts the claimable jobs of the same queue that are claimed before this one, up to a thousand.
	Ahead(ctx context.Context, id ID) (int, error)
	Holds(ctx context.Context) ([]Hold, error)
	Workers(ctx context.Context) ([]Presence, error)
	// Counts reads every row, for the integrity check and for tests. Nothing periodic may ask it: ask Depths.
	Counts(ctx context.Context) ([]Count, error)
	// Audit looks for broken promises and names the rows. A healthy store answers with none.
	Audit(ctx context.Context) ([]Finding, error)
}

// An Analyst answers questions about many jobs at once. It changes nothing.
type Analyst interface {
	// ErrorGroups lists what matches, the last seen first. The cursor leads to the next page and is empty on the last.
	ErrorGroups(ctx context.Context, f ErrorFilter) (groups []ErrorGroup, cursor string, err error)
	// Events is the story of a subject that is no job, the newest first, at most limit.
	Events(ctx context.Context, subject string, limit int) ([]Event, error)
	// Experience sums up the attempts of jobs that were created within that time.
	Experience(ctx context.Context, within time.Duration) ([]Experience, error)
	// Behind counts the due jobs a hold stands before, up to ten thousand.
	Behind(ctx context.Context, h Hold) (int, error)
	// Count counts what matches a filter, up to most: there are that many, or more. It looks at no more than a list would.
	Count(ctx context.Context, f Filter, most int) (int, error)
	// Depths tells what stands in each queue, by name, without reading all of it.
	Depths(ctx context.Context) ([]Depth, error)
	// Trends tells what became of attempts within that time, the oldest step first and by queue within it. The step is rounded up to
	// whole minutes; a step in which nothing ended is left out.
	Trends(ctx context.Context, within, step time.Duration) ([]Trend, error)
	// ErrorTrends tells how error groups come and go within that time, in the order in which they were named, at most 200. Steps are at least
	// five minutes; unknown groups have none.
	ErrorTrends(ctx context.Context, fingerprints []string, within, step time.Duration) ([]ErrorTrend, error)
}

// A Grouper looks after groups.
type Grouper interface {
	// Group answers with a group and how its members stand.
	Group(ctx context.Context, id ID) (Group, error)
	// Groups lists what matches, newest first, without counting members. The cursor leads to the next page and is empty on the last.
	Groups(ctx context.Context, f GroupFilter) (groups []Group, cursor string, err error)
	// RetryGroup sends round the members that failed, and those that were cancelled because of them, also in groups inside it, and
	// answers how many. The group is processing again. One without such members is ErrConflict.
	RetryGroup(ctx context.Context, i Intervention) (int, error)
	// CancelGroup seals the group and has its members cancelled, also in groups inside it; Conclude does so. A settled one is ErrConflict.
	CancelGroup(ctx context.Context, i Intervention) error
	// Conclude does what the end of members brings with it, in steps any process may take at any time: it lets those start that waited for
	// them, or cancels them; settles groups of which no member is live; and cancels what is left of a group that was cancelled or
	// has expired. It reports how much it did: when that was something, there may be more.
	Conclude(ctx context.Context, limit int) (int, error)
}

// A Historian keeps what happened, and for how long.
type Historian interface {
	// Sequence numbers what happened since it was last asked, so that the feed tells it, and seals the lines of stories into a chain
	// of hashes. It reports how many pages it took: when that is limit, there may be more.
	Sequence(ctx context.Context, limit int) (int, error)
	// Feed tells up to limit events that come after a number, in order. Nothing is left out without being said.
	Feed(ctx context.Context, after int64, limit int) (Feed, error)
	// Purge deletes ended jobs whose time is up. Each leaves a tombstone, and is counted.
	Purge(ctx context.Context, p Purge) (Purged, error)
	// Forget deletes up to limit things of a shelf that are older than that, the oldest first, and reports how many.
	Forget(ctx context.Context, shelf string, older time.Duration, limit int) (int, error)
	// Tombstones lists what remains of purged jobs, the last purged first.
	Tombstones(ctx context.Context, f TombstoneFilter) (stones []Tombstone, cursor string, err error)
	PurgeCounts(ctx context.Context) ([]PurgeCount, error)
	Artifacts(ctx context.Context, f ArtifactFilter) ([]Artifact, error)
}
