// Package view reads jobs, resources, dead letters and replays as clients see them. The API and the pages show the same, and each caller sees what its owner has: callers
// cannot distinguish the job of another owner from one that does not exist. An empty owner sees everything.
//
// Errors are refusals, or those of the store.
package view

import (
	"context"
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/store"
)

// MaxLimit is the largest page of a list.
const MaxLimit = 200

// A Store is the part of a store that views are read from.
type Store interface {
	Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error)
	Jobs(ctx context.Context, f store.Filter) (jobs []holdfast.Job, cursor string, err error)
	History(ctx context.Context, id holdfast.ID) (store.History, error)
	Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error)
	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
}

// A Reader reads views. It is safe for concurrent use.
type Reader struct {
	Store  Store
	Ledger *ledger.Ledger
	Stream *deadletter.Stream
	Runner *replay.Runner // of replays
}

// A Job is a job as clients see it: its snapshot of the ledger, and what the store has of its group.
type Job struct {
	ledger.JobSnapshot
	Name string `json:"name,omitempty"`
}

// Jobs returns a page of jobs and the cursor of the next one, which is nil on the last page. A job that was accepted before the call is among them, unless the ledger is
// more than a page of events behind.
func (r *Reader) Jobs(ctx context.Context, owner string, before holdfast.ID, limit int) (jobs []Job, next *holdfast.ID, err error) {
	_ = r.Ledger.CatchUp(ctx, r.Store) // otherwise the list is that of the duty's last step, which reports the error
	snapshots, err := r.Ledger.Jobs(owner, before, limit+1)
	if err != nil {
		return nil, nil, refusal.Ledger(err)
	}
	if len(snapshots) > limit {
		snapshots = snapshots[:limit]
		next = &snapshots[limit-1].ID
	}
	jobs = []Job{}
	for _, s := range snapshots {
		group, err := r.Store.Group(ctx, s.ID)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) && !errors.Is(err, holdfast.ErrPurged) {
			return nil, nil, err
		}
		jobs = append(jobs, Job{JobSnapshot: s, Name: group.Name})
	}
	return jobs, next, nil
}

// Group returns the group of a job, by its id as text.
func (r *Reader) Group(ctx context.Context, owner, text string) (holdfast.Group, error) {
	id, err := holdfast.ParseID(text)
	if err != nil {
		return holdfast.Group{}, refusal.NoSuchJob
	}
	group, err := r.Store.Group(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return group, refusal.NoSuchJob
	case err != nil:
		return group, err
	case owner != "" && group.Owner != owner, group.Members.Total == 0: // no manifest was stored for it
		return group, refusal.NoSuchJob
	}
	return group, nil
}

// Job returns the snapshot of a job. For the moment until the ledger has the job, it is that of a new one.
func (r *Reader) Job(group holdfast.Group) (Job, error) {
	s, found, err := r.Ledger.Job(group.ID)
	if err != nil {
		return Job{}, refusal.Ledger(err)
	}
	if !found {
		s = ledger.JobSnapshot{ID: group.ID, Owner: group.Owner, Status: ledger.Queued, Resources: group.Members.Total, ResourcesQueued: group.Members.Total, CreatedAt: group.CreatedAt.UTC(), UpdatedAt: group.CreatedAt.UTC()}
	}
	return Job{JobSnapshot: s, Name: group.Name}, nil
}

// Failures returns how many resources of an owner are failed with each code.
func (r *Reader) Failures(owner string) (map[string]int, error) {
	count, err := r.Ledger.Failures(owner)
	if err != nil {
		return nil, refusal.Ledger(err)
	}
	return count, nil
}
