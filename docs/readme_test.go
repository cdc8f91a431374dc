package docs_test

import (
	"database/sql"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// The transaction of the README.
func Example_transaction() {
	// README start
	db, err := sql.Open("sqlite", sqlite.DSN("jobs.db")) // your own handle on the same file, by the driver modernc.org/sqlite
	must(err)
	tx, err := db.BeginTx(ctx, nil) // *sql.Tx on SQLite; *sql.Tx or pgx.Tx on PostgreSQL
	must(err)
	_, err = tx.ExecContext(ctx, "INSERT INTO users (email) VALUES (?)", "ada@example.org")
	must(err)
	_, err = holdfast.Enqueue(ctx, jobs.In(tx), Welcome{Email: "ada@example.org"})
	must(err)
	must(tx.Commit())
	// README end
}
