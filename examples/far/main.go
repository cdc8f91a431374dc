// Command far is a worker that connects to a Holdfast server instead of a database. The engine and the handlers are the same; only the store differs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/engine"
)

// Greet are the arguments of a greeting.
type Greet struct {
	Name string `json:"name"`
}

// Kind returns the kind of the job.
func (Greet) Kind() string { return "greet" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// README start
	c, err := client.Dial(os.Getenv("HOLDFAST_SERVER"), client.Config{Key: os.Getenv("HOLDFAST_KEY")})
	must(err)
	defer c.Close()

	jobs := c.Store() // implements store.Store
	worker, err := engine.New(jobs, engine.Config{})
	must(err)
	engine.Handle(worker, func(_ context.Context, job *engine.Job[Greet]) error {
		fmt.Println("hello,", job.Args.Name)
		return nil
	})

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
