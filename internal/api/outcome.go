package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The outcomes of an attempt that a worker can report.
const (
	OutcomeComplete   = "complete"
	OutcomeFailed     = "failed"
	OutcomeTimedOut   = "timed_out"  // the attempt exceeded its time limit
	OutcomeCrashed    = "crashed"    // the program failed unexpectedly: a panic, an unhandled exception
	OutcomeThrottled  = "throttled"  // the dependency asked to be called later; the attempt costs nothing
	OutcomeSnoozed    = "snoozed"    // the job cannot be done yet; the attempt costs nothing
	OutcomeReleased   = "released"   // released: the worker stops, or never started it; the attempt costs nothing
	OutcomeCancelled  = "cancelled"  // a person cancelled the job, and the worker stopped it
	OutcomeUnreadable = "unreadable" // the arguments cannot be decoded
)

// An Outcome is the result of an attempt, as a worker in any language reports it. It contains no decision: the policy decides whether and when the job is
// retried.
type Outcome struct {
	Batch   holdfast.ID `json:"batch" doc:"Id of the claim batch."`
	Job     holdfast.ID `json:"job" doc:"Id of the job."`
	Token   int         `json:"token" doc:"Token of the lease."`
	Outcome string      `json:"outcome" enum:"complete,failed,throttled,timed_out,crashed,snoozed,released,cancelled,unreadable" doc:"How the attempt ended. throttled: the dependency asked to be called later; the job waits for retry_after and spends no attempt. snoozed: it is too early for the job; it waits for snooze and spends no attempt. returned: the worker stops or never started the job; it is released at no cost."`

	Took   time.Duration   `json:"took,omitempty" doc:"How long the attempt ran, such as 1.5s."`
	Result json.RawMessage `json:"result,omitempty" doc:"With complete: any JSON value up to 1 MiB."`

	Enqueue []holdfast.Draft `json:"enqueue,omitempty" doc:"With complete: jobs to enqueue in the transaction that completes this one, at most 1000 with 8 MiB of arguments. They are enqueued once, however often the outcome is reported. They may be members of its group, also when that is sealed."`

	Code       string            `json:"code,omitempty" doc:"Failure code, such as RATE_LIMITED. When left out, the server classifies by message, http_status and exit_code."`
	Message    string            `json:"message,omitempty" doc:"What went wrong, in one line. Required when the attempt failed."`
	Detail     string            `json:"detail,omitempty" doc:"Details for engineers, such as a stack trace or output. Secrets are removed."`
	HTTPStatus int               `json:"http_status,omitempty" doc:"HTTP status, if an HTTP call failed."`
	ExitCode   *int              `json:"exit_code,omitempty" doc:"Exit code, if a program failed; -1 when a signal ended it."`
	Context    map[string]string `json:"context,omitempty" doc:"Further facts for the failure record, at most 32."`
	Dependency string            `json:"dependency,omitempty" doc:"Dependency that caused the failure, if it is not the one of the kind."`

	Permanent  bool          `json:"permanent,omitempty" doc:"A retry cannot succeed: the job fails for good."`
	Benign     bool          `json:"benign,omitempty" doc:"The failure is expected: it is recorded and raises no alert."`
	RetryAfter time.Duration `json:"retry_after,omitempty" doc:"Minimum time until the next attempt. With throttled: the waiting time; the policy's backoff when left out."`
	Hold       time.Duration `json:"hold,omitempty" doc:"Hold all jobs that need the dependency for this time."`
	Snooze     time.Duration `json:"snooze,omitempty" doc:"With snoozed: the waiting time."`
}

// OutcomesIn is the request that reports outcomes.
type OutcomesIn struct {
	Body struct {
		Outcomes []Outcome `json:"outcomes" doc:"At most 10000 outcomes."`
	}
}
