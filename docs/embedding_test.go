package docs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/holdfasttest"
)

// The parts of embedding.md that the shop does not have.

func Example_slots() {
	// README start slots
	worker, err := engine.New(jobs, engine.Config{
		Queues: []string{"default", "mail"}, Slots: 20, // all queues together
		QueueSlots: map[string]int{"mail": 5}, // of these at most 5 for the queue mail
		OwnerSlots: 4,                         // and at most 4 for one owner
	})
	must(err)
	engine.Handle(worker, convert, engine.KindOptions{Slots: 2}) // and at most 2 of this kind
	must(worker.SetQueueSlots("mail", 2))                        // at any time, in this process; SetSlots and SetKindSlots likewise
	// README end
}

// README start chunk
func sendAll(ctx context.Context, jobs []*engine.Job[Welcome]) []error {
	addresses := make([]string, len(jobs))
	for i, job := range jobs {
		addresses[i] = job.Args.Email
	}
	return sendMails(ctx, addresses) // one error for each job: nil completes it, another is retried on its own
}

func registerChunks(worker *engine.Engine) {
	engine.HandleChunk(worker, sendAll, engine.ChunkOptions{Size: 50, Wait: 200 * time.Millisecond}, engine.KindOptions{Slots: 50})
}

// README end

func sendMails(_ context.Context, addresses []string) []error { return make([]error, len(addresses)) }

// README start wait
type Total struct{ Cents int }

func total(ctx context.Context, jobs holdfast.JobReader, id holdfast.ID) (Total, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	total, err := holdfast.Wait[Total](ctx, jobs, id)
	var failed *holdfast.JobError
	if errors.As(err, &failed) {
		return Total{}, fmt.Errorf("the order cannot be charged: %s", failed.Message)
	}
	return total, err // ctx's error: the job continues, and can be waited for again
}

// README end

func TestChunksAndResults(t *testing.T) {
	jobs := holdfasttest.Open(t)
	_, err := holdfast.EnqueueAll(t.Context(), jobs, []Welcome{{Email: "ada@example.org"}, {Email: "bob@example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	charge, err := holdfast.Enqueue(t.Context(), jobs, Charge{Order: 7, Cents: 1250})
	if err != nil {
		t.Fatal(err)
	}
	holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
		engine.HandleChunk(e, sendAll, engine.ChunkOptions{Size: 2})
		engine.Handle(e, func(_ context.Context, job *engine.Job[Charge]) error {
			job.Result(Total{Cents: job.Args.Cents})
			return nil
		})
	}).RequireComplete(t)
	if got, err := total(t.Context(), jobs, charge.ID); err != nil || got.Cents != 1250 {
		t.Error(got, err)
	}
	_ = registerChunks
}

// signedIn is the application's own sign-in.
func signedIn(*http.Request) (name string, admin bool, err error) { return "ada", false, nil }

// README start who
func who(r *http.Request) (console.Visitor, error) {
	name, admin, err := signedIn(r) // an error keeps the visitor out, and is shown
	scope := apikey.Viewer
	if admin {
		scope = apikey.Operator
	}
	return console.Visitor{Name: name, Scope: scope}, err
}

// README end

func Example_console() {
	pages, err := console.New(console.Config{Who: who, Prefix: "/ops/jobs"})
	must(err)
	pages.Close()
}
