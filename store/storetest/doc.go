// Package storetest proves that a store keeps the promises of package holdfast.
//
// [Laws] is a table of sentences, each with a check; [Check] drives a store and a pure model of it with the same random
// sequences and compares everything that can be seen after every step. Both know stores only by their interface: a store
// that wants to be believed runs both from its own tests, through a [Harness]. [Faulty] breaks a store on purpose, for the
// tests of those who use one.
package storetest
