// Command welcome shows the library in twenty lines: a typed job, and a handler that fails once and is retried.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// README start
type Welcome struct{ Email string }

func (Welcome) Kind() string { return "welcome" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	jobs, err := anystore.Open(ctx, "jobs.db") // or postgres://user@host/name
	must(err)
	defer jobs.Close()

	worker, err := engine.New(jobs, engine.Config{})
	must(err)
	engine.Handle(worker, func(ctx context.Context, job *engine.Job[Welcome]) error {
		if job.Failures == 0 { // the mail service is unavailable: return an error, and Holdfast retries
			return &failure.HTTPError{Status: 503, RetryAfter: time.Second}
		}
		fmt.Println("welcome,", job.Args.Email)
		stop() // a real worker would continue
		return nil
	}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 5, Backoff: failure.Fixed(time.Second)}})

	_, err = holdfast.Enqueue(ctx, jobs, Welcome{Email: "ada@example.org"})
	must(err)
	must(worker.Run(ctx)) // until interrupted; then it finishes running jobs and releases the others
}

// README end

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
