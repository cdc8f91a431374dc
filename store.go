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
}

// A Worker takes jobs on, and gives account of each.
type Worker interface {
	// Claim moves due jobs from queued to processing, lowest priority number first and oldest first within it, skipping
	// what is held. Each claimed job's token grows by one. Nobody else can claim them until they are settled or the batch
	// expires and is reclaimed.
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
	// Await returns when there may be new work in the queues or a job to cancel, or when patience runs out. It is a hint:
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
	// Pause holds a queue or a kind: its jobs stay queued and spend nothing. Pausing again replaces the hold.
	Pause(ctx context.Context, h Hold) error
	// Resume lifts a hold. Lifting one that is not there is no error.
	Resume(ctx context.Context, h Hold) error
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
	Counts(ctx context.Context) ([]Count, error)
	// Audit looks for broken promises and names the rows. A healthy store answers with none.
	Audit(ctx context.Context) ([]Finding, error)
}
