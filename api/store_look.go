package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Job tells all about one job, to the letter.
func (s *Store) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return ask(ctx, s, StoreJob, Which{id}, again)
}

// Jobs lists what matches, newest first.
func (s *Store) Jobs(ctx context.Context, f holdfast.Filter) ([]holdfast.Job, string, error) {
	out, err := ask(ctx, s, StoreJobs, f, again)
	return out.Items, out.Cursor, err
}

// History is everything the store can prove about one job.
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

// Audit looks for broken promises.
func (s *Store) Audit(ctx context.Context) ([]holdfast.Finding, error) {
	return ask(ctx, s, StoreAudit, struct{}{}, again)
}

// ErrorGroups lists what matches, the last seen first.
func (s *Store) ErrorGroups(ctx context.Context, f holdfast.ErrorFilter) ([]holdfast.ErrorGroup, string, error) {
	out, err := ask(ctx, s, StoreErrors, ErrorsWanted(f), again)
	return out.Items, out.Cursor, err
}

// Events is the story of a subject that is no job.
func (s *Store) Events(ctx context.Context, subject string, limit int) ([]holdfast.Event, error) {
	return ask(ctx, s, StoreEvents, Stretch{Subject: subject, Limit: limit}, again)
}

// Experience sums up attempts.
func (s *Store) Experience(ctx context.Context, within time.Duration) ([]holdfast.Experience, error) {
	return ask(ctx, s, StoreExperience, Lately{within}, again)
}

// Behind counts the due jobs a hold stands before.
func (s *Store) Behind(ctx context.Context, h holdfast.Hold) (int, error) {
	out, err := ask(ctx, s, StoreBehind, PlacedOf(h), again)
	return out.Count, err
}

// Group answers with a group and how its members stand.
func (s *Store) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	return ask(ctx, s, StoreGroup, Which{id}, again)
}

// Groups lists what matches, newest first.
func (s *Store) Groups(ctx context.Context, f holdfast.GroupFilter) ([]holdfast.Group, string, error) {
	out, err := ask(ctx, s, StoreGroups, GroupsWanted(f), again)
	return out.Items, out.Cursor, err
}

// Feed tells events that come after a number.
func (s *Store) Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error) {
	return ask(ctx, s, StoreFeed, Stretch{After: after, Limit: limit}, again)
}

// Tombstones lists what remains of purged jobs.
func (s *Store) Tombstones(ctx context.Context, f holdfast.TombstoneFilter) ([]holdfast.Tombstone, string, error) {
	out, err := ask(ctx, s, StoreTombstones, StonesWanted(f), again)
	return out.Items, out.Cursor, err
}

// PurgeCounts counts what was purged.
func (s *Store) PurgeCounts(ctx context.Context) ([]holdfast.PurgeCount, error) {
	return ask(ctx, s, StorePurgeCounts, struct{}{}, again)
}

// Artifacts lists artifacts.
func (s *Store) Artifacts(ctx context.Context, f holdfast.ArtifactFilter) ([]holdfast.Artifact, error) {
	return ask(ctx, s, StoreArtifacts, ThingsWanted(f), again)
}
