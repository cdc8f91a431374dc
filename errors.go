package holdfast

import (
	"errors"
	"time"
)

// What can go wrong in answer to a request. Each face translates these once, in one table (HTTP status, exit code, page
// text), and never looks deeper.
var (
	// ErrInvalid: the request cannot mean anything as it stands; asking again without changing it will fail again.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: no such job, or it is not the asker's: the two are told apart by nobody.
	ErrNotFound = errors.New("not found")
	// ErrPurged: there was one, and retention has deleted it.
	ErrPurged = errors.New("purged")
	// ErrConflict: the request is sound, and what the store holds stands against it.
	ErrConflict = errors.New("conflict")
	// ErrLeaseLost: the job is in other hands by now. What the caller did is kept as evidence and changes nothing.
	ErrLeaseLost = errors.New("lease lost")
	// ErrThrottled: the asker has asked too often. Error.RetryAfter says when to come back.
	ErrThrottled = errors.New("throttled")
	// ErrUnavailable: the store could not be asked, or refused to serve (locked, read-only, full, too new).
	ErrUnavailable = errors.New("unavailable")
)

// An Error says what went wrong in a sentence that tells the reader what to do.
type Error struct {
	Kind    error  // one of the sentinels above
	Message string // one line, for people; never a path, a password or a stack
	Job     ID     // the job that stands in the way, if one does
	Cause   error  // what lay underneath, for errors.Is and the log

	RetryAfter time.Duration // with ErrThrottled: ask again after this
}

// Error is the message; the cause is for the log, not for people.
func (e *Error) Error() string { return e.Message }

// Unwrap leads to the sentinel and to the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
