// Package holdfast is a background-job engine that is built around failure: every failed job has one code, one decision and one
// visible history.
//
// This package has what every program needs: a [Draft] is a job before it is stored, and [Enqueue] makes it durable as a [Job].
//
//	type Welcome struct{ Email string }
//
//	func (Welcome) Kind() string { return "welcome" }
//
//	jobs, err := anystore.Open(ctx, "jobs.db") // or postgres://user@host/name
//	receipt, err := holdfast.Enqueue(ctx, jobs, Welcome{Email: "ada@example.org"}, func(d *holdfast.Draft) {
//		d.Queue, d.Delay = "mail", time.Minute
//	})
//
// Other packages do the work:
//
//   - engine claims jobs, runs handlers and settles attempts;
//   - failure decides what happens after an attempt: complete, retry or fail for good;
//   - store defines what a store does; store/sqlite and store/postgres do it, store/anystore opens either;
//   - ops is what operators and their tools use: explain, retry, cancel, pause, redrive;
//   - client does the same through a server.
//
// # Guarantees
//
// A store acknowledges a job after it is durable. Each claim gives the job a new token, and the store refuses a result with an
// old token, so the result of a worker that lost its lease is never applied. A handler may run more than once for the same job:
// write handlers so that a repeated run is harmless.
//
// # Errors
//
// Errors that stores return wrap one of [ErrInvalid], [ErrNotFound], [ErrPurged], [ErrConflict], [ErrLeaseLost],
// [ErrThrottled] and [ErrUnavailable]. Test for them with [errors.Is].
package holdfast
