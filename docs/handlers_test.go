package docs_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store"
)

// The parts of handlers.md and testing.md.

// README start checkpoint
func writeReport(ctx context.Context, job *engine.Job[Report]) error {
	var page int
	if _, err := job.Resume(&page); err != nil { // what an earlier attempt saved
		return err
	}
	for page < job.Args.Pages {
		if err := write(ctx, page+1); err != nil {
			return err
		}
		page++
		if err := job.Checkpoint(ctx, page); err != nil { // ErrLeaseLost: another worker has the job, stop
			return err
		}
	}
	job.Result(map[string]int{"pages": page})
	return nil
}

// README end

func Example_keys() {
	// README start keys
	receipt, err := holdfast.Enqueue(ctx, jobs, Sync{Account: 7}, func(d *holdfast.Draft) {
		d.Queue, d.Priority, d.Owner = "sync", -1, "acme" // a lower number is claimed first
		d.UniqueKey = "account-7"                         // a second one is answered with the first
		d.Delay, d.ExpireIn = time.Minute, time.Hour      // not before; and not started after: fails as expired
	})
	// README end
	must(err)
	_ = receipt
}

func Example_uniquePeriod() {
	// README start period
	receipt, err := holdfast.Enqueue(ctx, jobs, Sync{Account: 7}, holdfast.UniquePeriod(time.Hour))
	// README end
	must(err)
	_ = receipt
}

func TestAReportContinuesFromItsCheckpoint(t *testing.T) {
	// README start setup
	attempt := holdfasttest.Work(t, writeReport, Report{Pages: 3}, func(s *holdfasttest.Setup) {
		s.Job.Failures = 3
		s.Checkpoint = 2
		s.End, s.EndAfter = engine.ErrStopping, 10*time.Millisecond
	})
	// README end
	attempt.RequireComplete(t)
	var result map[string]int
	attempt.RequireResult(t, &result)
	if result["pages"] != 3 {
		t.Errorf("%v", result)
	}
}

func TestARequestEnqueuesAChargeInItsTransaction(t *testing.T) {
	jobs := holdfasttest.Open(t)
	db := openBeside(t, jobs)
	placeOrder := func(ctx context.Context, tx *sql.Tx, jobs store.Store) {
		_, err := holdfast.Enqueue(ctx, jobs.In(tx), Charge{Order: 7, Cents: 1250}, func(d *holdfast.Draft) { d.Queue, d.Delay = "payments", time.Minute })
		must(err)
	}
	// README start enqueued
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	placeOrder(t.Context(), tx, jobs) // the code under test enqueues with jobs.In(tx)
	holdfasttest.RequireEnqueued(t, jobs.In(tx), Charge{Order: 7, Cents: 1250}, func(d *holdfast.Draft) {
		d.Queue, d.Delay = "payments", time.Minute
	})
	// README end
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
}

// Index is a job.
type Index struct{ Document, Version int }

// Kind names the kind.
func (Index) Kind() string { return "index" }

func TestTheLastDraftOfADocumentWins(t *testing.T) {
	ctx, jobs := t.Context(), holdfasttest.Open(t)
	_, err := holdfast.Enqueue(ctx, jobs, Index{Document: 7, Version: 1}, func(d *holdfast.Draft) { d.UniqueKey = "document-7" })
	if err != nil {
		t.Fatal(err)
	}
	// README start replace
	byDocument := func(d *holdfast.Draft) { d.UniqueKey = "document-7" }
	replace := func(d *holdfast.Draft) { d.Replace = &holdfast.Replace{} }
	receipt, err := holdfast.Enqueue(ctx, jobs, Index{Document: 7, Version: 2}, byDocument, replace)
	// README end
	if err != nil || !receipt.Replaced {
		t.Fatal(receipt, err)
	}
	// README start debounce
	receipt, err = holdfast.Enqueue(ctx, jobs, Index{Document: 7, Version: 3}, byDocument, holdfast.Debounce(5*time.Second, time.Minute))
	// README end
	if err != nil || !receipt.Replaced {
		t.Fatal(receipt, err)
	}
	holdfasttest.RequireEnqueued(t, jobs, Index{Document: 7, Version: 3})
}
