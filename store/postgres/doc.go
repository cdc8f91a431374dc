// Package postgres stores jobs in PostgreSQL.
//
// The package keeps no session state, so it works behind a transaction pooler: locks and settings end with their transaction, and statements are
// prepared by name only on connections that lead directly to the database. All times come from the database's clock, never from the process. Every
// parameter is sent as text with an explicit cast, so the same statements work in every protocol mode of the driver and through database/sql. Joins
// that a planner could get wrong are done in Go, under locks; the statements that remain read rows in index order.
package postgres
