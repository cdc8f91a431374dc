package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/key"
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
	Limit       int           `query:"limit" doc:"how many, at most 200"`
	Cursor      string        `query:"cursor" doc:"go on after the page that gave this cursor"`
}

// Narrow keeps the selection to an owner.
func (s *Selection) Narrow(owner string) error {
	if s.Owner != "" && s.Owner != owner {
		return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is nothing of that owner"}
	}
	s.Owner = owner
	return nil
}

// Filter is the selection as a store knows it.
func (s Selection) Filter() holdfast.Filter {
	return holdfast.Filter{
		Kind: s.Kind, Queue: s.Queue, Owner: s.Owner, Tag: s.Tag, Dependency: s.Dependency, Code: s.Code, Fingerprint: s.Fingerprint,
		Generation: s.Generation, Redrive: s.Redrive, Group: s.Group, OlderThan: s.OlderThan, YoungerThan: s.YoungerThan, Limit: s.Limit, Cursor: s.Cursor,
	}
}

// selectionOf is a filter as it travels.
func selectionOf(f holdfast.Filter) Selection {
	return Selection{
		Kind: f.Kind, Queue: f.Queue, Owner: f.Owner, Tag: f.Tag, Dependency: f.Dependency, Code: f.Code, Fingerprint: f.Fingerprint,
		Generation: f.Generation, Redrive: f.Redrive, Group: f.Group, OlderThan: f.OlderThan, YoungerThan: f.YoungerThan, Limit: f.Limit, Cursor: f.Cursor,
	}
}

// JobsIn asks for a list of jobs.
type JobsIn struct {
	Selection
	State holdfast.State `query:"state" doc:"queued, processing, complete, failed or cancelled"`
}

// JobsOut is a page of jobs.
type JobsOut struct {
	Jobs []holdfast.Job `json:"jobs"`
	Paged
}

// The routes of jobs: looking at them.
var (
	GetJob   = Route[ByID, holdfast.Job]{Name: "get-job", Method: "GET", Path: "/jobs/{id}", Scope: key.Viewer, Tag: "jobs", About: "All about one job. The ETag is for If-Match when it is edited."}
	ListJobs = Route[JobsIn, JobsOut]{Name: "list-jobs", Method: "GET", Path: "/jobs", Scope: key.Viewer, Tag: "jobs", About: "Jobs, newest first."}
)
