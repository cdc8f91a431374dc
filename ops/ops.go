// Package ops intervenes: it answers what an operator asks about jobs, and does what an operator decides.
//
// It works through the roles a store plays, so it cannot tell a file from a server. Each verb has a file of its own.
package ops

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/notify/subscription"
)

// A Store is what interventions need: somebody who acts on a person's word, somebody who answers questions about one job or
// about many, and somebody who remembers what was decided. It is a part of holdfast.Store.
type Store interface {
	holdfast.Operator
	holdfast.Inspector
	holdfast.Analyst
	holdfast.Grouper
	Chronicle
	Seal(ctx context.Context, group holdfast.ID) error
	Records(ctx context.Context, room string) ([]holdfast.Record, error)
	Keep(ctx context.Context, c holdfast.Change) error
	Redriven(ctx context.Context, redrive holdfast.ID) (holdfast.Tally, error)
}

// A Chronicle tells what happened, and what is left of it. It is a part of holdfast.Historian.
type Chronicle interface {
	Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error)
	Tombstones(ctx context.Context, f holdfast.TombstoneFilter) (stones []holdfast.Tombstone, cursor string, err error)
	PurgeCounts(ctx context.Context) ([]holdfast.PurgeCount, error)
	Artifacts(ctx context.Context, f holdfast.ArtifactFilter) ([]holdfast.Artifact, error)
}

// Config adapts the service to an application. The zero value works.
type Config struct {
	// Taxonomy knows failure codes that no worker has published to the store yet. It is not needed for those that are published: see
	// package catalog.
	Taxonomy *failure.Taxonomy
	// Sources tell for a kind whether what a job works on still exists. A manual retry of a job whose source answers with an
	// error is refused: it could only fail again.
	Sources map[string]func(ctx context.Context, job holdfast.Job) error
	// StuckAfter is how long a worker may be at a job before a person may take it away by a manual retry that does not say
	// so itself. 0: only when its lease has run out.
	StuckAfter time.Duration
	// Policies are the workers' own. A policy that was applied to the store goes before them.
	Policies *policy.Set
	// Breakers are those that the workers have in code, by dependency. What a policy says wins. Without an entry: the defaults.
	Breakers map[string]breaker.Config
	// Retention is what the workers have in code. Rules that were applied to the store go before it.
	Retention []holdfast.Retain
	// Prepare looks at a draft that is kept for later, in a schedule: it refuses, or completes, what it knows. Nil: drafts are kept as they are.
	Prepare func(*holdfast.Draft) error
	// CheckSubscription refuses a subscription that could not work, before it is kept: the sinks know. Nil: what is wrong shows at the
	// first delivery.
	CheckSubscription func(subscription.Subscription) error
}

// Service is an operator's desk. It is safe for concurrent use.
type Service struct {
	store Store
	cfg   Config
}

// New opens the desk on a store.
func New(store Store, cfg Config) *Service { return &Service{store: store, cfg: cfg} }

var _ Desk = (*Service)(nil)
