package holdfast

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// An Enqueuer accepts jobs and groups.
type Enqueuer interface {
	// Enqueue makes the drafts durable, all or none, and returns one receipt for each, in order. A draft whose unique or
	// idempotency key belongs to an existing job returns that job. If one draft is invalid, or its idempotency key was used
	// for a different draft, none is stored.
	Enqueue(ctx context.Context, drafts []Draft) ([]Receipt, error)
	// CreateGroup creates a group and returns it, so that drafts can name it. It returns ErrConflict if the id exists or the
	// parent is sealed.
	CreateGroup(ctx context.Context, g Group) (Group, error)
	// SealGroup declares that a group has all its members. Sealing a sealed group is no error.
	SealGroup(ctx context.Context, group ID) error
}

// Enqueue stores one job. It returns after the job is durable. With store.In(tx) as the destination the job becomes part of
// the caller's transaction and exists if and when that commits:
// Enqueue(ctx, store.In(tx), args). Options change the draft before it is validated. Errors are those of Enqueuer.Enqueue.
func Enqueue(ctx context.Context, to Enqueuer, args Args, options ...func(*Draft)) (Receipt, error) {
	draft, err := NewDraft(args)
	if err != nil {
		return Receipt{}, err
	}
	for _, option := range options {
		option(&draft)
	}
	receipts, err := to.Enqueue(ctx, []Draft{draft})
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// EnqueueAll stores one job for each of the arguments, all or none, and returns their receipts in order. Options change every draft. Otherwise it is like
// Enqueue. One call with a thousand jobs is many times faster than a thousand calls.
func EnqueueAll[A Args](ctx context.Context, to Enqueuer, all []A, options ...func(*Draft)) ([]Receipt, error) {
	drafts := make([]Draft, len(all))
	for i, args := range all {
		draft, err := NewDraft(args)
		if err != nil {
			return nil, err
		}
		for _, option := range options {
			option(&draft)
		}
		drafts[i] = draft
	}
	return to.Enqueue(ctx, drafts)
}

// UniqueArgs is an option of Enqueue: while a job with the same owner, kind and arguments is unfinished, enqueueing returns that job instead of a new one. The
// arguments are equal if their JSON is the same text. It sets UniqueKey, and so must come after options that change Args.
func UniqueArgs(d *Draft) { d.UniqueKey = argsKey(d) }

// UniquePeriod returns an option of Enqueue: in each period of that length, counted from 1970 in UTC, at most one job with the same owner, kind and arguments is
// enqueued. Within a period, enqueueing returns the job that exists, also if it is complete; if it failed for good or was cancelled, a new job is enqueued. The
// period follows the clock of the caller. It sets UniqueKey and UniqueDone.
func UniquePeriod(period time.Duration) func(*Draft) {
	return func(d *Draft) {
		slot := time.Now().UnixNano() / max(1, period.Nanoseconds())
		d.UniqueKey, d.UniqueDone = argsKey(d)+"/"+strconv.FormatInt(slot, 10), true
	}
}

// argsKey returns a key that is equal for equal arguments.
func argsKey(d *Draft) string {
	sum := sha256.Sum256(d.Args)
	return "args/" + hex.EncodeToString(sum[:16])
}
