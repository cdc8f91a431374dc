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
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store"
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

// An Offer is sent, and then waits for an answer.
type Offer struct {
	To       string `json:"to"`
	Accepted bool   `json:"accepted,omitempty"`
}

// Kind names the kind.
func (Offer) Kind() string { return "offer" }

func offer(ctx context.Context, job *engine.Job[Offer]) error {
	var sent bool
	if _, err := job.Resume(&sent); err != nil {
		return err
	}
	// README start sleep
	if !sent {
		if err := job.Checkpoint(ctx, true); err != nil {
			return err
		}
		return failure.Snooze(72 * time.Hour)
	}
	// README end
	job.Result(job.Args.Accepted)
	return nil
}

func signal(id holdfast.ID) error {
	// README start signal
	_, err := jobs.Edit(ctx, store.Edit{
		Intervention: store.Intervention{Job: id, Actor: "the web site"},
		Patch:        []byte(`{"accepted":true}`), Delay: new(time.Duration),
	})
	// README end
	return err
}

func TestAnOfferSleepsUntilASignal(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, db *holdfasttest.Store) {
		before := jobs
		jobs = db
		defer func() { jobs = before }()
		receipt, err := holdfast.Enqueue(ctx, db, Offer{To: "ann@example.com"})
		must(err)
		began := time.Now()
		e, err := engine.New(db, engine.Config{Log: slog.New(slog.DiscardHandler)})
		must(err)
		engine.Handle(e, offer)
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- e.Run(running) }()
		<-time.After(time.Hour) // in virtual time
		must(signal(receipt.ID))
		accepted, err := holdfast.Wait[bool](ctx, db, receipt.ID)
		if waited := time.Since(began); err != nil || !accepted || waited > 2*time.Hour {
			t.Errorf("the offer was accepted: %v (%v) after %v, want true within two hours", accepted, err, waited)
		}
		stop()
		must(<-ended)
	})
}

func enqueueInOrder(changes []Sync) error {
	// README start order
	_, err := holdfast.EnqueueAll(ctx, jobs, changes, func(d *holdfast.Draft) { d.Order = "account-17" })
	// README end
	return err
}

func TestChangesOfAnAccountWaitInLine(t *testing.T) {
	before := jobs
	jobs = holdfasttest.Open(t)
	defer func() { jobs = before }()
	must(enqueueInOrder([]Sync{{Account: 1}, {Account: 2}}))
	waiting := 0
	for _, one := range holdfasttest.AllEnqueued[Sync](t, jobs) {
		if one.Waiting {
			waiting++
		}
	}
	if waiting != 1 {
		t.Errorf("%d jobs wait for others of their line, want 1", waiting)
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
