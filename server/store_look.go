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

// listed adapts a store method without parameters.
func listed[T any](do func(ctx context.Context) ([]T, error)) func(context.Context, Caller, struct{}) ([]T, error) {
	return func(ctx context.Context, _ Caller, _ struct{}) ([]T, error) { return do(ctx) }
}

// mountInspector mounts the store routes that read jobs and groups.
func (s *Server) mountInspector() {
	store := s.cfg.Store
	verb(s, api.StoreJob, func(ctx context.Context, c Caller, in api.Which) (holdfast.Job, error) {
		if err := s.mayTouch(ctx, c, in.ID, 0); err != nil {
			return holdfast.Job{}, err
		}
		return store.Job(ctx, in.ID)
	})
	verb(s, api.StoreJobs, func(ctx context.Context, c Caller, in holdfast.Filter) (api.Page[holdfast.Job], error) {
		if c.confined() && !in.DeadLetters {
			return api.Page[holdfast.Job]{}, forbidden("a worker's key can only list dead letters, for redrives: use a key of scope viewer to list other jobs")
		}
		jobs, cursor, err := store.Jobs(ctx, in)
		if c.confined() {
			jobs = c.outlines(jobs)
		}
		return page(jobs, cursor, err)
	})
	verb(s, api.StoreHistory, func(ctx context.Context, c Caller, in api.Which) (holdfast.History, error) {
		h, err := store.History(ctx, in.ID)
		return forCaller(c, h), err
	})
	verb(s, api.StoreAhead, func(ctx context.Context, _ Caller, in api.Which) (out api.Counted, err error) {
		out.Count, err = store.Ahead(ctx, in.ID)
		return out, err
	})
	verb(s, api.StoreHolds, func(ctx context.Context, c Caller, _ struct{}) ([]holdfast.Hold, error) {
		holds, err := store.Holds(ctx)
		return c.heldFrom(holds), err
	})
	verb(s, api.StoreWorkers, func(ctx context.Context, c Caller, _ struct{}) ([]holdfast.Presence, error) {
		all, err := store.Workers(ctx)
		return c.presentFrom(all), err
	})
	verb(s, api.StoreCounts, listed(store.Counts))
	verb(s, api.StoreAudit, listed(store.Audit))
	verb(s, api.StoreGroup, func(ctx context.Context, c Caller, in api.Which) (holdfast.Group, error) {
		if c.narrow() {
			return holdfast.Group{}, c.beyond("it cannot read groups, which may have members in other queues")
		}
		return store.Group(ctx, in.ID)
	})
	verb(s, api.StoreGroups, func(ctx context.Context, _ Caller, in api.GroupsWanted) (api.Page[holdfast.Group], error) {
		return page(store.Groups(ctx, holdfast.GroupFilter(in)))
	})
}

// mountAnalyst mounts the store routes of statistics, events and retention.
func (s *Server) mountAnalyst() {
	store := s.cfg.Store
	verb(s, api.StoreErrors, func(ctx context.Context, _ Caller, in api.ErrorsWanted) (api.Page[holdfast.ErrorGroup], error) {
		return page(store.ErrorGroups(ctx, holdfast.ErrorFilter(in)))
	})
	verb(s, api.StoreEvents, func(ctx context.Context, _ Caller, in api.Stretch) ([]holdfast.Event, error) {
		return store.Events(ctx, in.Subject, in.Limit)
	})
	verb(s, api.StoreExperience, func(ctx context.Context, c Caller, in api.Lately) ([]holdfast.Experience, error) {
		all, err := store.Experience(ctx, in.Within)
		if c.narrow() { // it is summed by kind: a key that is bound only to queues gets none
			all = slices.DeleteFunc(all, func(e holdfast.Experience) bool { return !slices.Contains(c.Kinds, e.Kind) })
		}
		return all, err
	})
	verb(s, api.StoreBehind, func(ctx context.Context, _ Caller, in api.Placed) (out api.Counted, err error) {
		out.Count, err = store.Behind(ctx, in.Placement())
		return out, err
	})
	verb(s, api.StoreCount, func(ctx context.Context, _ Caller, in api.CountWanted) (out api.Counted, err error) {
		out.Count, err = store.Count(ctx, in.Filter, in.Most)
		return out, err
	})
	verb(s, api.StoreDepths, listed(store.Depths))
	verb(s, api.StoreTrends, func(ctx context.Context, _ Caller, in api.TrendsWanted) ([]holdfast.Trend, error) {
		return store.Trends(ctx, in.Within, in.Step)
	})
	verb(s, api.StoreErrorTrends, func(ctx context.Context, _ Caller, in api.ErrorTrendsWanted) ([]holdfast.ErrorTrend, error) {
		return store.ErrorTrends(ctx, in.Fingerprints, in.Within, in.Step)
	})
	verb(s, api.StoreFeed, func(ctx context.Context, _ Caller, in api.Stretch) (holdfast.Feed, error) {
		return store.Feed(ctx, in.After, in.Limit)
	})
	verb(s, api.StoreTombstones, func(ctx context.Context, _ Caller, in api.StonesWanted) (api.Page[holdfast.Tombstone], error) {
		return page(store.Tombstones(ctx, holdfast.TombstoneFilter(in)))
	})
	verb(s, api.StorePurgeCounts, listed(store.PurgeCounts))
	verb(s, api.StoreArtifacts, func(ctx context.Context, c Caller, in api.ThingsWanted) ([]holdfast.Artifact, error) {
		if c.narrow() && in.Due {
			return nil, nil // these are of jobs of every queue: engines with unbound keys delete them
		}
		if err := s.mayTouch(ctx, c, in.Job, 0); err != nil {
			return nil, err
		}
		return store.Artifacts(ctx, holdfast.ArtifactFilter(in))
	})
}
