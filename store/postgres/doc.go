// Package postgres remembers jobs in PostgreSQL.
//
// It keeps no session state, so it works behind a transaction pooler; it asks the database for the time and never the
// process; and every parameter travels as text with an explicit cast, so that every protocol mode of the driver, and
// database/sql, are served by the same statements. Joins that a planner could get wrong are done in Go, under locks: what
// is left to the database are walks along an index.
package postgres
