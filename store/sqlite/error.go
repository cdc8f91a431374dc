package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"zombiezen.com/go/sqlite"
)

var errClosed = &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the store is closed: open it again"}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

func conflict(job holdfast.ID, format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf(format, args...), Job: job}
}

// messages says, for each SQLite result code, what happened and what to do about it.
var messages = map[sqlite.ResultCode]string{
	sqlite.ResultBusy:       "the database is locked by another process, or by an open transaction of this one: let it finish, or end it, and try again",
	sqlite.ResultLocked:     "the database is locked by another process, or by an open transaction of this one: let it finish, or end it, and try again",
	sqlite.ResultProtocol:   "the database is locked by another process, or by an open transaction of this one: let it finish, or end it, and try again",
	sqlite.ResultReadOnly:   "the database is read-only: give this user write permission on the file and on its directory",
	sqlite.ResultPerm:       "the database may not be opened: give this user read and write permission on the file and on its directory",
	sqlite.ResultAuth:       "the database may not be opened: give this user read and write permission on the file and on its directory",
	sqlite.ResultCantOpen:   "the database cannot be opened: check that its directory exists, that this user may write there, and that it is a file",
	sqlite.ResultFull:       "the disk is full: free some space; nothing of this call was written, and the next one will work without a restart",
	sqlite.ResultIOErr:      "the disk could not be read or written: check its health and free space; nothing of this call was acknowledged",
	sqlite.ResultNoMem:      "there is not enough memory for the database: free some, or give this process more",
	sqlite.ResultCorrupt:    "the database file is damaged: stop all workers and restore it from a backup",
	sqlite.ResultNotADB:     "the file is not an SQLite database: give the path of another file",
	sqlite.ResultConstraint: "rows in the database contradict each other: run `holdfast doctor` to list them",
	sqlite.ResultTooBig:     "a value is too large for the database",
	sqlite.ResultInterrupt:  "the call was cancelled before the database answered",
}

// explain turns a database error into a *holdfast.Error with one sentence for people. An error that already is one is
// returned unchanged, so explain may be applied more than once.
func explain(err error) error {
	if known := (*holdfast.Error)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the call was cancelled before the database answered", Cause: err}
	}
	message, known := messages[sqlite.ErrCode(err).ToPrimary()]
	if !known {
		message = fmt.Sprintf("the database returned an error: %v", err)
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: message, Cause: err}
}

// locked returns the error of a call that ended, because of err, while another connection held the lock.
func locked(err error) error {
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: messages[sqlite.ResultBusy], Cause: err}
}

// busy reports whether another connection holds the lock. The caller may try again.
func busy(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultProtocol:
		return err != nil
	}
	return false
}

// broken reports whether the connection can no longer be trusted. The next call opens another one.
func broken(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultIOErr, sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultNoMem,
		sqlite.ResultMisuse, sqlite.ResultInternal:
		return err != nil
	}
	return false
}

// violatesConstraint reports whether a row violates a constraint of the schema.
func violatesConstraint(err error) bool {
	return err != nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint
}
