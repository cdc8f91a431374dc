package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// ErrorsIn asks for a list of error groups.
type ErrorsIn struct {
	Fingerprint string          `query:"fingerprint" doc:"only this one"`
	Status      holdfast.Status `query:"status" doc:"only what people have made this of"`
	Code        string          `query:"code" doc:"only of this code"`
	Kind        string          `query:"kind" doc:"only seen with this kind"`
	Limit       int             `query:"limit" doc:"how many, at most 200"`
	Cursor      string          `query:"cursor" doc:"go on after the page that gave this cursor"`
}

// ErrorsOut is a page of error groups.
type ErrorsOut struct {
	Errors []holdfast.ErrorGroup `json:"errors"`
	Paged
}

// ByFingerprint names one error group, in the path.
type ByFingerprint struct {
	Fingerprint string `path:"fingerprint" doc:"of the error group"`
}

// TriageIn is a person's word on an error group.
type TriageIn struct {
	ByFingerprint
	Asked
	Body TriageBody
}

// TriageBody says what is made of an error group.
type TriageBody struct {
	Word
	Status  holdfast.Status `json:"status,omitempty" doc:"open, acknowledged, ignored or resolved; without it the reason is a note"`
	For     time.Duration   `json:"for,omitempty" doc:"ignored: for so long"`
	Count   int             `json:"count,omitempty" doc:"ignored: until so many failures more"`
	Version string          `json:"version,omitempty" doc:"resolved: in this version of the application; failures of others do not count against it"`
}

// The routes of error groups.
var (
	ListErrors  = Route[ErrorsIn, ErrorsOut]{Name: "list-errors", Method: "GET", Path: "/errors", Scope: apikey.Viewer, Tag: "errors", About: "What goes wrong over and over, the last seen first."}
	GetError    = Route[ByFingerprint, ops.Trouble]{Name: "get-error", Method: "GET", Path: "/errors/{fingerprint}", Scope: apikey.Viewer, Tag: "errors", About: "All about one error group: what it is, what varies between its jobs, what people made of it."}
	TriageError = Route[TriageIn, Nothing]{Name: "triage-error", Method: "POST", Path: "/errors/{fingerprint}/triage", Scope: apikey.Operator, Tag: "errors", About: "Acknowledge, ignore, resolve or reopen an error group, or leave a note."}
)
