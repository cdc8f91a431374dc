// Package inspect answers questions about jobs, once for every store.
//
// It knows the tables of the schema and nothing about a driver: a store lends
// it a Querier and receives a whole holdfast.Inspector in return.
package inspect

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The two dialects a Querier may speak.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Querier runs reads for the Inspector.
//
// Statements use $1, $2 and so on for their arguments in both dialects, and may
// use one argument in several places. An argument is a holdfast.ID, time.Time,
// string, int, bool or nil; the Querier turns it into what its database stores.
type Querier interface {
	// Query runs one statement and calls each for every row, in order. The row
	// is only valid during the call. An error from each ends the reading and
	// is returned as it is.
	Query(ctx context.Context, sql string, args []any, each func(Row) error) error

	// Now tells the time of the store's own clock.
	Now(ctx context.Context) (time.Time, error)
}

// A WholeQuerier is a Querier whose database has to be told that a statement
// reads whole tables: it plans other statements so that they find the first
// rows by a key, and such a plan takes time by the square of the rows when all
// of them are wanted.
type WholeQuerier interface {
	QueryWhole(ctx context.Context, sql string, args []any, each func(Row) error) error
}

// whole runs a statement that reads whole tables.
func (i *Inspector) whole(ctx context.Context, sql string, args []any, each func(Row) error) error {
	if q, ok := i.q.(WholeQuerier); ok {
		return q.QueryWhole(ctx, sql, args, each)
	}
	return i.q.Query(ctx, sql, args, each)
}

// Row is one row of an answer; columns are counted from zero. Times, ids and
// arrays of text arrive in Go's own types whatever the database stores, and
// JSON arrives as Text. NULL, and any value that is not of the asked type,
// reads as the zero value: a damaged row never panics.
type Row interface {
	Null(i int) bool
	ID(i int) holdfast.ID
	Text(i int) string
	Int(i int) int
	Float(i int) float64
	Bool(i int) bool
	Time(i int) time.Time
	Texts(i int) []string
}
