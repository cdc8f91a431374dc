package holdfast

import (
	"encoding/json"
	"time"
)

// Names of what befalls a job, as the feed tells it. Whatever else has a name is written in words: what people did, what became of
// groups, breakers and duties.
const (
	EventQueued     = "queued"     // enqueued
	EventProcessing = "processing" // claimed
	EventReclaimed  = "reclaimed"  // taken over from a worker that went silent
	EventRetry      = "retry"      // failed, or lost its worker, and goes round again
	EventReturned   = "returned"   // handed back for free: a stop, a snooze, a hold
	EventComplete   = "complete"
	EventFailed     = "failed"
	EventBenign     = "benign"  // failed, as was to be expected: written to the feed while a listener asks for failed
	EventExpired    = "expired" // failed because it could not start in time; of a group: its time was up; of an artifact: it is gone
	EventCancelled  = "cancelled"
)

// An Event is one line of a story: of a job, or of something else that has one. In the feed it has a number, and says what it is about.
type Event struct {
	Seq int64 `json:"seq,omitempty"` // its place in the feed: consecutive, and the same for every reader

	Job     ID     `json:"job,omitzero"`
	Subject string `json:"subject,omitempty"` // when it is no job's: "group/<id>", "breaker/gateway", "hold/queue/mail", "redrive/<id>", "error/<fingerprint>", "duty/promote", "schedule/<name>", "subscription/<id>", "retention", "policy"

	At         time.Time `json:"at"`
	Name       string    `json:"name"` // one of the names above, or words: manual retry, cancel, discard, redrive, breach; opened, ready, paused, ...
	Actor      string    `json:"actor,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Request    string    `json:"request,omitempty"` // the id of the request in which a person asked for it
	Token      int       `json:"token"`             // the job's at that time
	Generation int       `json:"generation"`        // the job's or the group's after it
	// Was is what an edit or a redrive replaced in its job, as a JSON object of the former values: args, queue, priority, tags, max_attempts, due_at. The
	// history of a job has it; the feed does not.
	Was json.RawMessage `json:"was,omitempty"`

	// Of a job, in the feed.
	Kind    string            `json:"kind,omitempty"`
	Queue   string            `json:"queue,omitempty"`
	Owner   string            `json:"owner,omitempty"` // of the job or the group
	Group   ID                `json:"group,omitzero"`
	Attempt int               `json:"attempt,omitempty"` // its number in this generation, when one ended
	Took    time.Duration     `json:"took,omitempty"`
	DueAt   time.Time         `json:"due_at,omitzero"` // with retry and returned: the next start
	Code    string            `json:"code,omitempty"`
	Message string            `json:"message,omitempty"`
	Context map[string]string `json:"context,omitempty"` // http_status, exit_code, ...; of a group: its name
}

// A Listener says which events of jobs somebody wants written to the feed. What nobody listens for costs nothing. Events that are
// no job's, and what people do, are always in it.
type Listener struct {
	Name   string   // who: "subscription/<id>", "group", ...
	Events []string // of the names above; "*" for all; none: does not listen any more
}

// A Feed is a stretch of what happened, in order.
type Feed struct {
	Events []Event `json:"events"`
	Next   int64   `json:"next"` // read on after this
	Head   int64   `json:"head"` // the number of the newest event
	// Purged is the number of the last event that retention has deleted. Who reads on after an older one has missed something:
	// Missed says how many.
	Purged int64 `json:"purged,omitempty"`
	Missed int64 `json:"missed,omitempty"`
}
