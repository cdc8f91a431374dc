package api

import (
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// ErrorsIn is the request for a list of error groups.
type ErrorsIn struct {
	Fingerprint string       `query:"fingerprint" doc:"Only this error group."`
	Status      store.Status `query:"status" doc:"Only error groups with this status."`
	Code        string       `query:"code" doc:"Only error groups with this code."`
	Kind        string       `query:"kind" doc:"Only error groups seen in jobs of this kind."`
	Limit       int          `query:"limit" doc:"Page size, at most 200."`
	Cursor      string       `query:"cursor" doc:"Cursor of the previous page; leave it out for the first."`
}

// ErrorsOut is one page of error groups.
type ErrorsOut struct {
	Errors []store.ErrorGroup `json:"errors" doc:"Error groups, last seen first."`
	Paged
}

// ByFingerprint has the fingerprint of an error group in the path.
type ByFingerprint struct {
	Fingerprint string `path:"fingerprint" doc:"Fingerprint of the error group."`
}

// TriageIn is the request to set the status of an error group.
type TriageIn struct {
	ByFingerprint
	Asked
	Body TriageBody
}

// TriageBody is the new status, or a note.
type TriageBody struct {
	Word
	Status  store.Status  `json:"status,omitempty" doc:"New status: open, acknowledged, ignored or resolved. When left out, the reason is added as a note."`
	For     time.Duration `json:"for,omitempty" doc:"With ignored: for this long."`
	Count   int           `json:"count,omitempty" doc:"With ignored: until this many further failures."`
	Version string        `json:"version,omitempty" doc:"With resolved: the application version that has the fix. Failures of other versions do not reopen the error group."`
}

// The routes of error groups.
var (
	ListErrors  = Route[ErrorsIn, ErrorsOut]{Name: "list-errors", Method: "GET", Path: "/errors", Scope: apikey.Viewer, Tag: "errors", About: "List error groups. Failures with the same fingerprint, last seen first."}
	GetError    = Route[ByFingerprint, ops.ErrorGroupDetail]{Name: "get-error", Method: "GET", Path: "/errors/{fingerprint}", Scope: apikey.Viewer, Tag: "errors", About: "Get an error group. Includes what its jobs have in common, what differs, and its triage history. Errors: not_found (no such fingerprint)."}
	TriageError = Route[TriageIn, Nothing]{Name: "triage-error", Method: "POST", Path: "/errors/{fingerprint}/triage", Scope: apikey.Operator, Tag: "errors", About: "Triage an error group. Acknowledge, ignore, resolve or reopen it, or add a note. Errors: not_found (no such fingerprint)."}
)
