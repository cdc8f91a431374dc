// Package refusal is the answer to a request that cannot be served: a code of the table, an HTTP status and one line for the client. Every package that answers requests
// returns its refusals as an Error; Of translates all other errors, in one place.
package refusal

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// RetryAfter is how long clients wait while a part of FetchBox does not work.
const RetryAfter = 5 * time.Second

// An Error is the answer to a request that cannot be served. A zero status or line is taken from the code.
type Error struct {
	Code     string
	Status   int
	Line     string             // the message
	After    time.Duration      // Retry-After
	Problems *manifest.Problems // of a manifest
	Cause    error              // for the log
}

// Error is for the log; clients see the line.
func (e Error) Error() string {
	if e.Cause != nil {
		return e.Code + ": " + e.Cause.Error()
	}
	return e.Code + ": " + e.Line
}

// Unwrap returns the cause.
func (e Error) Unwrap() error { return e.Cause }

// HTTPStatus returns the status of the answer.
func (e Error) HTTPStatus() int { return cmp.Or(e.Status, code.Of(e.Code).HTTPStatus) }

// Refusals that several packages give.
var (
	NoSuchPath = Error{Code: code.ValidationNotFound, Line: "There is nothing at this path. The README lists the paths of the API."}
	NoSuchJob  = Error{Code: code.ValidationNotFound, Line: "There is no such job. Check the id; records are deleted after RETENTION_RECORD."}
)

// Invalid refuses a request because of the value of a field.
func Invalid(line string) Error { return Error{Code: code.ValidationInvalidField, Line: line} }

// Of returns the answer for any error.
func Of(err error) Error {
	var answer Error
	refused := (*holdfast.Error)(nil)
	switch {
	case errors.As(err, &answer):
		return answer
	case !errors.As(err, &refused):
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return NoSuchJob
	case errors.Is(err, holdfast.ErrInvalid):
		return Invalid(refused.Message)
	case errors.Is(err, holdfast.ErrConflict):
		return Error{Code: code.ValidationConflict, Line: refused.Message}
	case errors.Is(err, holdfast.ErrUnavailable):
		return Error{Code: code.StorageUnavailable, After: RetryAfter, Cause: err}
	}
	return Error{Code: code.SystemError, Cause: err}
}

// Ledger returns the answer when the ledger cannot be read.
func Ledger(err error) error {
	return Error{Code: code.StorageLedgerError, After: RetryAfter, Cause: err}
}

// Stream returns the answer when a dead letter, or the stream, cannot be read.
func Stream(err error) error {
	if errors.Is(err, deadletter.ErrNotFound) {
		return Error{Code: code.ValidationNotFound, Line: "There is no dead letter with this sequence number."}
	}
	return Error{Code: code.StorageStreamError, After: RetryAfter, Cause: err}
}

// Cancel returns the answer when a job cannot be cancelled.
func Cancel(err error) error {
	return inConflict(err, "Every resource of this job has ended: there is nothing to cancel.")
}

// Retry returns the answer when the failed resources of a job cannot be retried.
func Retry(err error) error {
	return inConflict(err, "No resource of this job is failed: there is nothing to retry.")
}

// RetryResource returns the answer when a resource, which had a state before, cannot be retried.
func RetryResource(state holdfast.State, err error) error {
	return inConflict(err, "This resource is "+string(state)+": only a failed resource, or one that waits for its next attempt, can be retried.")
}

// inConflict words a refusal of the store for clients, who know resources and jobs, not the jobs and groups of the store.
func inConflict(err error, line string) error {
	if errors.Is(err, holdfast.ErrConflict) {
		return Error{Code: code.ValidationConflict, Line: line, Cause: err}
	}
	return err
}

// Replay returns the answer when a replay cannot be started or previewed: the store refused it, or the stream cannot be read.
func Replay(err error) error {
	if errors.As(err, new(*holdfast.Error)) {
		return err
	}
	return Stream(err)
}

// Write answers a request with an error, as JSON.
func Write(w http.ResponseWriter, e Error) {
	body := struct {
		Code     string             `json:"code"`
		Message  string             `json:"message"`
		Problems []manifest.Problem `json:"problems,omitempty"`
		Unlisted int                `json:"unlisted_problems,omitempty"`
		Request  string             `json:"request_id"`
	}{Code: e.Code, Message: cmp.Or(e.Line, code.Of(e.Code).Message), Request: web.ReplyOf(w).ID}
	if e.Problems != nil {
		body.Problems, body.Unlisted = e.Problems.List, e.Problems.Count-len(e.Problems.List)
	}
	web.SetRetryAfter(w, e.After)
	_ = web.WriteJSON(w, e.HTTPStatus(), map[string]any{"error": body}) // it always marshals
}
