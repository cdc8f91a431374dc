// Package holdfast defines the types and interfaces of a background-job engine that is built around failure.
//
// A [Draft] is a job before it is stored. [Enqueue] makes it durable as a [Job]. A worker claims due jobs and holds each
// under a [Lease], a right to run it for a limited time. When the attempt ends, the worker reports the result as a
// [Settlement], and the store ends the lease and moves the job to its next state in one transaction. A [Store] is the only
// place where jobs change.
//
//	type Welcome struct{ Email string }
//
//	func (Welcome) Kind() string { return "welcome" }
//
//	jobs, err := store.Open(ctx, "jobs.db") // or postgres://user@host/name
//	receipt, err := holdfast.Enqueue(ctx, jobs, Welcome{Email: "ada@example.org"}, func(d *holdfast.Draft) {
//		d.Queue, d.Delay = "mail", time.Minute
//	})
//
// This package holds no logic besides the validation of its own types. Four other packages act on them:
//
//   - failure decides what happens after an attempt: complete, retry or fail for good;
//   - engine claims jobs, runs handlers and settles attempts;
//   - store keeps jobs in an SQLite file or a PostgreSQL database;
//   - ops is what operators and their tools use: explain, retry, cancel, pause, redrive.
//
// # Guarantees
//
// A store acknowledges a job after it is durable. Each claim gives the job a new token, and the store refuses a settlement
// with an old token, so the result of a worker that lost its lease is never applied. A handler may run more than once
// for the same job: write handlers so that a repeated run is harmless.
//
// # Errors
//
// Errors that stores return wrap one of [ErrInvalid], [ErrNotFound], [ErrPurged], [ErrConflict], [ErrLeaseLost],
// [ErrThrottled] and [ErrUnavailable]. Test for them with [errors.Is].
package holdfast
