package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Job returns one job, with its JSON byte for byte.
func (s *Store) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return callVerb(ctx, s, StoreJob, Which{id}, mayRepeat)
}

// Jobs lists jobs that match the filter, newest first.
func (s *Store) Jobs(ctx context.Context, f holdfast.Filter) ([]holdfast.Job, string, error) {
	out, err := callVerb(ctx, s, StoreJobs, f, mayRepeat)
	return out.Items, out.Cursor, err
}

// History returns everything that is stored about one job.
func (s *Store) History(ctx context.Context, id holdfast.ID) (holdfast.History, error) {
	return callVerb(ctx, s, StoreHistory, Which{id}, mayRepeat)
}

// Ahead counts the jobs that are claimed before this one.
func (s *Store) Ahead(ctx context.Context, id holdfast.ID) (int, error) {
	out, err := callVerb(ctx, s, StoreAhead, Which{id}, mayRepeat)
	return out.Count, err
}

// Holds lists the holds.
func (s *Store) Holds(ctx context.Context) ([]holdfast.Hold, error) {
	return callVerb(ctx, s, StoreHolds, struct{}{}, mayRepeat)
}

// Workers lists the workers.
func (s *Store) Workers(ctx context.Context) ([]holdfast.Presence, error) {
	return callVerb(ctx, s, StoreWorkers, struct{}{}, mayRepeat)
}

// Counts counts the jobs.
func (s *Store) Counts(ctx context.Context) ([]holdfast.Count, error) {
	return callVerb(ctx, s, StoreCounts, struct{}{}, mayRepeat)
}

// Audit runs the integrity check.
func (s *Store) Audit(ctx context.Context) ([]holdfast.Finding, error) {
	return callVerb(ctx, s, StoreAudit, struct{}{}, mayRepeat)
}

// ErrorGroups lists error groups that match the filter, last seen first.
func (s *Store) ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) ([]holdfast.ErrorGroup, string, error) {
	out, err := callVerb(ctx, s, StoreErrors, ErrorsWanted(f), mayRepeat)
	return out.Items, out.Cursor, err
}

// Events returns the events of a subject that is not a job.
func (s *Store) Events(ctx context.Context, subject string, limit int) ([]holdfast.Event, error) {
	return callVerb(ctx, s, StoreEvents, Stretch{Subject: subject, Limit: limit}, mayRepeat)
}

// Experience summarises attempts.
func (s *Store) Experience(ctx context.Context, within time.Duration) ([]holdfast.Experience, error) {
	return callVerb(ctx, s, StoreExperience, Lately{within}, mayRepeat)
}

// Behind counts the due jobs that a hold keeps back.
func (s *Store) Behind(ctx context.Context, h holdfast.Hold) (int, error) {
	out, err := callVerb(ctx, s, StoreBehind, PlacedOf(h), mayRepeat)
	return out.Count, err
}

// Group returns a group with the counts of its members.
func (s *Store) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	return callVerb(ctx, s, StoreGroup, Which{id}, mayRepeat)
}

// Groups lists groups that match the filter, newest first.
func (s *Store) Groups(ctx context.Context, f holdfast.GroupFilter) ([]holdfast.Group, string, error) {
	out, err := callVerb(ctx, s, StoreGroups, GroupsWanted(f), mayRepeat)
	return out.Items, out.Cursor, err
}

// Feed returns events after a number.
func (s *Store) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	return callVerb(ctx, s, StoreFeed, Stretch{After: after, Limit: limit}, mayRepeat)
}

// Tombstones lists tombstones of purged jobs.
func (s *Store) Tombstones(ctx context.Context, f holdfast.TombstoneFilter) ([]holdfast.Tombstone, string, error) {
	out, err := callVerb(ctx, s, StoreTombstones, StonesWanted(f), mayRepeat)
	return out.Items, out.Cursor, err
}

// PurgeCounts counts purged jobs.
func (s *Store) PurgeCounts(ctx context.Context) ([]holdfast.PurgeCount, error) {
	return callVerb(ctx, s, StorePurgeCounts, struct{}{}, mayRepeat)
}

// Artifacts lists artifacts.
func (s *Store) Artifacts(ctx context.Context, f holdfast.ArtifactFilter) ([]holdfast.Artifact, error) {
	return callVerb(ctx, s, StoreArtifacts, ThingsWanted(f), mayRepeat)
}
