package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A Selection is the part of a job filter that several routes take in the query.
type Selection struct {
	Kind        string        `query:"kind" doc:"Only jobs of this kind."`
	Queue       string        `query:"queue" doc:"Only jobs in this queue."`
	Owner       string        `query:"owner" doc:"Only jobs of this owner."`
	Tag         string        `query:"tag" doc:"Only jobs with this tag."`
	Dependency  string        `query:"dependency" doc:"Only jobs that call this dependency."`
	Code        string        `query:"code" doc:"Only jobs whose last failure has this code."`
	Fingerprint string        `query:"fingerprint" doc:"Only jobs of this error group."`
	Generation  int           `query:"generation" doc:"Only jobs in this generation."`
	Redrive     holdfast.ID   `query:"redrive" doc:"Only jobs that this redrive took."`
	Group       holdfast.ID   `query:"group" doc:"Only members of this group."`
	OlderThan   time.Duration `query:"older_than" doc:"Only jobs older than this, such as 24h."`
	YoungerThan time.Duration `query:"younger_than" doc:"Only jobs newer than this."`
	Look        int           `query:"look" doc:"Maximum number of jobs to examine when no index serves the filter; 0 for no maximum. The page may then be short or empty, and its cursor continues."`
	Limit       int           `query:"limit" doc:"Page size, at most 200."`
	Cursor      string        `query:"cursor" doc:"Cursor of the previous page; leave it out for the first."`
}

// Narrow restricts the selection to an owner.
func (s *Selection) Narrow(owner string) error { return narrow(&s.Owner, owner) }

// narrow sets the owner of a filter. A filter for another owner is ErrNotFound: to a bound key, other owners do not exist.
func narrow(asked *string, owner string) error {
	if *asked != "" && *asked != owner {
		return &holdfast.Error{Err: holdfast.ErrNotFound, Message: "there is nothing of that owner: leave the owner out"}
	}
	*asked = owner
	return nil
}

// Filter returns the selection as a filter for the store.
func (s Selection) Filter() store.Filter {
	return store.Filter{
		Kind: s.Kind, Queue: s.Queue, Owner: s.Owner, Tag: s.Tag, Dependency: s.Dependency, Code: s.Code, Fingerprint: s.Fingerprint,
		Generation: s.Generation, Redrive: s.Redrive, Group: s.Group, OlderThan: s.OlderThan, NewerThan: s.YoungerThan, MaxScan: s.Look, Limit: s.Limit, Cursor: s.Cursor,
	}
}

// SelectionOf returns a filter as query parameters.
func SelectionOf(f store.Filter) Selection {
	return Selection{
		Kind: f.Kind, Queue: f.Queue, Owner: f.Owner, Tag: f.Tag, Dependency: f.Dependency, Code: f.Code, Fingerprint: f.Fingerprint,
		Generation: f.Generation, Redrive: f.Redrive, Group: f.Group, OlderThan: f.OlderThan, YoungerThan: f.NewerThan, Look: f.MaxScan, Limit: f.Limit, Cursor: f.Cursor,
	}
}

// JobIn is the request for a job.
type JobIn struct {
	ByID
	Wait time.Duration `query:"wait" doc:"Wait until the job has ended, at most this long and at most 30s. The answer is then the job as it is."`
}

// JobsIn is the request for a list of jobs.
type JobsIn struct {
	Selection
	State       holdfast.State `query:"state" doc:"Only jobs in this state."`
	DeadLetters bool           `query:"dead_letters" doc:"Only failed jobs that are neither discarded nor benign."`
	Benign      *bool          `query:"benign" doc:"True: only jobs whose failure is benign. False: only jobs that failed otherwise."`
	Retrying    bool           `query:"retrying" doc:"Only queued jobs that have failed before in this generation."`
	Worker      string         `query:"worker" doc:"Only jobs that this worker holds."`
}

// Filter returns the request as a filter for the store.
func (i JobsIn) Filter() store.Filter {
	f := i.Selection.Filter()
	f.State, f.DeadLetters, f.Benign, f.Retrying, f.Worker = i.State, i.DeadLetters, i.Benign, i.Retrying, i.Worker
	return f
}

