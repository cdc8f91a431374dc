package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Inspector reads jobs, their history, their errors, groups, the feed and the health of a store. It implements holdfast.Inspector and
// holdfast.Analyst and the reading half of holdfast.Grouper and holdfast.Historian, changes nothing, and is safe for concurrent use when its Querier is.
type Inspector struct {
	q          Querier
	dialect    string
	statements map[string]string
	past       *past // nil: nothing is remembered
}

var (
	_ holdfast.Inspector = (*Inspector)(nil)
	_ holdfast.Analyst   = (*Inspector)(nil)
)

// New makes the Inspector of a store that speaks the given dialect: SQLite or Postgres.
func New(q Querier, dialect string) *Inspector {
	return &Inspector{q: q, dialect: dialect, statements: sqltext.Load(dialect), past: &past{}}
}

// On is the same Inspector with another way to ask: in a transaction, say, that has changed something.
func (i *Inspector) On(q Querier) *Inspector {
	return &Inspector{q: q, dialect: i.dialect, statements: i.statements}
}

// Job tells all about one job. Of one that was purged the error says when, and by which rule.
func (i *Inspector) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	jobs, _, err := i.page(ctx, query{text: "SELECT id FROM holdfast_job WHERE id = $1", args: []any{id}}, i.leaseOfOne())
	if err != nil {
		return holdfast.Job{}, err
	}
	if len(jobs) == 0 {
		return holdfast.Job{}, i.absent(ctx, id)
	}
	job := jobs[0]
	if !job.Group.IsZero() {
		err = i.q.Query(ctx, i.statements["inspect_upstreams"], []any{id}, func(r Row) error {
			job.After = append(job.After, r.ID(0))
			return nil
		})
	}
	return job, err
}

// Ahead counts the claimable jobs of the same queue that are claimed before this one, up to a thousand. Nothing is ahead
// of a job that does not wait.
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

// Workers lists the worker processes that are believed to be alive. What a kind was declared to call last is said of all its
// workers.
func (i *Inspector) Workers(ctx context.Context) ([]holdfast.Presence, error) {
	depends := map[string]string{}
	err := i.q.Query(ctx, i.statements["inspect_kinds"], nil, func(r Row) error {
		depends[r.Text(0)] = r.Text(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var workers []holdfast.Presence
	err = i.current(ctx, "inspect_workers", func(r Row) error {
		worker := holdfast.Presence{
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

// Counts tells how many jobs stand where, by queue and kind. A queued job is due when a worker could claim it now, but for
// holds.
func (i *Inspector) Counts(ctx context.Context) ([]holdfast.Count, error) {
	var counts []holdfast.Count
	err := i.whole(ctx, i.statements["inspect_counts"], nil, func(r Row) error {
		counts = append(counts, holdfast.Count{
			Queue: r.Text(0), Kind: r.Text(1), State: holdfast.State(r.Text(2)), Due: r.Bool(3), Jobs: r.Int(4), Oldest: r.Time(5),
		})
		return nil
	})
	return counts, err
}

// current runs a statement about what is so at this moment.
func (i *Inspector) current(ctx context.Context, name string, each func(Row) error) error {
	now, err := i.now(ctx)
	if err != nil {
		return err
	}
	return i.q.Query(ctx, i.statements[name], []any{now}, each)
}

// now is the store's clock, as exact as it stores instants.
func (i *Inspector) now(ctx context.Context) (time.Time, error) {
	now, err := i.q.Now(ctx)
	return now.UTC().Truncate(time.Microsecond), err
}

func notFound(id holdfast.ID) error {
	return rule.NoJob(id)
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
