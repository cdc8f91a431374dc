package docs_test

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

// The part of coming-from.md.

func sendWelcome(context.Context, string) error { return nil }

// An oldJob is a job of another queue.
type oldJob struct {
	ID    string
	Email string
	At    time.Time
}

func Example_move() {
	var old []oldJob
	// README start
	engine.Handle(worker, func(ctx context.Context, job *engine.Job[Welcome]) error {
		return sendWelcome(ctx, job.Args.Email) // the function that the old worker calls
	}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 5}})

	for _, o := range old { // jobs of the far future, copied once; it may be repeated
		_, err := holdfast.Enqueue(ctx, jobs, Welcome{Email: o.Email}, func(d *holdfast.Draft) {
			d.RunAt, d.IdempotencyKey = o.At, "old/"+o.ID
		})
		must(err)
	}
	// README end
}
