// Package ops is what operators and their tools use: it explains why a job does not run, tells what happened to it, and
// carries out what a person decides. The command, the HTTP API and the console are built on it.
//
// [Service] works on any store. [Operator] is the same set of operations as an interface; package client has a client of a server
// that implements it too, so a program works the same directly on a store and through a server.
//
//	operator := ops.New(jobs, ops.Config{}) // jobs is a store.Store
//	explanation, err := operator.Explain(ctx, id)
//	for _, reason := range explanation.Reasons {
//		fmt.Println(reason.Text, "-", reason.Remedy)
//	}
//	ahead, err := operator.Retry(ctx, store.Intervention{Job: id, Actor: "ann", Reason: "gateway repaired"})
//
// Every change needs an actor. It is recorded with actor and reason in the audit log and in the story of the job. Errors
// wrap the Err variables of package holdfast.
package ops

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// A Store is the part of store.Store that this package needs.
type Store interface {
	store.Operator
	store.Inspector
	store.Analyst
	store.Grouper
	Chronicle
	SealGroup(ctx context.Context, group holdfast.ID) error
	Records(ctx context.Context, namespace string) ([]store.Record, error)
	Apply(ctx context.Context, c store.Change) error
	Redriven(ctx context.Context, redrive holdfast.ID) (store.RedriveCounts, error)
}

// A Chronicle reads events and what retention left. It is a part of store.Archiver.
type Chronicle interface {
	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
	Tombstones(ctx context.Context, f store.TombstoneFilter) (stones []store.Tombstone, cursor string, err error)
	PurgeCounts(ctx context.Context) ([]store.PurgeCount, error)
	Artifacts(ctx context.Context, f store.ArtifactFilter) ([]store.Artifact, error)
}

// Config adapts the service to an application. The zero value works.
type Config struct {
	// Taxonomy holds failure codes that no worker has published to the store yet. Published codes are known without it; see
	// package catalog.
	Taxonomy *failure.Taxonomy
	// Sources check, by kind, whether the source of a job still exists, such as the file that it converts. A manual retry
	// of a job whose check returns an error is refused, because it would fail again.
	Sources map[string]func(ctx context.Context, job holdfast.Job) error
	// StuckAfter is how long a worker may run a job before a manual retry may take the job away, unless the request gives a
	// time of its own. 0: only after its lease has expired.
	StuckAfter time.Duration
	// Policies are the workers' own. A policy that is applied to the store takes precedence.
	Policies *policy.Set
	// Breakers are the breaker settings of the workers in Go, by dependency. A policy takes precedence. Without an entry
	// the defaults apply.
	Breakers map[string]breaker.Config
	// Retention holds the workers' rules in Go. Rules that are applied to the store take precedence.
	Retention []store.RetentionRule
	// Prepare checks and completes a draft before it is saved in a schedule. Nil: drafts are saved as they are.
	Prepare func(*holdfast.Draft) error
	// CheckSubscription refuses a subscription that could not work, before it is saved. Nil: a problem shows at the first
	// delivery.
	CheckSubscription func(subscription.Subscription) error
}

// A Service implements Operator on a store. It is safe for concurrent use.
type Service struct {
	store Store
	cfg   Config
}

// New returns a service for a store.
func New(db Store, cfg Config) *Service { return &Service{store: db, cfg: cfg} }

var _ Operator = (*Service)(nil)
