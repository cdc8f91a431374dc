package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// An Inspector reads jobs, their history, error groups, groups, the feed and the integrity of a store. It implements
// store.Inspector, store.Analyst, and the reading half of store.Grouper and store.Archiver. It changes
// nothing, and is safe for concurrent use if its Querier is.
type Inspector struct {
	q          Querier
	dialect    string
	statements map[string]string
	hourCache  *hourCache // nil: nothing is remembered
}

var (
	_ store.Inspector = (*Inspector)(nil)
	_ store.Analyst   = (*Inspector)(nil)
)

// New returns the Inspector of a store that speaks the given dialect: SQLite or Postgres.
func New(q Querier, dialect string) *Inspector {
	return &Inspector{q: q, dialect: dialect, statements: sqltext.Load(dialect), hourCache: &hourCache{}}
}

// On returns the same Inspector with another Querier, for example inside a transaction that has changed something. It
// remembers nothing.
func (i *Inspector) On(q Querier) *Inspector {
	return &Inspector{q: q, dialect: i.dialect, statements: i.statements}
}

// Job returns one job. For a purged job the error says when it was purged, and by which rule.
func (i *Inspector) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	jobs, _, err := i.page(ctx, query{text: "SELECT id FROM holdfast_job WHERE id = $1", args: []any{id}}, i.leaseOfOne())
	if err != nil {
		return holdfast.Job{}, err
	}
	if len(jobs) == 0 {
		return holdfast.Job{}, i.notFoundOrPurged(ctx, id)
	}
	job := jobs[0]
	switch {
	case !job.Group.IsZero():
		all := true
		err = i.q.Query(ctx, i.statements["inspect_upstreams"], []any{id}, func(r Row) error {
			on := rule.OutcomeOf(r.Bool(1), r.Text(2))
			job.After, all = append(job.After, r.ID(0)), all && on == holdfast.OnComplete
			job.When = append(job.When, holdfast.Condition{Job: r.ID(0), On: on})
			return nil
		})
		if all {
			job.When = nil
		}
	case job.Order != "" && job.Waiting:
		err = i.q.Query(ctx, i.statements["inspect_line"], []any{id}, func(r Row) error {
			job.After = append(job.After, r.ID(0))
			return nil
		})
	}
	return job, err
}

// Ahead counts the ready jobs of the same queue that come before this one in the order of claims, up to a thousand. It
// returns 0 for a job that is not queued.
func (i *Inspector) Ahead(ctx context.Context, id holdfast.ID) (int, error) {
	job, err := i.Job(ctx, id)
	if err != nil || job.State != holdfast.Queued {
		return 0, err
	}
	ahead := 0
	err = i.q.Query(ctx, i.statements["inspect_ahead"], []any{id}, func(r Row) error {
		ahead = r.Int(0)
		return nil
	})
	return ahead, err
}

// Workers lists the worker processes that count as alive. The dependency that was last declared for a kind is shown for
// all workers of that kind.
func (i *Inspector) Workers(ctx context.Context) ([]store.WorkerInfo, error) {
	depends := map[string]string{}
	err := i.q.Query(ctx, i.statements["inspect_kinds"], nil, func(r Row) error {
		depends[r.Text(0)] = r.Text(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var workers []store.WorkerInfo
	err = i.current(ctx, "inspect_workers", func(r Row) error {
		worker := store.WorkerInfo{
			Worker: r.Text(0), Queues: r.Texts(1), Kinds: r.Texts(2), Slots: r.Int(3),
			StartedAt: r.Time(4), SeenAt: r.Time(5), Until: r.Time(6), Version: r.Text(7),
			Codes: r.Text(8), Policy: r.Int(9), Misses: r.Text(10),
		}
		for _, kind := range worker.Kinds {
			if depends[kind] != "" {
				if worker.Depends == nil {
					worker.Depends = map[string]string{}
				}
				worker.Depends[kind] = depends[kind]
			}
		}
		workers = append(workers, worker)
		return nil
	})
	return workers, err
}

// Counts returns how many jobs are in each state, by queue and kind. A queued job is due if a worker could claim it
// now, holds aside.
func (i *Inspector) Counts(ctx context.Context) ([]store.Count, error) {
	var counts []store.Count
	err := i.whole(ctx, i.statements["inspect_counts"], nil, func(r Row) error {
		counts = append(counts, store.Count{
			Queue: r.Text(0), Kind: r.Text(1), State: holdfast.State(r.Text(2)), Due: r.Bool(3), Jobs: r.Int(4), Oldest: r.Time(5),
		})
		return nil
	})
	return counts, err
}

// current runs a statement whose only argument is the store's time.
func (i *Inspector) current(ctx context.Context, name string, each func(Row) error) error {
	now, err := i.now(ctx)
	if err != nil {
		return err
	}
	return i.q.Query(ctx, i.statements[name], []any{now}, each)
}

// now returns the store's time, to the microsecond, as it is stored.
func (i *Inspector) now(ctx context.Context) (time.Time, error) {
	now, err := i.q.Now(ctx)
	return now.UTC().Truncate(time.Microsecond), err
}

func notFound(id holdfast.ID) error {
	return rule.NoJob(id)
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
