package docs_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// The parts of embedding.md that the shop does not have.

func signedIn(*http.Request) (name string, admin bool, err error) { return "ada", false, nil }

// README start who
func who(r *http.Request) (console.Visitor, error) {
	name, admin, err := signedIn(r) // your own: an error keeps the visitor out, and is shown
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

func TestTablesOfAProgramAreBesideTheJobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	// README start beside
	jobs, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	must(err)
	db, err := sql.Open("sqlite", sqlite.DSN(path)) // import _ "modernc.org/sqlite"
	must(err)
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL)")
	must(err)

	reading, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // takes no lock
	must(err)
	// README end
	defer func() { must(jobs.Close()) }()
	defer func() { must(db.Close()) }()
	defer func() { must(reading.Rollback()) }()
	writing, err := db.BeginTx(ctx, nil)
	must(err)
	defer func() { must(writing.Rollback()) }()
	other, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	must(err)
	defer func() { must(other.Rollback()) }()
	var orders int
	must(other.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders))
	_, err = holdfast.Enqueue(ctx, jobs.In(writing), Charge{Order: 7})
	must(err)
}
