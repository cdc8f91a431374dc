// Package archtest is the plan of this repository as a test. It knows which room may lean on which and why, how big things
// may grow, and which words are ours. When it fails, the message says what to do; when the plan itself has to change,
// the table here is the place, with the reason beside it.
package archtest
