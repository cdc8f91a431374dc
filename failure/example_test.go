package failure_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// Decide turns the outcome of an attempt into a decision with its reason.
func ExampleDecide() {
	rules := failure.Rules{Policy: failure.Policy{MaxAttempts: 3, Backoff: failure.Fixed(time.Minute)}}
	first := failure.Decide(rules, store.Lease{}, failure.Outcome{Err: &failure.HTTPError{Status: 503}})
	fmt.Println(first.To, first.Delay, first.Failure.Code)

	third := store.Lease{Job: holdfast.Job{Failures: 2}}
	last := failure.Decide(rules, third, failure.Outcome{Err: &failure.HTTPError{Status: 503}})
	fmt.Println(last.To, last.Failure.Code)
	// Output:
	// queued 1m0s DEPENDENCY_DOWN
	// failed DEPENDENCY_DOWN
}

func ExampleNewHTTPError() {
	answer := http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"90"}}}
	err := failure.NewHTTPError(answer.StatusCode, answer.Header, errors.New("quota used up"))
	fmt.Println(err, err.RetryAfter)
	// Output: HTTP status 429: quota used up 1m30s
}

// A rule gives the errors of a program their codes.
func ExampleChain() {
	errPaper := errors.New("out of paper")
	rule := failure.Chain(
		failure.ByError(errPaper, "PRINTER_EMPTY"),
		failure.ByTimeout("PRINTER_SLOW"),
	)
	class, ok := rule(fmt.Errorf("page 7: %w", errPaper))
	fmt.Println(class.Code, ok)
	// Output: PRINTER_EMPTY true
}

// A program defines its own codes, with the message that users see.
func ExampleNewTaxonomy() {
	codes, err := failure.NewTaxonomy(failure.Code{
		Name: "PRINTER_EMPTY", Category: "dependency", Message: "The printer has no paper.", Remedy: "Put paper into the printer.",
		HTTPStatus: 503, Retryable: true, Blame: failure.BlameDependency,
	})
	if err != nil {
		panic(err)
	}
	code, ok := codes.Code("PRINTER_EMPTY")
	fmt.Println(code.Message, ok)
	// Output: The printer has no paper. true
}

func ExampleExponential() {
	backoff := failure.Exponential{Base: time.Second, Factor: 2, Cap: time.Minute}
	for attempt := 1; attempt <= 4; attempt++ {
		fmt.Print(backoff.Delay(attempt, 0), " ")
	}
	fmt.Println()
	// Output: 1s 2s 4s 8s
}

// Marks are instructions that a handler puts on its error.
func ExampleNeverRetry() {
	err := failure.NeverRetry(failure.WithCode(errors.New("no such account"), "INVALID_INPUT"))
	verdict := failure.Decide(failure.Rules{}, store.Lease{}, failure.Outcome{Err: err})
	fmt.Println(verdict.To, verdict.Failure.Code)
	// Output: failed INVALID_INPUT
}
