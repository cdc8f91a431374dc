package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Job returns one job, with its JSON byte for byte.
func (s *Store) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return ask(ctx, s, StoreJob, Which{id}, again)
}

// Jobs lists jobs that match the filter, newest first.
func (s *Store) Jobs(ctx context.Context, f holdfast.Filter) ([]holdfast.Job, string, error) {
	out, err := ask(ctx, s, StoreJobs, f, again)
	return out.Items, out.Cursor, err
}

// History returns everything that is stored about one job.
func (s *Store) History(ctx context.Context, id holdfast.ID) (holdfast.History, error) {
	return ask(ctx, s, StoreHistory, Which{id}, again)
}

// Ahead counts the jobs that are claimed before this one.
func (s *Store) Ahead(ctx context.Context, id holdfast.ID) (int, error) {
	out, err := ask(ctx, s, StoreAhead, Which{id}, again)
	return out.Count, err
}

// Holds lists the holds.
func (s *Store) Holds(ctx context.Context) ([]holdfast.Hold, error) {
	return ask(ctx, s, StoreHolds, struct{}{}, again)
}

// Workers lists the workers.
func (s *Store) Workers(ctx context.Context) ([]holdfast.Presence, error) {
	return ask(ctx, s, StoreWorkers, struct{}{}, again)
}

// Counts counts the jobs.
func (s *Store) Counts(ctx context.Context) ([]holdfast.Count, error) {
	return ask(ctx, s, StoreCounts, struct{}{}, again)
}

// Audit runs the integrity check.
func (s *Store) Audit(ctx context.Context) ([]holdfast.Finding, error) {
	return ask(ctx, s, StoreAudit, struct{}{}, again)
}

// ErrorGroups lists error groups that match the filter, last seen first.
func (s *Store) ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) ([]holdfast.ErrorGroup, string, error) {
	out, err := ask(ctx, s, StoreErrors, ErrorsWanted(f), again)
	return out.Items, out.Cursor, err
}

// Events returns the events of a subject that is not a job.
func (s *Store) Events(ctx context.Context, subject string, limit int) ([]holdfast.Event, error) {
	return ask(ctx, s, StoreEvents, Stretch{Subject: subject, Limit: limit}, again)
}

// Experience summarises attempts.
func (s *Store) Experience(ctx context.Context, within time.Duration) ([]holdfast.Experience, error) {
	return ask(ctx, s, StoreExperience, Lately{within}, again)
}

// Behind counts the due jobs that a hold keeps back.
func (s *Store) Behind(ctx context.Context, h holdfast.Hold) (int, error) {
	out, err := ask(ctx, s, StoreBehind, PlacedOf(h), again)
	return out.Count, err
}

// Group returns a group with the counts of its members.
func (s *Store) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	return ask(ctx, s, StoreGroup, Which{id}, again)
}

// Groups lists groups that match the filter, newest first.
func (s *Store) Groups(ctx context.Context, f holdfast.GroupFilter) ([]holdfast.Group, string, error) {
	out, err := ask(ctx, s, StoreGroups, GroupsWanted(f), again)
	return out.Items, out.Cursor, err
}

// Feed returns events after a number.
func (s *Store) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	return ask(ctx, s, StoreFeed, Stretch{After: after, Limit: limit}, again)
}

// Tombstones lists tombstones of purged jobs.
func (s *Store) Tombstones(ctx context.Context, f holdfast.TombstoneFilter) ([]holdfast.Tombstone, string, error) {
	out, err := ask(ctx, s, StoreTombstones, StonesWanted(f), again)
	return out.Items, out.Cursor, err
}

// PurgeCounts counts purged jobs.
func (s *Store) PurgeCounts(ctx context.Context) ([]holdfast.PurgeCount, error) {
	return ask(ctx, s, StorePurgeCounts, struct{}{}, again)
}

// Artifacts lists artifacts.
func (s *Store) Artifacts(ctx context.Context, f holdfast.ArtifactFilter) ([]holdfast.Artifact, error) {
	return ask(ctx, s, StoreArtifacts, ThingsWanted(f), again)
}
