// Package holdfast is the vocabulary of a background-job engine that puts failure first.
//
// A job travels one way: a [Draft] is acknowledged as a [Job], a worker holds it under a [Lease], what became of the
// attempt is written as a [Settlement], and the settlement makes the next [Job]. No arrow goes back except through the
// store. This package names those things and the promises a store makes about them; it decides nothing and runs nothing.
//
// Four rooms act on this vocabulary: package failure decides, package engine runs, package store remembers and package
// ops intervenes.
package holdfast
