package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// RetentionIn applies rules.
type RetentionIn struct {
	Asked
	Body RetentionBody
}

// RetentionBody are the rules. The first that matches a job decides about it; a job that none matches is kept.
type RetentionBody struct {
	Word
	Rules []holdfast.Retain `json:"rules" doc:"none purge nothing"`
}

// DropRetention goes back to the workers' own rules.
type DropRetention struct {
	Asked
	Dropped
}

// TombstonesIn asks for a list of tombstones.
type TombstonesIn struct {
	Job    holdfast.ID `query:"job" doc:"only this job's"`
	Kind   string      `query:"kind" doc:"only this kind"`
	Limit  int         `query:"limit" doc:"how many, at most 200"`
	Cursor string      `query:"cursor" doc:"go on after the page that gave this cursor"`
}

// TombstonesOut is a page of tombstones.
type TombstonesOut struct {
	Tombstones []holdfast.Tombstone `json:"tombstones"`
	Paged
}

// The routes of retention.
var (
	GetRetention   = Route[struct{}, ops.Retention]{Name: "get-retention", Method: "GET", Path: "/retention", Scope: apikey.Viewer, Tag: "retention", About: "How long ended jobs are kept, and what has been purged."}
	ApplyRetention = Route[RetentionIn, Nothing]{Name: "apply-retention", Method: "PUT", Path: "/retention", Scope: apikey.Admin, Tag: "retention", About: "Have ended jobs kept by these rules instead of those in the workers' code."}
	ResetRetention = Route[DropRetention, Nothing]{Name: "reset-retention", Method: "DELETE", Path: "/retention", Scope: apikey.Admin, Tag: "retention", About: "Go back to the rules in the workers' code."}
	ListTombstones = Route[TombstonesIn, TombstonesOut]{Name: "list-tombstones", Method: "GET", Path: "/tombstones", Scope: apikey.Viewer, Tag: "retention", About: "What remains of purged jobs, the last purged first."}
)
