package store

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Names of events of jobs. Other events have names in plain words, such as "manual retry": actions of people, and
// events of groups, breakers and duties.
const (
	EventQueued     = "queued"     // enqueued
	EventProcessing = "processing" // claimed
	EventReclaimed  = "reclaimed"  // taken over after its worker stopped renewing the lease
	EventRetry      = "retry"      // the attempt failed or its worker was lost; the job is queued for another attempt
	EventReleased   = "released"   // released at no cost: shutdown, snooze or hold
	EventComplete   = "complete"
	EventFailed     = "failed"
	EventBenign     = "benign"  // failed with a benign failure; written to the feed while a listener asks for failed
	EventExpired    = "expired" // a job failed because no attempt could start in time; a group reached its expiry; an artifact was removed
	EventCancelled  = "cancelled"
)

// An Event is one thing that happened to a job or to another subject. In the feed, events have consecutive numbers.
type Event struct {
	Seq int64 `json:"seq,omitempty"` // number in the feed: consecutive, and the same for every reader

	Job     holdfast.ID `json:"job,omitzero"`
	Subject string      `json:"subject,omitempty"` // set when the event is not about a job: "group/<id>", "breaker/gateway", "hold/queue/mail", "redrive/<id>", "error/<fingerprint>", "duty/promote", "schedule/<name>", "subscription/<id>", "retention", "policy"

	At         time.Time `json:"at"`
	Name       string    `json:"name"` // one of the constants above, or words: manual retry, cancel, discard, redrive, deadline missed; open, ready, paused, ...
	Actor      string    `json:"actor,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Request    string    `json:"request,omitempty"` // id of the request in which a person asked for the change
	Token      int       `json:"token"`             // of the job at that time
	Generation int       `json:"generation"`        // of the job or group after the event
	// Was holds the values that an edit or a redrive replaced, as a JSON object: args, queue, priority, tags, max_attempts,
	// due_at. It is set in the history of a job, not in the feed.
	Was json.RawMessage `json:"was,omitempty"`

	// The following fields are set for jobs, in the feed.

	Kind    string            `json:"kind,omitempty"`
	Queue   string            `json:"queue,omitempty"`
	Owner   string            `json:"owner,omitempty"` // of the job or group
	Group   holdfast.ID       `json:"group,omitzero"`
	Attempt int               `json:"attempt,omitempty"` // number of the attempt that ended, in this generation
	Took    time.Duration     `json:"took,omitempty"`
	DueAt   time.Time         `json:"due_at,omitzero"` // with retry and released: when the next attempt may start
	Code    string            `json:"code,omitempty"`
	Message string            `json:"message,omitempty"`
	Context map[string]string `json:"context,omitempty"` // http_status, exit_code, ...; for a group: its name
}

// A Listener says which job events to write to the feed. Job events that no listener asks for are not written and cost
// nothing. Events of other subjects, and actions of people, are always written.
type Listener struct {
	Name   string   // of the listener: "subscription/<id>", "group", ...
	Events []string // names of events; "*" for all; empty: stop listening
}

// A Feed is one page of events, in order.
type Feed struct {
	Events []Event `json:"events"`
	Next   int64   `json:"next"` // continue after this number
	Head   int64   `json:"head"` // number of the newest event
	// Purged is the number of the last event that retention has deleted. A reader that continues after an older number has
	// missed events; Missed says how many.
	Purged int64 `json:"purged,omitempty"`
	Missed int64 `json:"missed,omitempty"`
}
