package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// A Selection selects jobs, in the query.
type Selection struct {
	Kind        string        `query:"kind" doc:"only this kind"`
	Queue       string        `query:"queue" doc:"only this queue"`
	Owner       string        `query:"owner" doc:"only this owner's"`
	Tag         string        `query:"tag" doc:"only with this tag"`
	Dependency  string        `query:"dependency" doc:"only those that call this"`
	Code        string        `query:"code" doc:"only with this code of the last failure"`
	Fingerprint string        `query:"fingerprint" doc:"only of this error group"`
	Generation  int           `query:"generation" doc:"only in this generation"`
	Redrive     holdfast.ID   `query:"redrive" doc:"only what this redrive took"`
	Group       holdfast.ID   `query:"group" doc:"only members of this group"`
	OlderThan   time.Duration `query:"older_than" doc:"only enqueued longer ago than this, such as 24h"`
	YoungerThan time.Duration `query:"younger_than" doc:"only enqueued less long ago than this"`
	Look        int           `query:"look" doc:"look at so many jobs at most where no index leads to what is wanted: then a page may be short, or empty, and its cursor goes on; 0: as many as it takes"`
	Limit       int           `query:"limit" doc:"how many, at most 200"`
	Cursor      string        `query:"cursor" doc:"go on after the page that gave this cursor"`
}

// Narrow keeps the selection to an owner.
func (s *Selection) Narrow(owner string) error { return narrow(&s.Owner, owner) }

// narrow puts the owner where one may be asked for. What is somebody else's does not exist.
func narrow(asked *string, owner string) error {
	if *asked != "" && *asked != owner {
		return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is nothing of that owner"}
	}
	*asked = owner
	return nil
}

// Filter is the selection as a store knows it.
func (s Selection) Filter() holdfast.Filter {
	return holdfast.Filter{
		Kind: s.Kind, Queue: s.Queue, Owner: s.Owner, Tag: s.Tag, Dependency: s.Dependency, Code: s.Code, Fingerprint: s.Fingerprint,
		Generation: s.Generation, Redrive: s.Redrive, Group: s.Group, OlderThan: s.OlderThan, YoungerThan: s.YoungerThan, Look: s.Look, Limit: s.Limit, Cursor: s.Cursor,
	}
}

// selectionOf is a filter as it travels.
func selectionOf(f holdfast.Filter) Selection {
	return Selection{
		Kind: f.Kind, Queue: f.Queue, Owner: f.Owner, Tag: f.Tag, Dependency: f.Dependency, Code: f.Code, Fingerprint: f.Fingerprint,
		Generation: f.Generation, Redrive: f.Redrive, Group: f.Group, OlderThan: f.OlderThan, YoungerThan: f.YoungerThan, Look: f.Look, Limit: f.Limit, Cursor: f.Cursor,
	}
}

// JobsIn asks for a list of jobs.
type JobsIn struct {
	Selection
	State       holdfast.State `query:"state" doc:"only in this state"`
	DeadLetters bool           `query:"dead_letters" doc:"only failed ones that are neither discarded nor benign"`
	Benign      *bool          `query:"benign" doc:"true: only jobs that failed as was to be expected; false: only jobs that failed otherwise"`
	Retrying    bool           `query:"retrying" doc:"only queued ones that failed before in this generation"`
	Worker      string         `query:"worker" doc:"only those in this worker's hands"`
}

// Filter is the question as a store knows it.
func (i JobsIn) Filter() holdfast.Filter {
	f := i.Selection.Filter()
	f.State, f.DeadLetters, f.Benign, f.Retrying, f.Worker = i.State, i.DeadLetters, i.Benign, i.Retrying, i.Worker
	return f
}

// jobsIn is a filter as it travels.
func jobsIn(f holdfast.Filter) JobsIn {
	return JobsIn{selectionOf(f), f.State, f.DeadLetters, f.Benign, f.Retrying, f.Worker}
}

// JobsOut is a page of jobs.
type JobsOut struct {
	Jobs []holdfast.Job `json:"jobs"`
	Paged
}

// StoryOut is a job's story.
type StoryOut struct {
	Story []ops.Line `json:"story" doc:"every transition once, in order"`
}

// ArtifactsOut are a job's artifacts.
type ArtifactsOut struct {
	Artifacts []holdfast.Artifact `json:"artifacts"`
}

// OnJob is a word on one job.
type OnJob struct {
	ByID
	Asked
	Body WordOn
}

// WordOn is what people say about what they do to something that may be an owner's.
type WordOn struct {
	Word
	Owner string `json:"owner,omitempty" doc:"do it only if it is this owner's"`
}

// RetryIn asks for a manual retry.
type RetryIn struct {
	ByID
	Asked
	Body RetryBody
}

// RetryBody says more about a manual retry.
type RetryBody struct {
	WordOn
	StuckAfter time.Duration `json:"stuck_after,omitempty" doc:"take the job also from a worker that has been at it for longer than this; 0s: only past its lease"`
}

// RetryOut answers a manual retry.
type RetryOut struct {
	Ahead int `json:"ahead" doc:"how many jobs of the same queue are claimed before it"`
}

