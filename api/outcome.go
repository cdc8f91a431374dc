package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Ways in which an attempt can end, as a worker tells it.
const (
	OutcomeComplete   = "complete"
	OutcomeFailed     = "failed"
	OutcomeTimedOut   = "timed_out"  // its time was up
	OutcomeCrashed    = "crashed"    // the program broke: a panic, an exception nobody expected
	OutcomeThrottled  = "throttled"  // the other side asked for less: no attempt is spent
	OutcomeSnoozed    = "snoozed"    // nothing was wrong, it is only too early
	OutcomeReturned   = "returned"   // handed back for free: the worker stops, or never started it
	OutcomeCancelled  = "cancelled"  // a person asked it to stop, and it did
	OutcomeUnreadable = "unreadable" // the arguments cannot be understood
)

// An Outcome is what became of an attempt, as a worker in any language tells it. It decides nothing: how often a job is tried, and when again, is
// the policy's.
type Outcome struct {
	Batch   holdfast.ID `json:"batch" doc:"of the lease"`
	Job     holdfast.ID `json:"job" doc:"the job"`
	Token   int         `json:"token" doc:"of the lease"`
	Outcome string      `json:"outcome" enum:"complete,failed,throttled,timed_out,crashed,snoozed,returned,cancelled,unreadable" doc:"how it ended. throttled: the other side asked to come back later; the job waits for retry_after, keeps code and message in its story, and no attempt is spent. snoozed: nothing was wrong, it is only too early. returned: handed back for free, because the worker stops or never started it"`

	Took   time.Duration   `json:"took,omitempty" doc:"how long the attempt ran, such as 1.5s"`
	Result json.RawMessage `json:"result,omitempty" doc:"with complete: any JSON, up to 1 MiB"`

	Code       string            `json:"code,omitempty" doc:"of the failure, such as RATE_LIMITED; the server classifies by message, http_status and exit_code when left out"`
	Message    string            `json:"message,omitempty" doc:"what went wrong, in a line; needed when it failed"`
	Detail     string            `json:"detail,omitempty" doc:"for engineers: a stack, an output. Secrets are scrubbed"`
	HTTPStatus int               `json:"http_status,omitempty" doc:"when an HTTP call failed: its status"`
	ExitCode   *int              `json:"exit_code,omitempty" doc:"when a program failed: its exit code; -1 when a signal ended it"`
	Context    map[string]string `json:"context,omitempty" doc:"facts for the record, at most 32"`
	Dependency string            `json:"dependency,omitempty" doc:"what caused it, when it is not what the kind depends on"`

	Permanent  bool          `json:"permanent,omitempty" doc:"waiting cannot cure it: the job fails for good"`
	Benign     bool          `json:"benign,omitempty" doc:"it was to be expected: recorded, raises no alarm"`
	RetryAfter time.Duration `json:"retry_after,omitempty" doc:"try again no sooner than this; with throttled: how long to wait, by the policy's backoff when left out"`
	Hold       time.Duration `json:"hold,omitempty" doc:"nobody is to call the dependency for so long"`
	Snooze     time.Duration `json:"snooze,omitempty" doc:"with snoozed: for how long"`
}

// OutcomesIn brings outcomes.
type OutcomesIn struct {
	Body struct {
		Outcomes []Outcome `json:"outcomes" doc:"at most 10000"`
	}
}
