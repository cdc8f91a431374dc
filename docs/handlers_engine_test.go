package docs_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/holdfasttest"
)

// The parts of handlers.md about transactions, chunks, slots and results.

// A Shop is an application with a database of its own.
type Shop struct{ db *sql.DB }

// README start complete
func (s *Shop) charge(ctx context.Context, job *engine.Job[Charge]) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE id = ?", job.Args.Order); err != nil {
		return err
	}
	if err := job.CompleteIn(ctx, tx); err != nil { // ErrLeaseLost: another worker has the job, roll back
		return err
	}
	return tx.Commit()
}

// README end

// Site is a job.
type Site struct{ URL string }

// Kind names the kind.
func (Site) Kind() string { return "site" }

// Page is a job.
type Page struct{ URL string }

// Kind names the kind.
func (Page) Kind() string { return "page" }

func find(_ context.Context, site Site) []string { return []string{site.URL + "/a", site.URL + "/b"} }

// README start enqueue
func listPages(ctx context.Context, job *engine.Job[Site]) error {
	for _, url := range find(ctx, job.Args) {
		page, err := holdfast.NewDraft(Page{URL: url})
		if err != nil {
			return err
		}
		page.Group = job.Group // also if the group is sealed
		if err := job.Enqueue(page); err != nil {
			return err
		}
	}
	return nil
}

// README end

func TestAJobEnqueuesThePagesThatItFinds(t *testing.T) {
	attempt := holdfasttest.Work(t, listPages, Site{URL: "https://example.com"})
	if len(attempt.Enqueued) != 2 {
		t.Errorf("the job enqueued %d jobs, want 2", len(attempt.Enqueued))
	}
}

// Mail is a job.
type Mail struct{ To string }

// Kind names the kind.
func (Mail) Kind() string { return "mail" }

// Sum is a job.
type Sum struct {
	Numbers []int `json:"numbers"`
}

// Kind names the kind.
func (Sum) Kind() string { return "sum" }

// SumResult is the result of a sum.
type SumResult struct {
	Sum int `json:"sum"`
}

func sum(_ context.Context, job *engine.Job[Sum]) error {
	var result SumResult
	for _, n := range job.Args.Numbers {
		result.Sum += n
	}
	job.Result(result)
	return nil
}

type answer struct{ Err error }

func send(_ context.Context, jobs []*engine.Job[Mail]) []answer {
	answers := make([]answer, len(jobs))
	for i, job := range jobs {
		if job.Args.To == "" {
			answers[i].Err = errExample
		}
	}
	return answers
}

func handleMails(worker *engine.Engine) {
	// README start chunk
	engine.HandleChunk(worker, func(ctx context.Context, jobs []*engine.Job[Mail]) []error {
		errs := make([]error, len(jobs)) // one for each job, in the same order
		for i, answer := range send(ctx, jobs) {
			errs[i] = answer.Err
		}
		return errs // nil completes all of them
	}, engine.ChunkOptions{Size: 100, Wait: 2 * time.Second}, engine.KindOptions{Slots: 100})
	// README end
}

func TestChargesAreCompletedInTheTransactionOfTheirHandler(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		db := openBeside(t, jobs)
		if _, err := db.Exec("CREATE TABLE orders (id integer PRIMARY KEY, state text); INSERT INTO orders VALUES (7, 'new')"); err != nil {
			t.Fatal(err)
		}
		shop := &Shop{db}
		receipt, err := holdfast.Enqueue(ctx, jobs, Charge{Order: 7, Cents: 100})
		if err != nil {
			t.Fatal(err)
		}
		holdfasttest.Drain(t, jobs, func(e *engine.Engine) { engine.Handle(e, shop.charge) })
		job, err := jobs.Job(ctx, receipt.ID)
		var state string
		if err := errors.Join(err, db.QueryRow("SELECT state FROM orders WHERE id = 7").Scan(&state)); err != nil {
			t.Fatal(err)
		}
		if job.State != holdfast.Complete || state != "paid" {
			t.Errorf("the job is %s and the order %s, want complete and paid", job.State, state)
		}
	})
}

func TestSlotsChangeWhileTheEngineRuns(t *testing.T) {
	jobs := holdfasttest.Open(t)
	// README start slots
	worker, err := engine.New(jobs, engine.Config{
		Slots: 200, Queues: []string{"default", "mail", "reports"},
		QueueSlots: map[string]int{"reports": 5},
	})
	engine.Handle(worker, sum, engine.KindOptions{Slots: 2})
	// README end
	must(err)
	handleMails(worker)
	changed := func() error {
		// README start change
		return errors.Join(
			worker.SetSlots(250),
			worker.SetQueueSlots("reports", 10), // 0: no limit of its own
			worker.SetKindSlots("sum", 4),
			worker.AddQueue("imports"),
			worker.RemoveQueue("mail"), // jobs that run continue; those claimed ahead are released at no cost
		)
		// README end
	}
	must(changed())
}

func Example_wait() {
	// README start wait
	receipt, err := holdfast.Enqueue(ctx, jobs, Sum{Numbers: []int{1, 2, 3}})
	must(err)
	result, err := holdfast.Wait[SumResult](ctx, jobs, receipt.ID)
	if failed := (*holdfast.JobError)(nil); errors.As(err, &failed) {
		fmt.Println(failed.Job.State, failed.Code, failed.Message) // failed for good, or cancelled
	}
	// README end
	slog.Info("waited", "sum", result.Sum)
}