// CancelOut answers a request to cancel.
type CancelOut struct {
	State holdfast.State `json:"state" doc:"cancelled at once, or processing: then it was asked to stop, and will end cancelled"`
}

// EditIn changes a job that is queued.
type EditIn struct {
	ByID
	Asked
	Match string `header:"If-Match" doc:"the ETag of the job as the editor saw it"`
	Body  EditBody
}

// EditBody says what changes. What is left out stays as it is.
type EditBody struct {
	WordOn
	Args        json.RawMessage `json:"args,omitempty" doc:"a JSON merge patch (RFC 7396) of the arguments"`
	Whole       json.RawMessage `json:"whole_args,omitempty" doc:"the arguments whole, instead of a patch"`
	Restore     time.Time       `json:"restore,omitzero" doc:"put back what the edit or redrive at this time replaced, as the story tells it; instead of the other fields"`
	Queue       *string         `json:"queue,omitempty"`
	Priority    *int16          `json:"priority,omitempty" doc:"a lower number is claimed first"`
	Tags        *[]string       `json:"tags,omitempty" doc:"instead of those it has"`
	MaxAttempts *int            `json:"max_attempts,omitempty" doc:"0 leaves it to the policy"`
	Delay       *time.Duration  `json:"delay,omitempty" doc:"start no sooner than this from now; 0s: at once"`
}

// StuckIn asks for jobs that are stuck.
type StuckIn struct {
	After time.Duration `query:"after" doc:"also those that a worker has been at for longer than this"`
	Queue string        `query:"queue" doc:"only this queue"`
	Kind  string        `query:"kind" doc:"only this kind"`
	Owner string        `query:"owner" doc:"only this owner's"`
}

// Narrow keeps it to an owner.
func (i *StuckIn) Narrow(owner string) error { return narrow(&i.Owner, owner) }

// StuckOut are jobs that are stuck.
type StuckOut struct {
	Jobs   []holdfast.Job `json:"jobs"`
	Looked int            `json:"looked" doc:"so many jobs in process were looked at"`
	More   bool           `json:"more,omitempty" doc:"there are more in process than were looked at: narrow it down"`
}

// The routes of jobs.
var (
	GetJob       = Route[ByID, holdfast.Job]{Name: "get-job", Method: "GET", Path: "/jobs/{id}", Scope: apikey.Viewer, Tag: "jobs", About: "All about one job. The ETag is for If-Match when it is edited."}
	ListJobs     = Route[JobsIn, JobsOut]{Name: "list-jobs", Method: "GET", Path: "/jobs", Scope: apikey.Viewer, Tag: "jobs", About: "Jobs, newest first."}
	GetStory     = Route[ByID, StoryOut]{Name: "get-story", Method: "GET", Path: "/jobs/{id}/story", Scope: apikey.Viewer, Tag: "jobs", About: "How a job came to stand where it stands: every transition exactly once, in order."}
	ExplainJob   = Route[ByID, ops.Explanation]{Name: "explain-job", Method: "GET", Path: "/jobs/{id}/explain", Scope: apikey.Viewer, Tag: "jobs", About: "Why a job is not processed now: every reason, and what can be done about it."}
	GetHistory   = Route[ByID, holdfast.History]{Name: "get-history", Method: "GET", Path: "/jobs/{id}/history", Scope: apikey.Viewer, Tag: "jobs", About: "Everything the store can prove about one job, oldest first."}
	GetArtifacts = Route[ByID, ArtifactsOut]{Name: "get-artifacts", Method: "GET", Path: "/jobs/{id}/artifacts", Scope: apikey.Viewer, Tag: "jobs", About: "What a job needs or has made that lies elsewhere, and when it expires."}
	RetryJob     = Route[RetryIn, RetryOut]{Name: "retry-job", Method: "POST", Path: "/jobs/{id}/retry", Scope: apikey.Operator, Tag: "jobs", About: "Send a job round again at once: a failed one, one that waits for a retry, or one that is stuck. Its counts start afresh."}
	CancelJob    = Route[OnJob, CancelOut]{Name: "cancel-job", Method: "POST", Path: "/jobs/{id}/cancel", Scope: apikey.Operator, Tag: "jobs", About: "End a queued job at once, or ask one in process to stop."}
	DiscardJob   = Route[OnJob, Nothing]{Name: "discard-job", Method: "POST", Path: "/jobs/{id}/discard", Scope: apikey.Operator, Tag: "jobs", About: "Take a failed job off the dead letters. A reason is required."}
	EditJob      = Route[EditIn, holdfast.Job]{Name: "edit-job", Method: "PATCH", Path: "/jobs/{id}", Scope: apikey.Operator, Tag: "jobs", About: "Change a job that is queued: its arguments, and when and where it waits; or a dead letter, before it is retried: its arguments, priority and attempts."}
	ListStuck    = Route[StuckIn, StuckOut]{Name: "list-stuck", Method: "GET", Path: "/stuck", Scope: apikey.Viewer, Tag: "jobs", About: "Jobs in process past their lease, or for longer than is said."}
	ProcessStuck = Route[Said, Nothing]{Name: "process-stuck", Method: "POST", Path: "/stuck/process", Scope: apikey.Operator, Tag: "jobs", About: "Have jobs past their lease taken over now: the duty reclaim runs out of turn."}
)
