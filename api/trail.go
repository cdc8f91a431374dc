package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// AuditIn asks what people did.
type AuditIn struct {
	Subject string      `query:"subject" doc:"to this: group/<id>, duty/promote, retention, ..."`
	Job     holdfast.ID `query:"job" doc:"or to this job"`
	Actor   string      `query:"actor" doc:"only this person's deeds"`
	After   int64       `query:"after" doc:"in the feed: go on after this number"`
	Limit   int         `query:"limit" doc:"how many, at most 200"`
}

// FeedIn asks for a stretch of the feed.
type FeedIn struct {
	After int64 `query:"after" doc:"what comes after this number"`
	Limit int   `query:"limit" max:"10000" doc:"how many; 200 when it is left out, at most 10000"`
}

// LatestIn asks for the end of the feed.
type LatestIn struct {
	Limit int `query:"limit" max:"10000" required:"true" doc:"how many, at most 10000"`
}

// The routes of what happened.
var (
	GetAudit  = Route[AuditIn, ops.Trail]{Name: "get-audit", Method: "GET", Path: "/audit", Scope: apikey.Viewer, Tag: "events", About: "What people did: who, what, why, when and in which request."}
	GetFeed   = Route[FeedIn, holdfast.Feed]{Name: "get-feed", Method: "GET", Path: "/feed", Scope: apikey.Viewer, Tag: "events", About: "What happened after a number, in order. What retention has deleted is said."}
	GetLatest = Route[LatestIn, holdfast.Feed]{Name: "get-latest", Method: "GET", Path: "/feed/latest", Scope: apikey.Viewer, Tag: "events", About: "The last events there are."}
)
