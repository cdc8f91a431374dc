package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

type Welcome struct {
	Email string `json:"email"`
}

func (Welcome) Kind() string { return "welcome" }

func Example() {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())

	jobs, err := anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	defer jobs.Close()
	e, err := engine.New(jobs, engine.Config{})
	if err != nil {
		panic(err)
	}
	engine.Handle(e, func(_ context.Context, job *engine.Job[Welcome]) error {
		fmt.Println("welcome,", job.Args.Email)
		stop() // enough for an example
		return nil
	})
	if _, err := holdfast.Enqueue(ctx, jobs, Welcome{"ada@example.org"}); err != nil {
		panic(err)
	}
	if err := e.Run(ctx); err != nil {
		panic(err)
	}
	// Output: welcome, ada@example.org
}

// run runs the engine on a temporary store until the first job has ended.
func run(cfg engine.Config, setup func(ctx context.Context, e *engine.Engine, jobs store.Store)) {
	runUntil("", cfg, setup)
}

// runUntil is run until the first job of a kind has ended.
func runUntil(lastKind string, cfg engine.Config, setup func(ctx context.Context, e *engine.Engine, jobs store.Store)) {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	jobs, err := anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	defer jobs.Close()
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.OnAttemptEnd = func(end engine.AttemptEnd) {
		if end.To.Terminal() && (lastKind == "" || end.Lease.Kind == lastKind) {
			stop()
		}
	}
	e, err := engine.New(jobs, cfg)
	if err != nil {
		panic(err)
	}
	setup(ctx, e, jobs)
	if err := e.Run(ctx); err != nil {
		panic(err)
	}
}

// A handler that returns an error is called again, after the delay of its policy.
func ExampleHandle_retry() {
	run(engine.Config{}, func(ctx context.Context, e *engine.Engine, jobs store.Store) {
		engine.Handle(e, func(_ context.Context, job *engine.Job[Welcome]) error {
			fmt.Println("attempt", job.Attempt())
			if job.Attempt() < 3 {
				return &failure.HTTPError{Status: 503}
			}
			return nil
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 5, Backoff: failure.Fixed(time.Millisecond)}})
		if _, err := holdfast.Enqueue(ctx, jobs, Welcome{"ada@example.org"}); err != nil {
			panic(err)
		}
	})
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
}

// The next attempt continues where the last checkpoint was saved.
func ExampleJob_Checkpoint() {
	run(engine.Config{Policy: failure.Policy{Backoff: failure.Fixed(time.Millisecond)}}, func(ctx context.Context, e *engine.Engine, jobs store.Store) {
		engine.Handle(e, func(ctx context.Context, job *engine.Job[Welcome]) error {
			page := 1
			if _, err := job.Resume(&page); err != nil {
				return err
			}
			for ; page <= 3; page++ {
				fmt.Println("page", page)
				if page == 2 && job.Attempt() == 1 {
					return errors.New("the printer is jammed")
				}
				if err := job.Checkpoint(ctx, page+1); err != nil {
					return err
				}
			}
			return nil
		})
		if _, err := holdfast.Enqueue(ctx, jobs, Welcome{"ada@example.org"}); err != nil {
			panic(err)
		}
	})
	// Output:
	// page 1
	// page 2
	// page 2
	// page 3
}

// Middleware wraps every handler: the place for tracing and logging.
func ExampleConfig_middleware() {
	logged := func(next engine.Handler) engine.Handler {
		return func(ctx context.Context, job *engine.Raw) error {
			err := next(ctx, job)
			fmt.Println(job.Kind, "returned", err)
			return err
		}
	}
	run(engine.Config{Middleware: []func(engine.Handler) engine.Handler{logged}}, func(ctx context.Context, e *engine.Engine, jobs store.Store) {
		engine.Handle(e, func(context.Context, *engine.Job[Welcome]) error { return nil })
		if _, err := holdfast.Enqueue(ctx, jobs, Welcome{"ada@example.org"}); err != nil {
			panic(err)
		}
	})
	// Output: welcome returned <nil>
}
