package failure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// An HTTPError is an HTTP answer with an error status. Rules classify it by the status.
type HTTPError struct {
	Status     int
	RetryAfter time.Duration // the wait that the answer asked for; 0: it asked for none
	Err        error         // the cause; may be nil
}

// NewHTTPError returns the error of an HTTP answer: resp.StatusCode, resp.Header and the cause, which may be nil. Retry-After may
// be a number of seconds or a date. A date is compared with the answer's own Date, so that the two clocks need not agree; without
// one it is ignored.
func NewHTTPError(status int, header interface{ Get(key string) string }, cause error) *HTTPError {
	now, _ := parseHTTPDate(header.Get("Date"))
	after, _ := parseRetryAfter(header.Get("Retry-After"), now)
	return &HTTPError{Status: status, RetryAfter: after, Err: cause}
}

func (e *HTTPError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("HTTP status %d", e.Status)
	}
	return fmt.Sprintf("HTTP status %d: %v", e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *HTTPError) Unwrap() error { return e.Err }

// StatusCode returns the HTTP status.
func (e *HTTPError) StatusCode() int { return e.Status }

// parseRetryAfter parses a Retry-After header: whole seconds, or an HTTP date counted from now. A date in the past means no
// wait. With a zero now dates are not understood. The result is between 0 and check.MaxDelay.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
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
	if at, ok := parseHTTPDate(value); ok && !now.IsZero() {
		return clampDelay(at.Sub(now)), true
	}
	return 0, false
}

// parseHTTPDate parses a date in one of the three forms that HTTP allows.
func parseHTTPDate(value string) (at time.Time, ok bool) {
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, true
		}
	}
	return at, false
}

// An ExitError is a program that ended with an exit code. Rules classify it by the code. An *exec.ExitError is understood too.
type ExitError struct {
	Code int
	Err  error // the cause; may be nil
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return fmt.Sprintf("exit code %d: %v", e.Code, e.Err)
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the exit code.
func (e *ExitError) ExitCode() int { return e.Code }

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
		if e, ok := e.(*HTTPError); ok {
			after = clampDelay(e.RetryAfter)
		}
		return after == 0
	})
	return after
}
