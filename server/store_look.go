package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// page is a list as it travels.
func page[T any](items []T, cursor string, err error) (api.Page[T], error) {
	return api.Page[T]{Items: items, Paged: api.Paged{Cursor: cursor}}, err
}

// listed is a verb that asks for nothing in particular.
func listed[T any](do func(ctx context.Context) ([]T, error)) func(context.Context, Caller, struct{}) ([]T, error) {
	return func(ctx context.Context, _ Caller, _ struct{}) ([]T, error) { return do(ctx) }
}

// which is a verb that asks about one thing.
func which[T any](do func(ctx context.Context, id holdfast.ID) (T, error)) func(context.Context, Caller, api.Which) (T, error) {
	return func(ctx context.Context, _ Caller, in api.Which) (T, error) { return do(ctx, in.ID) }
}

// mountInspector mounts questions about jobs, to the letter.
func (s *Server) mountInspector() {
	store := s.cfg.Store
	verb(s, api.StoreJob, which(store.Job))
	verb(s, api.StoreJobs, func(ctx context.Context, _ Caller, in holdfast.Filter) (api.Page[holdfast.Job], error) {
		return page(store.Jobs(ctx, in))
	})
	verb(s, api.StoreHistory, which(store.History))
	verb(s, api.StoreAhead, func(ctx context.Context, _ Caller, in api.Which) (out api.Counted, err error) {
		out.Count, err = store.Ahead(ctx, in.ID)
		return out, err
	})
	verb(s, api.StoreHolds, listed(store.Holds))
	verb(s, api.StoreWorkers, listed(store.Workers))
	verb(s, api.StoreCounts, listed(store.Counts))
	verb(s, api.StoreAudit, listed(store.Audit))
	verb(s, api.StoreGroup, which(store.Group))
	verb(s, api.StoreGroups, func(ctx context.Context, _ Caller, in api.GroupsWanted) (api.Page[holdfast.Group], error) {
		return page(store.Groups(ctx, holdfast.GroupFilter(in)))
	})
}

// mountAnalyst mounts questions about many jobs, and about what happened.
func (s *Server) mountAnalyst() {
	store := s.cfg.Store
	verb(s, api.StoreErrors, func(ctx context.Context, _ Caller, in api.ErrorsWanted) (api.Page[holdfast.ErrorGroup], error) {
		return page(store.ErrorGroups(ctx, holdfast.ErrorFilter(in)))
	})
	verb(s, api.StoreEvents, func(ctx context.Context, _ Caller, in api.Stretch) ([]holdfast.Event, error) {
		return store.Events(ctx, in.Subject, in.Limit)
	})
	verb(s, api.StoreExperience, func(ctx context.Context, _ Caller, in api.Lately) ([]holdfast.Experience, error) {
		return store.Experience(ctx, in.Within)
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
	verb(s, api.StoreArtifacts, func(ctx context.Context, _ Caller, in api.ThingsWanted) ([]holdfast.Artifact, error) {
		return store.Artifacts(ctx, holdfast.ArtifactFilter(in))
	})
}
