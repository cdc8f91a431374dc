package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
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

	jobs, err := store.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	defer jobs.Close()
	e, err := engine.New(jobs, engine.Config{})
	if err != nil {
		panic(err)
	}
	_ = engine.Handle(e, func(_ context.Context, job *engine.Job[Welcome]) error {
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
