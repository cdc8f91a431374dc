// Package postgres remembers jobs in PostgreSQL.
//
// It works behind a transaction pooler: locks and settings end with their transaction, and statements are prepared by name
// only on connections that lead to the database itself. It asks the database for the time and never the
// process; and every parameter travels as text with an explicit cast, so that every protocol mode of the driver, and
// database/sql, are served by the same statements. Joins that a planner could get wrong are done in Go, under locks: what
// is left to the database are walks along an index.
package postgres
