// Holdfast as a contender, with all guarantees enabled: the settings are the defaults except for the number of slots.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/bench/measure"
	"github.com/holdfastdev/holdfast/bench/postgres"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

type noop struct {
	Text string `json:"text"`
}

func (noop) Kind() string { return "noop" }

// frozen is a kind that is paused.
type frozen noop

func (frozen) Kind() string { return "frozen" }

type contender struct {
	store      store.Store
	work       store.Store // the store itself, or a server in front of it
	slots      int
	owners     int
	added      int
	dependency string // the dependency of the jobs
}

// remote is the contender on PostgreSQL.
type remote struct {
	*contender
	postgres.Server
}

func main() { measure.Main(open) }

func open(ctx context.Context, o measure.Options) (measure.Contender, error) {
	s, err := anystore.Open(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	c := &contender{store: s, work: s, slots: o.Slots, owners: o.Owners}
	if o.Far {
		if c.work, err = goFar(ctx, s); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if o.Told {
		if err := s.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "bench", Events: []string{"*"}}}}); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(o.Store, "postgres") {
		return remote{c, postgres.Server{URL: o.Store}}, nil
	}
	return c, nil
}

func (c *contender) Add(ctx context.Context, jobs int) error {
	return c.add(ctx, jobs, noop{measure.Text}, 0)
}

func (c *contender) Schedule(ctx context.Context, jobs int) error {
	return c.add(ctx, jobs, noop{measure.Text}, 24*time.Hour)
}

func (c *contender) Hold(ctx context.Context, jobs int) error {
	err := c.store.Pause(ctx, store.Hold{Kind: frozen{}.Kind(), Actor: "bench", Reason: "a held backlog"})
	if err != nil {
		return err
	}
	return c.add(ctx, jobs, frozen{measure.Text}, 0)
}

// Break adds jobs of many kinds and owners whose dependency has an open breaker.
func (c *contender) Break(ctx context.Context, jobs int) error {
	broken := *c
	broken.dependency, broken.owners = "gateway", 100
	if err := broken.add(ctx, jobs, noop{measure.Text}, 0); err != nil {
		return err
	}
	return ops.New(c.store, ops.Config{}).ForceBreaker(ctx, "gateway", true, ops.Actor{Name: "bench", Reason: "a held backlog"})
}

// Retain runs jobs to their end; the engine keeps ended jobs.
func (c *contender) Retain(ctx context.Context, jobs int) error {
	if err := c.Add(ctx, jobs); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended atomic.Int64
	return c.Work(ctx, func(int) error {
		if ended.Add(1) == int64(jobs) {
			stop()
		}
		return nil
	})
}

func (c *contender) add(ctx context.Context, jobs int, args holdfast.Args, delay time.Duration) error {
	return measure.Chunks(jobs, func(n int) error {
		drafts := make([]holdfast.Draft, n)
		for i := range drafts {
			d, err := holdfast.NewDraft(args)
			if err != nil {
				return err
			}
			d.Delay, d.Dependency = delay, c.dependency
			if c.owners > 0 {
				d.Owner = fmt.Sprintf("owner-%04d", c.added%c.owners)
				c.added++
			}
			drafts[i] = d
		}
		_, err := c.work.Enqueue(ctx, drafts)
		return err
	})
}

func (c *contender) AddOne(ctx context.Context) error {
	_, err := holdfast.Enqueue(ctx, c.work, noop{measure.Text})
	return err
}

func (c *contender) Work(ctx context.Context, do func(attempt int) error) error {
	e, err := engine.New(c.work, engine.Config{Slots: c.slots, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	engine.Handle(e, func(_ context.Context, job *engine.Job[noop]) error {
		return do(job.Failures + 1)
	}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(0)}})
	if err := e.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (c *contender) Complete(ctx context.Context) (n int, err error) {
	counts, err := c.store.Counts(ctx)
	for _, count := range counts {
		if count.State == holdfast.Complete {
			n += count.Jobs
		}
	}
	return n, err
}

func (c *contender) Settings() string {
	return fmt.Sprintf("%d slots, all else default, retry delay 0; SQLite in WAL with synchronous=FULL", c.slots)
}

func (c *contender) Close() error {
	if c.work == c.store {
		return c.store.Close()
	}
	return errors.Join(c.work.Close(), c.store.Close())
}

func (r remote) Settings() string {
	return fmt.Sprintf("%d slots, all else default, retry delay 0; %s", r.slots, r.Version(context.Background()))
}
