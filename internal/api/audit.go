package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// AuditIn is the request for the audit log.
type AuditIn struct {
	Subject string      `query:"subject" doc:"Only actions on this subject: group/<id>, duty/promote, retention and others."`
	Job     holdfast.ID `query:"job" doc:"Only actions on this job. Not together with subject."`
	Actor   string      `query:"actor" doc:"Only actions of this person."`
	After   int64       `query:"after" doc:"Without subject and job: continue after this event number."`
	Limit   int         `query:"limit" doc:"Page size, at most 200."`
}

// FeedIn is the request for a part of the feed.
type FeedIn struct {
	After int64 `query:"after" doc:"Return events after this number."`
	Limit int   `query:"limit" max:"10000" doc:"Maximum number of events, at most 10000; 200 when left out."`
}

// LatestIn is the request for the end of the feed.
type LatestIn struct {
	Limit int `query:"limit" max:"10000" required:"true" doc:"Maximum number of events, at most 10000."`
}

// The routes of the audit log and the feed.
var (
	GetAudit  = Route[AuditIn, ops.AuditLog]{Name: "get-audit", Method: "GET", Path: "/audit", Scope: apikey.Viewer, Tag: "events", About: "Read the audit log. What people did: who, what, when, why and in which request. Errors: invalid (both subject and job are given)."}
	GetFeed   = Route[FeedIn, store.Feed]{Name: "get-feed", Method: "GET", Path: "/feed", Scope: apikey.Viewer, Tag: "events", About: "Read the feed. Events after a number, in order. The answer says how many events retention has deleted before they were read. Errors: invalid (the feed ends before the number)."}
	GetLatest = Route[LatestIn, store.Feed]{Name: "get-latest", Method: "GET", Path: "/feed/latest", Scope: apikey.Viewer, Tag: "events", About: "Read the end of the feed. The newest events."}
)
