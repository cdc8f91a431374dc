// Package chaos proves that nothing is lost, by trying to lose it.
//
// A run starts real worker and producer processes on a real store, kills, stops and interrupts them, breaks the
// database under them, then heals, lets everything drain and looks at what is left. Every process writes down what it
// saw in a journal of its own, so that the verdict rests on what the store answered then, not on what it says of itself
// afterwards.
package chaos
