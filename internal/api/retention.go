package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// RetentionIn is the request to apply retention rules.
type RetentionIn struct {
	Asked
	Body RetentionBody
}

// RetentionBody has the retention rules. The first rule that matches a job decides; a job that no rule matches is kept.
type RetentionBody struct {
	Word
	Rules []store.RetentionRule `json:"rules" doc:"Rules, in order. An empty list purges nothing."`
}

// DropRetention is the request to remove the applied rules.
type DropRetention struct {
	Asked
	Dropped
}

// TombstonesIn is the request for a list of tombstones.
type TombstonesIn struct {
	Job    holdfast.ID `query:"job" doc:"Only the tombstone of this job."`
	Kind   string      `query:"kind" doc:"Only tombstones of jobs of this kind."`
	Limit  int         `query:"limit" doc:"Page size, at most 200."`
	Cursor string      `query:"cursor" doc:"Cursor of the previous page; leave it out for the first."`
}

// TombstonesOut is one page of tombstones.
type TombstonesOut struct {
	Tombstones []store.Tombstone `json:"tombstones" doc:"Tombstones, last purged first."`
	Paged
}

// The routes of retention.
var (
	GetRetention   = Route[struct{}, ops.Retention]{Name: "get-retention", Method: "GET", Path: "/retention", Scope: apikey.Viewer, Tag: "retention", About: "Get the retention rules. Includes what was purged by each."}
	ApplyRetention = Route[RetentionIn, Nothing]{Name: "apply-retention", Method: "PUT", Path: "/retention", Scope: apikey.Admin, Tag: "retention", About: "Apply retention rules. They replace the rules in the workers' code. Errors: invalid (a rule has a mistake, or two have the same name)."}
	ResetRetention = Route[DropRetention, Nothing]{Name: "reset-retention", Method: "DELETE", Path: "/retention", Scope: apikey.Admin, Tag: "retention", About: "Remove the applied retention rules. Workers return to the rules in their code. Errors: conflict (no rules are applied)."}
	ListTombstones = Route[TombstonesIn, TombstonesOut]{Name: "list-tombstones", Method: "GET", Path: "/tombstones", Scope: apikey.Viewer, Tag: "retention", About: "List tombstones. What remains of purged jobs, last purged first."}
)
