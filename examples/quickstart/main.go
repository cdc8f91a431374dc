// Command quickstart is the program of docs/quickstart.md: a worker that sends welcome mails, one of which cannot be sent.
//
//	go run . jobs.db
//	go run . postgres://user@host/database
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// Welcome is the arguments of a job of kind "welcome".
type Welcome struct {
	Email string `json:"email"`
}

// Kind names the kind.
func (Welcome) Kind() string { return "welcome" }

func send(_ context.Context, job *engine.Job[Welcome]) error {
	if !strings.Contains(job.Args.Email, "@") {
		return failure.WithCode(errors.New("the address has no @"), "INVALID_INPUT")
	}
	fmt.Println("welcome,", job.Args.Email)
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("give a store: a file such as jobs.db, or postgres://user@host/database")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	jobs, err := anystore.Open(ctx, os.Args[1])
	if err != nil {
		return err
	}
	defer func() { _ = jobs.Close() }()

	worker, err := engine.New(jobs, engine.Config{})
	if err != nil {
		return err
	}
	engine.Handle(worker, send)
	_, err = holdfast.EnqueueAll(ctx, jobs, []Welcome{{Email: "ada@example.org"}, {Email: "bob"}})
	if err != nil {
		return err
	}
	return worker.Run(ctx) // until Ctrl-C
}
