// Package inspect reads jobs, once for every store.
//
// It knows the tables of the schema and nothing about a driver: a store passes it a Querier and receives a whole
// holdfast.Inspector in return.
package inspect

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The two dialects of a Querier.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// A Querier runs reads for the Inspector.
//
// Statements use $1, $2 and so on for their arguments in both dialects, and may use one argument in several places. An
// argument is a holdfast.ID, time.Time, string, int, bool or nil; the Querier converts it to what its database stores.
type Querier interface {
	// Query runs one statement and calls each for every row, in order. The row is valid only during the call. An error
	// from each ends the read and is returned unchanged.
	Query(ctx context.Context, sql string, args []any, each func(Row) error) error

	// Now returns the time of the store's clock.
	Now(ctx context.Context) (time.Time, error)
}

// A WholeQuerier is a Querier whose database must be told that a statement reads whole tables. It plans other
// statements so that they find the first rows by a key, and with such a plan the time for reading all rows grows with
// their square.
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

// A Row is one row of a result; columns are counted from zero. Times, ids and arrays of text arrive in Go's types
// whatever the database stores, and JSON arrives as Text. NULL, and any value of another type than asked for, reads as
// the zero value: a damaged row never panics.
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
