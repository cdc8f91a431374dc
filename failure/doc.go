// Package failure decides what becomes of an attempt, and is the only place that does.
//
// An [Outcome] goes in, a [Verdict] comes out of [Decide]: complete, queued again after a delay, or failed for good, with
// the reason in a sentence. On the way an error is given a [Code] of the [Taxonomy] by the marks its handler put on it and
// by a chain of [Rule] values, and a record is made of it that is safe to keep and to show.
//
// The package is pure. It reads no clock, does no I/O, starts no goroutine and draws no random number: age and chance are
// fields of the outcome, so the same outcome always gets the same verdict.
package failure
