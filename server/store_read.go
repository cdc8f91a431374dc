package server

import (
	"context"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
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
	db := s.cfg.Store
	mount(s, api.StoreJob, func(ctx context.Context, c Caller, in *api.AsksJob) (out api.Exact[holdfast.Job], err error) {
		id := in.Body.Value.ID
		if err := s.mayTouch(ctx, c, id, 0); err != nil {
			return out, err
		}
		out.Value, err = s.waitForJob(ctx, id, in.Wait, func(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
			job, err := db.Job(ctx, id)
			if err == nil && !c.worksOn(job.Queue, job.Kind) { // it was edited while the caller waited
				return holdfast.Job{}, noSuchJob(id)
			}
			return job, err
		})
		return out, err
	})
	mountVerb(s, api.StoreJobs, func(ctx context.Context, c Caller, in store.Filter) (api.Page[holdfast.Job], error) {
		if c.isWorker() && !in.DeadLetters {
			return api.Page[holdfast.Job]{}, forbidden("a worker's key can only list dead letters, for redrives: use a key of scope viewer to list other jobs")
		}
		jobs, cursor, err := db.Jobs(ctx, in)
		if c.isWorker() {
			jobs = c.outlines(jobs)
		}
		return page(jobs, cursor, err)
	})
	mountVerb(s, api.StoreHistory, func(ctx context.Context, c Caller, in api.Which) (store.History, error) {
		h, err := db.History(ctx, in.ID)
		return historyFor(c, h), err
	})
	mountVerb(s, api.StoreAhead, func(ctx context.Context, _ Caller, in api.Which) (out api.Counted, err error) {
		out.Count, err = db.Ahead(ctx, in.ID)
		return out, err
	})
	mountVerb(s, api.StoreHolds, func(ctx context.Context, c Caller, _ struct{}) ([]store.Hold, error) {
		holds, err := db.Holds(ctx)
		return c.visibleHolds(holds), err
	})
	mountVerb(s, api.StoreHeldLines, func(ctx context.Context, _ Caller, in api.Few) ([]store.HeldLine, error) {
		return db.HeldLines(ctx, in.Limit)
	})
	mountVerb(s, api.StoreWorkers, func(ctx context.Context, c Caller, _ struct{}) ([]store.WorkerInfo, error) {
		all, err := db.Workers(ctx)
		return c.visibleWorkers(all), err
	})
	mountVerb(s, api.StoreCounts, listing(db.Counts))
	mountVerb(s, api.StoreCheckIntegrity, listing(db.CheckIntegrity))
	mountVerb(s, api.StoreGroup, func(ctx context.Context, c Caller, in api.Which) (holdfast.Group, error) {
		if c.bound() {
			return holdfast.Group{}, c.outsideBinding("it cannot read groups, which may have members in other queues")
		}
		return db.Group(ctx, in.ID)
	})
	mountVerb(s, api.StoreGroupGraph, func(ctx context.Context, _ Caller, in api.Which) (store.GroupGraph, error) {
		return db.GroupGraph(ctx, in.ID)
	})
	mountVerb(s, api.StoreGroups, func(ctx context.Context, _ Caller, in api.GroupsWanted) (api.Page[holdfast.Group], error) {
		return page(db.Groups(ctx, store.GroupFilter(in)))
	})
}

// mountAnalyst mounts the store routes of statistics, events and retention.
func (s *Server) mountAnalyst() {
	db := s.cfg.Store
	mountVerb(s, api.StoreErrors, func(ctx context.Context, _ Caller, in api.ErrorsWanted) (api.Page[store.ErrorGroup], error) {
		return page(db.ErrorGroups(ctx, store.ErrorFilter(in)))
	})
	mountVerb(s, api.StoreEvents, func(ctx context.Context, _ Caller, in api.Stretch) ([]store.Event, error) {
		return db.Events(ctx, in.Subject, in.Limit)
	})
	mountVerb(s, api.StoreRetryStats, func(ctx context.Context, c Caller, in api.Lately) ([]store.RetryStats, error) {
		all, err := db.RetryStats(ctx, in.Within)
		if c.bound() { // it is summed by kind: a key that is bound only to queues gets none
			all = slices.DeleteFunc(all, func(e store.RetryStats) bool { return !slices.Contains(c.Kinds, e.Kind) })
		}
		return all, err
	})
	mountVerb(s, api.StoreCountHeld, func(ctx context.Context, _ Caller, in api.Placed) (out api.Counted, err error) {
		out.Count, err = db.CountHeld(ctx, in.Placement())
		return out, err
	})
	mountVerb(s, api.StoreCount, func(ctx context.Context, _ Caller, in api.CountWanted) (out api.Counted, err error) {
		out.Count, err = db.Count(ctx, in.Filter, in.Most)
		return out, err
	})
	mountVerb(s, api.StoreDepths, listing(db.Depths))
	mountVerb(s, api.StoreTrends, func(ctx context.Context, _ Caller, in api.TrendsWanted) ([]store.Trend, error) {
		return db.Trends(ctx, in.Within, in.Step)
	})
	mountVerb(s, api.StoreErrorTrends, func(ctx context.Context, _ Caller, in api.ErrorTrendsWanted) ([]store.ErrorTrend, error) {
		return db.ErrorTrends(ctx, in.Fingerprints, in.Within, in.Step)
	})
	mountVerb(s, api.StoreFeed, func(ctx context.Context, _ Caller, in api.Stretch) (store.Feed, error) {
		return db.Feed(ctx, in.After, in.Limit)
	})
	mountVerb(s, api.StoreTombstones, func(ctx context.Context, _ Caller, in api.StonesWanted) (api.Page[store.Tombstone], error) {
		return page(db.Tombstones(ctx, store.TombstoneFilter(in)))
	})
	mountVerb(s, api.StorePurgeCounts, listing(db.PurgeCounts))
	mountVerb(s, api.StoreArtifacts, func(ctx context.Context, c Caller, in api.ThingsWanted) ([]store.Artifact, error) {
		if c.bound() && in.Due {
			return nil, nil // these are of jobs of every queue: engines with unbound keys delete them
		}
		if err := s.mayTouch(ctx, c, in.Job, 0); err != nil {
			return nil, err
		}
		return db.Artifacts(ctx, store.ArtifactFilter(in))
	})
}
