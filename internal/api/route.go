package api

import (
	"net/http"
	"reflect"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// A Route is one operation of the HTTP API. In is the request: its fields have the tags path, query or header; a field named Body is the JSON body. Out is
// the JSON of the answer.
//
// A key that is bound to an owner may only call routes that name a job, a group or an owner: In must be a JobNamer, a GroupNamer or a Narrower. The
// server refuses all other routes to such a key.
type Route[In, Out any] struct {
	Name   string // name of the operation, such as explain-job
	Method string
	Path   string       // below /v1, with parameters in braces
	Scope  apikey.Scope // scope that the route needs; empty: any
	Also   apikey.Scope // another scope that is sufficient
	About  string       // one line for the OpenAPI document; the first sentence is the summary
	Tag    string       // section of the OpenAPI document
	Status int          // status of success; 200 when zero, 204 when Out is Nothing
	Limit  int64        // maximum body size in bytes; DefaultLimit when zero
	Long   bool         // it waits or streams: it has no deadline and does not count as a running request
	Waits  bool         // it is long if the query has the parameter wait
}

// An Operation describes a Route whose types are not known at compile time.
type Operation struct {
	Name, Method, Path string
	Scope, Also        apikey.Scope
	About, Tag         string
	Status             int
	In, Out            reflect.Type
	Bound              bool // a key that is bound to an owner may call it
}

// DefaultLimit is the maximum body size, in bytes, of routes without a Limit.
const DefaultLimit = 4 << 20

// Prefix begins the path of every route.
const Prefix = "/v1"

// Nothing is the type of an answer without a body.
type Nothing struct{}

// A JobNamer is a request about one job. A key that is bound to the job's owner may send it.
type JobNamer interface{ JobID() holdfast.ID }

// A GroupNamer is a request about one group. A key that is bound to the group's owner may send it.
type GroupNamer interface{ GroupID() holdfast.ID }

// A Narrower is a request that can be restricted to an owner. Narrow returns ErrNotFound or ErrInvalid if the request names another owner.
type Narrower interface{ Narrow(owner string) error }

// A Joiner is a request that adds jobs to groups. The groups must belong to the caller's owner.
type Joiner interface{ Joins() []holdfast.ID }

// Word has the actor and the reason of an action. If the caller has a key, its name is part of the actor.
type Word struct {
	Actor  string `json:"actor,omitempty" doc:"Name of the person who does this. The name of the key is added to it."`
	Reason string `json:"reason,omitempty" doc:"Why it is done, for the audit log."`
}

// ByID has the id of a job in the path.
type ByID struct {
	ID holdfast.ID `path:"id" doc:"Id of the job."`
}

// JobID returns the job that the request is about.
func (b ByID) JobID() holdfast.ID { return b.ID }

// An Announcer is an answer that sets headers.
type Announcer interface{ Announce(h http.Header) }

// A Pager is an answer that may have a next page.
type Pager interface{ NextCursor() string }

// Paged is part of every answer that may have a next page.
type Paged struct {
	Cursor string `json:"cursor,omitempty" doc:"Cursor of the next page; missing on the last page."`
}

// NextCursor is the cursor of the next page; empty on the last.
func (p Paged) NextCursor() string { return p.Cursor }
