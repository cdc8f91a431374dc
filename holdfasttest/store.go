package holdfasttest

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A Store is a new SQLite store of one test.
type Store struct {
	store.Store
	// Path is the database file. A handle of the test's own on it is sql.Open("sqlite", sqlite.DSN(jobs.Path)).
	Path string
}

// Open returns a new, empty store in a temporary folder. At the end of the test it is checked (the integrity check must find nothing) and closed.
func Open(t testing.TB) *Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatalf("holdfasttest: %v", err)
	}
	t.Cleanup(func() { closeStore(t, db) })
	return &Store{db, path}
}

// Run runs a test on a new, empty store and in virtual time (testing/synctest): when all goroutines of the test wait, its clock advances at once to the next
// moment at which one of them continues. So delays, retries, schedules and time limits pass without waiting. What reaches outside the process, such as a
// PostgreSQL server or an HTTP server, has no virtual time.
//
// At the end every goroutine of the test must have ended; Drain leaves none.
func Run(t *testing.T, test func(t *testing.T, jobs *Store)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatalf("holdfasttest: %v", err)
		}
		defer closeStore(t, db)
		test(t, &Store{db, path})
	})
}

// closeStore checks the integrity of a store and closes it.
func closeStore(t testing.TB, db *sqlite.Store) {
	t.Helper()
	findings, err := db.CheckIntegrity(context.Background())
	if err != nil {
		t.Errorf("holdfasttest: the integrity of the store could not be checked: %v", err)
	}
	for _, f := range findings {
		t.Errorf("holdfasttest: the store breaks the invariant %q: %s: %s", f.Rule, f.Job, f.Detail)
	}
	if err := db.Close(); err != nil {
		t.Errorf("holdfasttest: closing the store: %v", err)
	}
}
