// Package holdfasttest helps programs test their jobs.
//
// Work runs a handler once, without a database, and returns what the engine made of it:
//
//	attempt := holdfasttest.Work(t, sendWelcome, Welcome{Email: "ada@example.org"})
//	attempt.RequireComplete(t)
//
// RequireEnqueued checks that a program enqueued a job, in a store or in a transaction that has not committed yet. It takes what Enqueue takes:
//
//	holdfasttest.RequireEnqueued(t, jobs.In(tx), Welcome{Email: "ada@example.org"}, func(d *holdfast.Draft) { d.Queue = "mail" })
//
// Run gives a test a store of its own and virtual time, in which Drain runs every job, with its retries, until nothing is left to run. An hour
// passes in about three seconds:
//
//	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
//		placeOrder(jobs)
//		stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) { engine.Handle(e, chargeCard) })
//		stories.Of(Charge{}.Kind())[0].RequireComplete(t)
//	})
package holdfasttest
