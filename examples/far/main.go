// Command far is a worker that knows no database, only the address of a server: the same engine, the same handlers, another store.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/engine"
)

// Greet is somebody to greet.
type Greet struct {
	Name string `json:"name"`
}

// Kind names the kind.
func (Greet) Kind() string { return "greet" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// README start
	client, err := api.Dial(os.Getenv("HOLDFAST_SERVER"), api.Config{Key: os.Getenv("HOLDFAST_KEY")})
	must(err)
	defer client.Close()

	jobs := client.Store() // a holdfast.Store like any other
	worker, err := engine.New(jobs, engine.Config{})
	must(err)
	engine.Handle(worker, func(_ context.Context, job *engine.Job[Greet]) error {
		fmt.Println("hello,", job.Args.Name)
		return nil
	}, engine.Kind{})

	_, err = holdfast.Enqueue(ctx, jobs, Greet{Name: "Ada"})
	must(err)
	must(worker.Run(ctx)) // until interrupted
	// README end
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
