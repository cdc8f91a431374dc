//go:build unix

package chaos

import (
	"database/sql"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
)

func TestAHandlersRowAndTheEndOfItsJobAreOneOnSQLite(t *testing.T) {
	runBookkeepers(t, "sqlite", soak.Pick("SQLite: jobs that complete in transactions of their handlers", 300, 4000))
}

func TestAHandlersRowAndTheEndOfItsJobAreOneOnPostgreSQL(t *testing.T) {
	runBookkeepers(t, "postgres", soak.Pick("PostgreSQL: jobs that complete in transactions of their handlers", 300, 8000))
}

// runBookkeepers lets processes complete jobs in transactions of their handlers, kills and freezes some of them, and compares the rows with the jobs.
func runBookkeepers(t *testing.T, storeName string, jobs int) {
	ctx, dir := t.Context(), t.TempDir()
	db, s := openDatabase(t, storeName, dir)
	ledger, err := openLedger(db.address)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	if _, err := ledger.ExecContext(ctx, createLedger); err != nil {
		t.Fatal(err)
	}
	if _, err := holdfast.EnqueueAll(ctx, s, make([]entryScript, jobs)); err != nil {
		t.Fatal(err)
	}
	f := &fleet{command: []string{os.Args[0], asChild}, spec: childSpec{Store: db.address, Dir: dir, Lease: 2 * time.Second}}
	defer f.killAll("")
	if err := f.start(roleBookkeeper, 4); err != nil {
		t.Fatal(err)
	}
	random, kills := rand.New(rand.NewPCG(7, 7)), 0
	left := func() int {
		n, err := s.Count(ctx, store.Filter{Kind: entryScript{}.Kind(), State: holdfast.Complete}, jobs)
		if err != nil {
			t.Fatal(err)
		}
		return jobs - n
	}
	for deadline := time.Now().Add(5 * time.Minute); left() > 0; sleep(ctx, 250*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d jobs did not complete", left(), jobs)
		}
		victim := f.slots[random.IntN(4)].process
		if random.IntN(4) == 0 { // longer than a lease: its jobs are reclaimed while it has transactions open
			victim.signal(sigStop)
			sleep(ctx, 2500*time.Millisecond)
			victim.signal(sigCont)
		} else {
			victim.asked = true
			victim.signal(sigKill)
			<-victim.gone
			kills++
		}
		if err := f.refill(); err != nil {
			t.Fatal(err)
		}
	}
	f.stop(roleBookkeeper, time.Minute)
	for _, unexpected := range f.unexpectedExits() {
		t.Error(unexpected)
	}
	expectOneRow(t, s, ledgerRows(t, ledger), jobs)
	expectOneRow(t, s, enqueuedBy(t, s), jobs)
	if findings, err := s.CheckIntegrity(ctx); err != nil || len(findings) > 0 {
		t.Errorf("the integrity check: %v %v", findings, err)
	}
	if kills == 0 {
		t.Error("no worker was killed")
	}
	t.Logf("%s: %d jobs, %d processes, %d of them killed from outside", db.name, jobs, len(f.all), kills)
}

// ledgerRows counts the rows of each job.
func ledgerRows(t *testing.T, ledger *sql.DB) map[string]int {
	t.Helper()
	rows, err := ledger.QueryContext(t.Context(), "SELECT job, count(*) FROM chaos_ledger GROUP BY job")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var job string
		var n int
		if err := rows.Scan(&job, &n); err != nil {
			t.Fatal(err)
		}
		all[job] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// enqueuedBy counts the jobs that each job has enqueued with its completion.
func enqueuedBy(t *testing.T, s store.Store) map[string]int {
	t.Helper()
	all := map[string]int{}
	for filter := (store.Filter{Kind: script{}.Kind(), Limit: 200}); ; {
		page, cursor, err := s.Jobs(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range page {
			all[scriptOf(job.Args).Parent.String()]++
		}
		if filter.Cursor = cursor; cursor == "" {
			return all
		}
	}
}

// expectOneRow expects exactly one row, or one enqueued job, for each complete job, and none without one.
func expectOneRow(t *testing.T, s store.Store, rows map[string]int, jobs int) {
	t.Helper()
	complete := 0
	for filter := (store.Filter{Kind: entryScript{}.Kind(), Limit: 200}); ; {
		page, cursor, err := s.Jobs(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range page {
			if n := rows[job.ID.String()]; job.State != holdfast.Complete || n != 1 {
				t.Errorf("job %v is %s and has %d rows or jobs", job.ID, job.State, n)
			}
			complete++
			delete(rows, job.ID.String())
		}
		if filter.Cursor = cursor; cursor == "" {
			break
		}
	}
	if complete != jobs || len(rows) > 0 {
		t.Errorf("there are %d jobs, want %d; %d jobs with rows or jobs do not exist", complete, jobs, len(rows))
	}
}
