package failure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// httpError is an HTTP answer with an error status.
type httpError struct {
	status int
	after  time.Duration
	cause  error
}

// HTTPError returns an error with an HTTP status and the wait of a Retry-After header, so that rules can classify it. A
// Retry-After in seconds is understood; for one that is a date use HTTPErrorAt. The cause may be nil.
func HTTPError(status int, retryAfter string, cause error) error {
	return HTTPErrorAt(status, retryAfter, time.Time{}, cause)
}

// HTTPErrorAt is HTTPError for a Retry-After that may be a date. The wait is counted from now; take now from the answer's Date
// header, so that the two clocks need not agree.
func HTTPErrorAt(status int, retryAfter string, now time.Time, cause error) error {
	after, _ := ParseRetryAfter(retryAfter, now)
	return &httpError{status: status, after: after, cause: cause}
}

func (e *httpError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("HTTP status %d", e.status)
	}
	return fmt.Sprintf("HTTP status %d: %v", e.status, e.cause)
}

func (e *httpError) Unwrap() error   { return e.cause }
func (e *httpError) StatusCode() int { return e.status }

// ParseRetryAfter parses a Retry-After header: whole seconds, or an HTTP date counted from now. A date in the past means no
// wait. With a zero now dates are not understood. The result is between 0 and holdfast.MaxDelay.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 64 {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > math.MaxInt64/int64(time.Second) {
			return clampDelay(math.MaxInt64), true
		}
		return clampDelay(time.Duration(seconds) * time.Second), true
	}
	if now.IsZero() {
		return 0, false
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if at, err := time.Parse(layout, value); err == nil {
			return clampDelay(at.Sub(now)), true
		}
	}
	return 0, false
}

// exitError is a program that ended with an exit code.
type exitError struct {
	code  int
	cause error
}

// ExitError returns an error with the exit code of a program. The cause may be nil. An *exec.ExitError is understood without
// wrapping.
func ExitError(code int, cause error) error { return &exitError{code: code, cause: cause} }

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return fmt.Sprintf("exit code %d: %v", e.code, e.cause)
}

func (e *exitError) Unwrap() error { return e.cause }
func (e *exitError) ExitCode() int { return e.code }

// httpStatus finds an HTTP status in an error chain, by the methods that errors of HTTP clients commonly have.
func httpStatus(err error) (status int, found bool) {
	walk(err, func(e error) bool {
		switch e := e.(type) {
		case interface{ StatusCode() int }:
			status = e.StatusCode()
		case interface{ HTTPStatusCode() int }:
			status = e.HTTPStatusCode()
		}
		found = status >= 100 && status <= 599
		return !found
	})
	return status, found
}

// exitCode finds a program's exit code in an error chain. It is -1 for a program that a signal ended.
func exitCode(err error) (code int, found bool) {
	walk(err, func(e error) bool {
		if e, ok := e.(interface{ ExitCode() int }); ok {
			code, found = e.ExitCode(), true
		}
		return !found
	})
	return code, found
}

// askedToWait returns the wait that the dependency asked for with Retry-After.
func askedToWait(err error) (after time.Duration) {
	walk(err, func(e error) bool {
		if e, ok := e.(*httpError); ok {
			after = e.after
		}
		return after == 0
	})
	return after
}
