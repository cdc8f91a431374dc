// Package soak says how deep the tests search. `make test` runs counts at which the tests still catch every known defect (internal/mutants). `make soak` sets TEST_SOAK=1,
// and the same tests run longer sequences, fill larger tables and inject more faults.
package soak

import "os"

// variable does not begin with HOLDFAST_, because the programs under test refuse settings that they do not know.
const variable = "TEST_SOAK"

// Deep reports whether the tests run their large counts.
func Deep() bool { return os.Getenv(variable) != "" }

// Pick returns the count of a test: normal in `make test`, deep in `make soak`. What is counted is the first argument, because `make soak` lists all calls of Pick: each call
// is on one line, with constants.
func Pick(_ string, normal, deep int) int {
	if Deep() {
		return deep
	}
	return normal
}