// JobsInOf returns a filter as query parameters.
func JobsInOf(f store.Filter) JobsIn {
	return JobsIn{SelectionOf(f), f.State, f.DeadLetters, f.Benign, f.Retrying, f.Worker}
}

// JobsOut is one page of jobs.
type JobsOut struct {
	Jobs []holdfast.Job `json:"jobs" doc:"Jobs, newest first."`
	Paged
}

// StoryOut is a job's story.
type StoryOut struct {
	Story []ops.StoryLine `json:"story" doc:"Every transition once, in order."`
}

// ArtifactsOut lists a job's artifacts.
type ArtifactsOut struct {
	Artifacts []store.Artifact `json:"artifacts" doc:"Artifacts of the job."`
}

// OnJob is a request on one job, with actor and reason.
type OnJob struct {
	ByID
	Asked
	Body WordOn
}

// WordOn is actor and reason of an action, with an optional check of the owner.
type WordOn struct {
	Word
	Owner string `json:"owner,omitempty" doc:"Act only if it belongs to this owner; otherwise the answer is not_found."`
}

// RetryIn is the request for a manual retry.
type RetryIn struct {
	ByID
	Asked
	Body RetryBody
}

// RetryBody has the options of a manual retry.
type RetryBody struct {
	WordOn
	StuckAfter time.Duration `json:"stuck_after,omitempty" doc:"Also take the job from a worker that has held it for longer than this; 0s: only if its lease has expired."`
}

// RetryOut is the answer to a manual retry.
type RetryOut struct {
	Ahead int `json:"ahead" doc:"Number of jobs of the same queue that are claimed before it."`
}

// CancelOut is the answer to a cancellation.
type CancelOut struct {
	State holdfast.State `json:"state" doc:"State after the call: cancelled, or processing if a worker runs the job. Then the worker is asked to stop it, and it ends as cancelled."`
}

// EditIn is the request to change a job.
type EditIn struct {
	ByID
	Asked
	Match string `header:"If-Match" doc:"ETag of the job as the caller read it. If the job has changed since, the answer is precondition_failed."`
	Body  EditBody
}

// EditBody has the new values. Fields that are left out do not change.
type EditBody struct {
	WordOn
	Args        json.RawMessage `json:"args,omitempty" doc:"JSON merge patch (RFC 7396) of the arguments."`
	Whole       json.RawMessage `json:"whole_args,omitempty" doc:"Complete new arguments, instead of a patch."`
	Restore     time.Time       `json:"restore,omitzero" doc:"Time of an earlier edit or redrive, as in the story: restores the values that it replaced. Not together with the other fields."`
	Queue       *string         `json:"queue,omitempty" doc:"New queue."`
	Priority    *int16          `json:"priority,omitempty" doc:"New priority; lower numbers are claimed first."`
	Tags        *[]string       `json:"tags,omitempty" doc:"New tags, which replace the present ones."`
	MaxAttempts *int            `json:"max_attempts,omitempty" doc:"New maximum of attempts; 0 for the policy's."`
	Delay       *time.Duration  `json:"delay,omitempty" doc:"Time until the job may start; 0s for at once."`
}

// StuckIn is the request for a list of stuck jobs.
type StuckIn struct {
	After time.Duration `query:"after" doc:"Also jobs that a worker has held for longer than this."`
	Queue string        `query:"queue" doc:"Only jobs in this queue."`
	Kind  string        `query:"kind" doc:"Only jobs of this kind."`
	Owner string        `query:"owner" doc:"Only jobs of this owner."`
}

// Narrow restricts the list to an owner.
func (i *StuckIn) Narrow(owner string) error { return narrow(&i.Owner, owner) }

// StuckOut lists stuck jobs.
type StuckOut struct {
	Jobs   []holdfast.Job `json:"jobs" doc:"Processing jobs past their lease, or held for longer than after."`
	Looked int            `json:"looked" doc:"Number of processing jobs that were examined."`
	More   bool           `json:"more,omitempty" doc:"There are more processing jobs than were examined: use a narrower filter."`
}

