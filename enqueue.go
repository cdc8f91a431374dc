package holdfast

import "context"

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
