package holdfasttest_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

func enqueue(t *testing.T, to holdfast.Enqueuer, args holdfast.Args, options ...func(*holdfast.Draft)) holdfast.ID {
	t.Helper()
	receipt, err := holdfast.Enqueue(context.Background(), to, args, options...)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

func later(d *holdfast.Draft) {
	d.Queue, d.Owner, d.Delay, d.ExpireIn, d.Tags, d.MaxAttempts = "mail", "acme", time.Minute, time.Hour, []string{"eu"}, 4
}

func TestRequireEnqueuedFindsTheJob(t *testing.T) {
	jobs := holdfasttest.Open(t)
	id := enqueue(t, jobs, home, later)
	enqueue(t, jobs, parcel{Address: "2 Main Street", Weight: 3}, later)
	if got := holdfasttest.RequireEnqueued(t, jobs, home); got.ID != id {
		t.Errorf("found %v, want %v", got.ID, id)
	}
	if got := holdfasttest.RequireEnqueued(t, jobs, home, later); got.ID != id {
		t.Errorf("found %v, want %v", got.ID, id)
	}
	holdfasttest.RequireNotEnqueued(t, jobs, parcel{Address: "3 Main Street"})
	all := holdfasttest.AllEnqueued[parcel](t, jobs)
	if len(all) != 2 || all[0].Args != home || all[1].Args.Address != "2 Main Street" {
		t.Errorf("all: %+v", all)
	}
}

func TestRequireEnqueuedSeesATransactionThatIsOpen(t *testing.T) {
	jobs := holdfasttest.Open(t)
	db, err := sql.Open("sqlite", sqlite.DSN(jobs.Path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, jobs.In(tx), home, later)
	if got := holdfasttest.RequireEnqueued(t, jobs.In(tx), home, later); got.ID != id || got.Owner != "acme" || len(got.Tags) != 1 {
		t.Errorf("%+v", got)
	}
	holdfasttest.RequireNotEnqueued(t, jobs, home)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	holdfasttest.RequireNotEnqueued(t, jobs, home)
}

func TestTheMessageShowsHowTheMostSimilarJobDiffers(t *testing.T) {
	jobs := holdfasttest.Open(t)
	none := fatal(t, func(t testing.TB) { holdfasttest.RequireEnqueued(t, jobs, home) })
	if !strings.Contains(none, "no job of kind parcel was enqueued") {
		t.Errorf("message: %s", none)
	}
	enqueue(t, jobs, parcel{Address: "elsewhere", Weight: 9})
	enqueue(t, jobs, parcel{Address: home.Address, Weight: 4}, func(d *holdfast.Draft) { d.Queue = "post" })
	message := fatal(t, func(t testing.TB) { holdfasttest.RequireEnqueued(t, jobs, home, later) })
	for _, part := range []string{
		"the most similar of 2", "args.weight: want 3, got 4", "queue: want mail, got post", `owner: want acme, got ""`,
		"starts: want 1m0s after it was enqueued, got no such time", "others:", "elsewhere",
	} {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q:\n%s", part, message)
		}
	}
	if strings.Contains(message, "args.address") {
		t.Errorf("the message names a member that is equal:\n%s", message)
	}
}

func TestAJobThatWasEnqueuedTwiceIsFound(t *testing.T) {
	jobs := holdfasttest.Open(t)
	enqueue(t, jobs, home)
	enqueue(t, jobs, home)
	if message := fatal(t, func(t testing.TB) { holdfasttest.RequireEnqueued(t, jobs, home) }); !strings.Contains(message, "2 jobs match, want 1") {
		t.Errorf("message: %s", message)
	}
	if message := fatal(t, func(t testing.TB) { holdfasttest.RequireNotEnqueued(t, jobs, home) }); !strings.Contains(message, "want none") {
		t.Errorf("message: %s", message)
	}
}
