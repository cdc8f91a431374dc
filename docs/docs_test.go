// Package docs_test has the code of the pages in this folder, so that it compiles. A page names the file and the part (internal/archtest compares them).
package docs_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	_ "modernc.org/sqlite" // the driver of handles beside the store

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// What the examples of several pages use.
var (
	ctx    = context.Background()
	jobs   store.Store
	worker *engine.Engine
)

var errExample = errors.New("an error of the handler")

// Sync is a job.
type Sync struct{ Account int }

// Kind names the kind.
func (Sync) Kind() string { return "sync" }

// Report is a job.
type Report struct{ Pages int }

// Kind names the kind.
func (Report) Kind() string { return "report" }

// Welcome is a job.
type Welcome struct{ Email string }

// Kind names the kind.
func (Welcome) Kind() string { return "welcome" }

// Charge is a job.
type Charge struct {
	Order int64 `json:"order"`
	Cents int   `json:"cents"`
}

// Kind names the kind.
func (Charge) Kind() string { return "charge" }

func convert(context.Context, *engine.Job[Sync]) error { return nil }

func write(context.Context, int) error { return nil }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// openBeside opens a handle of the test's own on the file of a store.
func openBeside(t *testing.T, jobs *holdfasttest.Store) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", sqlite.DSN(jobs.Path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
