package docs_test

import (
	"database/sql"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast/store/postgres"
)

// The parts of postgres.md.
func Example_pool() {
	// README start pool
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	jobs, err := postgres.Open(ctx, postgres.Config{Pool: pool, Schema: "jobs"})
	// README end
	must(err)
	_ = jobs
}

func Example_db() {
	// README start db
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL")) // import _ "github.com/jackc/pgx/v5/stdlib"
	must(err)
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20) // with the default of 2, a busy worker opens and closes connections all the time
	jobs, err := postgres.Open(ctx, postgres.Config{DB: db, Schema: "jobs"})
	// README end
	must(err)
	_ = jobs
}
