// Package storetest is the conformance suite for stores: it verifies that a store keeps the contract of package holdfast.
//
// [Laws] is a table of sentences, each with a check. [Check] runs the same random sequences on a store and on a pure model of it, and compares
// everything that is visible after every step. Both use a store only through its interface; a store runs both from its own tests, through a
// [Harness]. [Faulty] makes a store fail on purpose, for the tests of its users.
package storetest
