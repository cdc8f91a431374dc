package docs_test

import (
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfastdev/holdfast/store/postgres"
)

// The part of postgres.md.
func Example_pool() {
	// README start
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	jobs, err := postgres.Open(ctx, postgres.Config{Pool: pool, Schema: "jobs"})
	must(err)
	db := stdlib.OpenDBFromPool(pool) // if other parts of the program use database/sql
	// README end
	_, _ = jobs, db
}
