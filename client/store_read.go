package client

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// Job returns one job, with its JSON byte for byte.
func (s *Store) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	out, err := callOpen(ctx, s, api.StoreJob, askJob(id, 0), mayRepeat)
	return out.Value, err
}

func askJob(id holdfast.ID, wait time.Duration) api.AsksJob {
	return api.AsksJob{Wait: wait, Body: api.Exact[api.Which]{Value: api.Which{ID: id}}}
}

// WaitJob waits until a job has ended and returns it; see holdfast.WaitJob. The server delays its answers, so the client sends two requests a minute.
func (s *Store) WaitJob(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return waitJob(ctx, s.c, func(wait time.Duration) (holdfast.Job, error) {
		out, err := callOpen(ctx, s, api.StoreJob, askJob(id, wait), sendOnce)
		return out.Value, err
	})
}

// Jobs lists jobs that match the filter, newest first.
func (s *Store) Jobs(ctx context.Context, f store.Filter) ([]holdfast.Job, string, error) {
	out, err := callVerb(ctx, s, api.StoreJobs, f, mayRepeat)
	return out.Items, out.Cursor, err
}

// History returns everything that is stored about one job.
func (s *Store) History(ctx context.Context, id holdfast.ID) (store.History, error) {
	return callVerb(ctx, s, api.StoreHistory, api.Which{ID: id}, mayRepeat)
}

// Ahead counts the jobs that are claimed before this one.
func (s *Store) Ahead(ctx context.Context, id holdfast.ID) (int, error) {
	out, err := callVerb(ctx, s, api.StoreAhead, api.Which{ID: id}, mayRepeat)
	return out.Count, err
}

// Holds lists the holds.
func (s *Store) Holds(ctx context.Context) ([]store.Hold, error) {
	return callVerb(ctx, s, api.StoreHolds, struct{}{}, mayRepeat)
}

// HeldLines lists lines of order keys that a dead letter holds.
func (s *Store) HeldLines(ctx context.Context, limit int) ([]store.HeldLine, error) {
	return callVerb(ctx, s, api.StoreHeldLines, api.Few{Limit: limit}, mayRepeat)
}

// Workers lists the workers.
func (s *Store) Workers(ctx context.Context) ([]store.WorkerInfo, error) {
	return callVerb(ctx, s, api.StoreWorkers, struct{}{}, mayRepeat)
}

// Counts counts the jobs.
func (s *Store) Counts(ctx context.Context) ([]store.Count, error) {
	return callVerb(ctx, s, api.StoreCounts, struct{}{}, mayRepeat)
}

// CheckIntegrity runs the integrity check.
func (s *Store) CheckIntegrity(ctx context.Context) ([]store.Finding, error) {
	return callVerb(ctx, s, api.StoreCheckIntegrity, struct{}{}, mayRepeat)
}

// ErrorGroups lists error groups that match the filter, last seen first.
func (s *Store) ErrorGroups(ctx context.Context, f store.ErrorFilter) ([]store.ErrorGroup, string, error) {
	out, err := callVerb(ctx, s, api.StoreErrors, api.ErrorsWanted(f), mayRepeat)
	return out.Items, out.Cursor, err
}

// Events returns the events of a subject that is not a job.
func (s *Store) Events(ctx context.Context, subject string, limit int) ([]store.Event, error) {
	return callVerb(ctx, s, api.StoreEvents, api.Stretch{Subject: subject, Limit: limit}, mayRepeat)
}

// RetryStats summarises attempts.
func (s *Store) RetryStats(ctx context.Context, within time.Duration) ([]store.RetryStats, error) {
	return callVerb(ctx, s, api.StoreRetryStats, api.Lately{Within: within}, mayRepeat)
}

// CountHeld counts the due jobs that a hold keeps back.
func (s *Store) CountHeld(ctx context.Context, h store.Hold) (int, error) {
	out, err := callVerb(ctx, s, api.StoreCountHeld, api.PlacedOf(h), mayRepeat)
	return out.Count, err
}

// Group returns a group with the counts of its members.
func (s *Store) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	return callVerb(ctx, s, api.StoreGroup, api.Which{ID: id}, mayRepeat)
}

// GroupGraph returns the first members of a group and what they wait for.
func (s *Store) GroupGraph(ctx context.Context, id holdfast.ID) (store.GroupGraph, error) {
	return callVerb(ctx, s, api.StoreGroupGraph, api.Which{ID: id}, mayRepeat)
}

// Groups lists groups that match the filter, newest first.
func (s *Store) Groups(ctx context.Context, f store.GroupFilter) ([]holdfast.Group, string, error) {
	out, err := callVerb(ctx, s, api.StoreGroups, api.GroupsWanted(f), mayRepeat)
	return out.Items, out.Cursor, err
}

// Feed returns events after a number.
func (s *Store) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	return callVerb(ctx, s, api.StoreFeed, api.Stretch{After: after, Limit: limit}, mayRepeat)
}

// Tombstones lists tombstones of purged jobs.
func (s *Store) Tombstones(ctx context.Context, f store.TombstoneFilter) ([]store.Tombstone, string, error) {
	out, err := callVerb(ctx, s, api.StoreTombstones, api.StonesWanted(f), mayRepeat)
	return out.Items, out.Cursor, err
}

// PurgeCounts counts purged jobs.
func (s *Store) PurgeCounts(ctx context.Context) ([]store.PurgeCount, error) {
	return callVerb(ctx, s, api.StorePurgeCounts, struct{}{}, mayRepeat)
}

// Artifacts lists artifacts.
func (s *Store) Artifacts(ctx context.Context, f store.ArtifactFilter) ([]store.Artifact, error) {
	return callVerb(ctx, s, api.StoreArtifacts, api.ThingsWanted(f), mayRepeat)
}
