// Package chaos tests the guarantees of stores and engines by injecting faults.
//
// A run starts real worker and producer processes on a real store. It kills, stops and interrupts them and breaks the
// database. Then it ends the faults, waits until every job has ended, and verifies the result. Every process records in
// a journal what it asked and what the store answered. The verification compares the store with these journals, so it
// does not rely on what the store reports about itself afterwards.
package chaos
