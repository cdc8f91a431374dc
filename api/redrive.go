package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// ByRedrive names one redrive, in the path.
type ByRedrive struct {
	ID holdfast.ID `path:"id" doc:"the redrive"`
}

// OnRedrive is a word on one redrive.
type OnRedrive struct {
	ByRedrive
	Said
}

// PreviewIn asks what a redrive would do.
type PreviewIn struct {
	Asked
	Body OrderBody
}

// RedriveIn orders a redrive.
type RedriveIn struct {
	Asked
	Key  string `header:"Idempotency-Key" doc:"makes it safe to ask again: the same key with the same order is answered with the same redrive"`
	Body OrderBody
}

// An OrderBody says which dead letters to take and how carefully.
type OrderBody struct {
	redrive.Order
	Actor   string `json:"actor,omitempty" doc:"who does this, on whose key it is done"`
	Request string `json:"-"`
}

// RedriveStarted names a redrive that was ordered.
type RedriveStarted struct {
	ID holdfast.ID `json:"id"`
}

// Announce says where to look for it.
func (r RedriveStarted) Announce(h http.Header) { h.Set("Location", Prefix+"/redrives/"+r.ID.String()) }

// RedrivesOut are all redrives.
type RedrivesOut struct {
	Redrives []redrive.Progress `json:"redrives"`
	Partial
}

// The routes of redrives.
var (
	PreviewRedrive = Route[PreviewIn, ops.Preview]{Name: "preview-redrive", Method: "POST", Path: "/redrives/preview", Scope: apikey.Viewer, Tag: "redrives", About: "What a redrive would do. It changes nothing."}
	StartRedrive   = Route[RedriveIn, RedriveStarted]{Name: "start-redrive", Method: "POST", Path: "/redrives", Scope: apikey.Operator, Tag: "redrives", About: "Send dead letters round again, or discard them: workers do it, at the pace of the order.", Status: http.StatusAccepted}
	ListRedrives   = Route[struct{}, RedrivesOut]{Name: "list-redrives", Method: "GET", Path: "/redrives", Scope: apikey.Viewer, Tag: "redrives", About: "Redrives, the newest first."}
	GetRedrive     = Route[ByRedrive, ops.Redrive]{Name: "get-redrive", Method: "GET", Path: "/redrives/{id}", Scope: apikey.Viewer, Tag: "redrives", About: "All about one redrive, and what became of the jobs it took."}
	PauseRedrive   = Route[OnRedrive, Nothing]{Name: "pause-redrive", Method: "POST", Path: "/redrives/{id}/pause", Scope: apikey.Operator, Tag: "redrives", About: "Keep a redrive from taking more. What it has taken goes on."}
	ResumeRedrive  = Route[OnRedrive, Nothing]{Name: "resume-redrive", Method: "POST", Path: "/redrives/{id}/resume", Scope: apikey.Operator, Tag: "redrives", About: "Let a redrive go on that was paused, or that stopped because too many failed again."}
	CancelRedrive  = Route[OnRedrive, Nothing]{Name: "cancel-redrive", Method: "POST", Path: "/redrives/{id}/cancel", Scope: apikey.Operator, Tag: "redrives", About: "End a redrive for good. What it has taken goes on."}
)
