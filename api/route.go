package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// A Route is one thing that can be asked over HTTP. In holds what goes in, by the tags of its fields (path, query, header; a field named Body is
// the JSON body); Out is the JSON that comes back.
//
// Keys that are bound to an owner may ask what is about that owner alone: In says what it is about by being a JobNamer, a GroupNamer or a
// Narrower. Whatever else they ask is forbidden.
type Route[In, Out any] struct {
	Name   string // of the operation, such as explain-job
	Method string
	Path   string       // below /v1, with names in braces
	Scope  apikey.Scope // who may ask; empty: everybody who may ask at all
	Also   apikey.Scope // and who else
	About  string       // one line, for the document
	Tag    string       // the chapter it belongs to
	Status int          // when all went well; 200 when zero, 204 when Out is Nothing
	Limit  int64        // bytes of the body; DefaultLimit when zero
	Long   bool         // it waits for something to happen, or streams: it is not hurried, and takes no place among those that run
}

// DefaultLimit is how many bytes a body may have where a route does not say.
const DefaultLimit = 4 << 20

// Prefix is where all routes are.
const Prefix = "/v1"

// Nothing comes back: the answer has no body.
type Nothing struct{}

// A JobNamer is about one job: whoever it belongs to may ask.
type JobNamer interface{ JobID() holdfast.ID }

// A GroupNamer is about one group: whoever it belongs to may ask.
type GroupNamer interface{ GroupID() holdfast.ID }

// A Narrower can be narrowed to what belongs to an owner. It refuses, with ErrNotFound or ErrInvalid, when it asks for somebody else's.
type Narrower interface{ Narrow(owner string) error }

// A Joiner puts jobs into groups, which must belong to whoever does so.
type Joiner interface{ Joins() []holdfast.ID }

// Word is what people say about what they do. Who they are is decided by their key, if they have one.
type Word struct {
	Actor  string `json:"actor,omitempty"`  // who does this, on whose key it is done
	Reason string `json:"reason,omitempty"` // why, for whoever asks
}

// ByID names one job, in the path.
type ByID struct {
	ID holdfast.ID `path:"id" doc:"the job"`
}

// JobID makes it the affair of the job's owner.
func (b ByID) JobID() holdfast.ID { return b.ID }

// An Announcer is an answer with headers of its own.
type Announcer interface{ Announce(h http.Header) }

// A Pager is an answer that may have a next page.
type Pager interface{ NextCursor() string }

// Paged is part of every answer that may have a next page.
type Paged struct {
	Cursor string `json:"cursor,omitempty"` // leads to the next page; none on the last
}

// NextCursor leads to the next page.
func (p Paged) NextCursor() string { return p.Cursor }