// The routes of jobs.
var (
	GetJob       = Route[JobIn, holdfast.Job]{Name: "get-job", Method: "GET", Path: "/jobs/{id}", Scope: apikey.Viewer, Tag: "jobs", Waits: true, About: "Get a job. The ETag of the answer is for If-Match when the job is edited. With wait, the answer comes when the job has ended, or when the time is over: look at its state. Errors: not_found (no such job), purged (retention deleted it)."}
	ListJobs     = Route[JobsIn, JobsOut]{Name: "list-jobs", Method: "GET", Path: "/jobs", Scope: apikey.Viewer, Tag: "jobs", About: "List jobs. Newest first."}
	GetStory     = Route[ByID, StoryOut]{Name: "get-story", Method: "GET", Path: "/jobs/{id}/story", Scope: apikey.Viewer, Tag: "jobs", About: "Get the story of a job. Its history as people read it: every transition once, in order. Errors: not_found (no such job), purged (retention deleted it)."}
	ExplainJob   = Route[ByID, ops.Explanation]{Name: "explain-job", Method: "GET", Path: "/jobs/{id}/explain", Scope: apikey.Viewer, Tag: "jobs", About: "Explain why a job is not running. Returns every reason and what can be done about it. Errors: not_found (no such job), purged (retention deleted it)."}
	GetHistory   = Route[ByID, store.History]{Name: "get-history", Method: "GET", Path: "/jobs/{id}/history", Scope: apikey.Viewer, Tag: "jobs", About: "Get the history of a job. Everything the store holds about it, oldest first. Errors: not_found (no such job), purged (retention deleted it)."}
	GetArtifacts = Route[ByID, ArtifactsOut]{Name: "get-artifacts", Method: "GET", Path: "/jobs/{id}/artifacts", Scope: apikey.Viewer, Tag: "jobs", About: "List the artifacts of a job. Files and other objects outside the store that it needs or has made, and when they expire."}
	RetryJob     = Route[RetryIn, RetryOut]{Name: "retry-job", Method: "POST", Path: "/jobs/{id}/retry", Scope: apikey.Operator, Tag: "jobs", About: "Retry a job. Queues a failed job, one that waits for a retry, or a stuck one again at once; its counters start at zero. Errors: not_found (no such job), purged (retention deleted it), conflict (its state does not allow it, it has expired, or another job holds its unique key)."}
	CancelJob    = Route[OnJob, CancelOut]{Name: "cancel-job", Method: "POST", Path: "/jobs/{id}/cancel", Scope: apikey.Operator, Tag: "jobs", About: "Cancel a job. A queued job ends at once; the worker of a processing job is asked to stop it. Errors: not_found (no such job), purged (retention deleted it), conflict (it has already ended)."}
	DiscardJob   = Route[OnJob, Nothing]{Name: "discard-job", Method: "POST", Path: "/jobs/{id}/discard", Scope: apikey.Operator, Tag: "jobs", About: "Discard a dead letter. It stays failed and is no longer a dead letter; a reason is required. Errors: not_found (no such job), purged (retention deleted it), conflict (it is not failed, or already discarded)."}
	EditJob      = Route[EditIn, holdfast.Job]{Name: "edit-job", Method: "PATCH", Path: "/jobs/{id}", Scope: apikey.Operator, Tag: "jobs", About: "Edit a job. A queued job: arguments, queue, priority, tags, attempts and start; a dead letter: arguments, priority and attempts. Errors: not_found (no such job), conflict (its state does not allow it), precondition_failed (it has changed since it was read)."}
	ListStuck    = Route[StuckIn, StuckOut]{Name: "list-stuck", Method: "GET", Path: "/stuck", Scope: apikey.Viewer, Tag: "jobs", About: "List stuck jobs. Processing jobs whose lease has expired, or that a worker has held for longer than after."}
	ProcessStuck = Route[Said, Nothing]{Name: "process-stuck", Method: "POST", Path: "/stuck/process", Scope: apikey.Operator, Tag: "jobs", About: "Reclaim stuck jobs now. Requests a run of the duty reclaim, which takes over jobs whose lease has expired."}
)
