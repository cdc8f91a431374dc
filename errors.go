package holdfast

import (
	"errors"
	"time"
)

// Errors that requests return, wrapped in an *Error. The HTTP API, the command and the console each translate them in one
// table (status, exit code, page text) and do not look at the cause.
var (
	// ErrInvalid: the request is malformed. Repeating it unchanged fails again.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: the job or other thing does not exist, or it belongs to another owner. Callers cannot distinguish
	// the two cases.
	ErrNotFound = errors.New("not found")
	// ErrPurged: the job existed and retention has deleted it.
	ErrPurged = errors.New("purged")
	// ErrConflict: the request is valid but does not fit the current state in the store.
	ErrConflict = errors.New("conflict")
	// ErrLeaseLost: the caller no longer holds the lease. What it reported is recorded as a late attempt and changes
	// nothing.
	ErrLeaseLost = errors.New("lease lost")
	// ErrThrottled: the caller sent too many requests. Error.RetryAfter says when to try again.
	ErrThrottled = errors.New("throttled")
	// ErrUnavailable: the store could not be reached or cannot serve (locked, read-only, full, or of a newer version).
	ErrUnavailable = errors.New("unavailable")
)

// An Error is one of the errors above with a message that says what happened and what to do.
type Error struct {
	Err     error  // one of the errors above
	Message string // one line for people; never contains a path, a password or a stack
	Job     ID     // the job that caused the conflict, if there is one
	Cause   error  // the underlying error, for errors.Is and logs

	RetryAfter time.Duration // with ErrThrottled: try again after this time
}

// Error returns Message. Cause is left out, because it may contain details that are not for users.
func (e *Error) Error() string { return e.Message }

// Unwrap returns Err and, if set, Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

func invalid(message string) error { return &Error{Err: ErrInvalid, Message: message} }
