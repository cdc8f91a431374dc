package server

import (
	"context"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// page is one page of a list.
func page[T any](items []T, cursor string, err error) (api.Page[T], error) {
	return api.Page[T]{Items: items, Paged: api.Paged{Cursor: cursor}}, err
}

// listing adapts a store method without parameters.
func listing[T any](do func(ctx context.Context) ([]T, error)) func(context.Context, Caller, struct{}) ([]T, error) {
	return func(ctx context.Context, _ Caller, _ struct{}) ([]T, error) { return do(ctx) }
}

// mountInspector mounts the store routes that read jobs and groups.
func (s *Server) mountInspector() {
	store := s.cfg.Store
	mountVerb(s, api.StoreJob, func(ctx context.Context, c Caller, in api.Which) (holdfast.Job, error) {
		if err := s.mayTouch(ctx, c, in.ID, 0); err != nil {
			return holdfast.Job{}, err
		}
		return store.Job(ctx, in.ID)
	})
	mountVerb(s, api.StoreJobs, func(ctx context.Context, c Caller, in holdfast.Filter) (api.Page[holdfast.Job], error) {
		if c.isWorker() && !in.DeadLetters {
			return api.Page[holdfast.Job]{}, forbidden("a worker's key can only list dead letters, for redrives: use a key of scope viewer to list other jobs")
		}
		jobs, cursor, err := store.Jobs(ctx, in)
		if c.isWorker() {
			jobs = c.outlines(jobs)
		}
		return page(jobs, cursor, err)
	})
	mountVerb(s, api.StoreHistory, func(ctx context.Context, c Caller, in api.Which) (holdfast.History, error) {
		h, err := store.History(ctx, in.ID)
		return historyFor(c, h), err
	})
	mountVerb(s, api.StoreAhead, func(ctx context.Context, _ Caller, in api.Which) (out api.Counted, err error) {
		out.Count, err = store.Ahead(ctx, in.ID)
		return out, err
	})
	mountVerb(s, api.StoreHolds, func(ctx context.Context, c Caller, _ struct{}) ([]holdfast.Hold, error) {
		holds, err := store.Holds(ctx)
		return c.visibleHolds(holds), err
	})
	mountVerb(s, api.StoreWorkers, func(ctx context.Context, c Caller, _ struct{}) ([]holdfast.Presence, error) {
		all, err := store.Workers(ctx)
		return c.visibleWorkers(all), err
	})
	mountVerb(s, api.StoreCounts, listing(store.Counts))
	mountVerb(s, api.StoreAudit, listing(store.Audit))
	mountVerb(s, api.StoreGroup, func(ctx context.Context, c Caller, in api.Which) (holdfast.Group, error) {
		if c.bound() {
			return holdfast.Group{}, c.outsideBinding("it cannot read groups, which may have members in other queues")
		}
		return store.Group(ctx, in.ID)
	})
	mountVerb(s, api.StoreGroups, func(ctx context.Context, _ Caller, in api.GroupsWanted) (api.Page[holdfast.Group], error) {
		return page(store.Groups(ctx, holdfast.GroupFilter(in)))
	})
}

// mountAnalyst mounts the store routes of statistics, events and retention.
func (s *Server) mountAnalyst() {
	store := s.cfg.Store
	mountVerb(s, api.StoreErrors, func(ctx context.Context, _ Caller, in api.ErrorsWanted) (api.Page[holdfast.ErrorGroup], error) {
		return page(store.ErrorGroups(ctx, holdfast.ErrorFilter(in)))
	})
	mountVerb(s, api.StoreEvents, func(ctx context.Context, _ Caller, in api.Stretch) ([]holdfast.Event, error) {
		return store.Events(ctx, in.Subject, in.Limit)
	})
	mountVerb(s, api.StoreExperience, func(ctx context.Context, c Caller, in api.Lately) ([]holdfast.Experience, error) {
		all, err := store.Experience(ctx, in.Within)
		if c.bound() { // it is summed by kind: a key that is bound only to queues gets none
			all = slices.DeleteFunc(all, func(e holdfast.Experience) bool { return !slices.Contains(c.Kinds, e.Kind) })
		}
		return all, err
	})
	mountVerb(s, api.StoreBehind, func(ctx context.Context, _ Caller, in api.Placed) (out api.Counted, err error) {
		out.Count, err = store.Behind(ctx, in.Placement())
		return out, err
	})
	mountVerb(s, api.StoreCount, func(ctx context.Context, _ Caller, in api.CountWanted) (out api.Counted, err error) {
		out.Count, err = store.Count(ctx, in.Filter, in.Most)
		return out, err
	})
	mountVerb(s, api.StoreDepths, listing(store.Depths))
	mountVerb(s, api.StoreTrends, func(ctx context.Context, _ Caller, in api.TrendsWanted) ([]holdfast.Trend, error) {
		return store.Trends(ctx, in.Within, in.Step)
	})
	mountVerb(s, api.StoreErrorTrends, func(ctx context.Context, _ Caller, in api.ErrorTrendsWanted) ([]holdfast.ErrorTrend, error) {
		return store.ErrorTrends(ctx, in.Fingerprints, in.Within, in.Step)
	})
	mountVerb(s, api.StoreFeed, func(ctx context.Context, _ Caller, in api.Stretch) (holdfast.Feed, error) {
		return store.Feed(ctx, in.After, in.Limit)
	})
	mountVerb(s, api.StoreTombstones, func(ctx context.Context, _ Caller, in api.StonesWanted) (api.Page[holdfast.Tombstone], error) {
		return page(store.Tombstones(ctx, holdfast.TombstoneFilter(in)))
	})
	mountVerb(s, api.StorePurgeCounts, listing(store.PurgeCounts))
	mountVerb(s, api.StoreArtifacts, func(ctx context.Context, c Caller, in api.ThingsWanted) ([]holdfast.Artifact, error) {
		if c.bound() && in.Due {
			return nil, nil // these are of jobs of every queue: engines with unbound keys delete them
		}
		if err := s.mayTouch(ctx, c, in.Job, 0); err != nil {
			return nil, err
		}
		return store.Artifacts(ctx, holdfast.ArtifactFilter(in))
	})
}
