package api

import (
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// ByRedrive has the id of a redrive in the path.
type ByRedrive struct {
	ID holdfast.ID `path:"id" doc:"Id of the redrive."`
}

// OnRedrive is a request on one redrive, with actor and reason.
type OnRedrive struct {
	ByRedrive
	Said
}

// PreviewIn is the request to preview a redrive.
type PreviewIn struct {
	Asked
	Body OrderBody
}

// RedriveIn is the request to start a redrive.
type RedriveIn struct {
	Asked
	Key  string `header:"Idempotency-Key" doc:"Makes the call safe to repeat: the same key with the same body returns the same redrive."`
	Body OrderBody
}

// An OrderBody says which dead letters a redrive takes, and at what pace.
type OrderBody struct {
	redrive.Spec
	Actor   string `json:"actor,omitempty" doc:"Name of the person who does this. The name of the key is added to it."`
	Request string `json:"-"`
}

// RedriveStarted has the id of a new redrive.
type RedriveStarted struct {
	ID holdfast.ID `json:"id" doc:"Id of the redrive."`
}

// Announce sets the Location header to the redrive.
func (r RedriveStarted) Announce(h http.Header) { h.Set("Location", Prefix+"/redrives/"+r.ID.String()) }

// RedrivesOut lists redrives.
type RedrivesOut struct {
	Redrives []redrive.Progress `json:"redrives" doc:"Redrives, newest first."`
	Partial
}

// The routes of redrives.
var (
	PreviewRedrive = Route[PreviewIn, ops.Preview]{Name: "preview-redrive", Method: "POST", Path: "/redrives/preview", Scope: apikey.Viewer, Tag: "redrives", About: "Preview a redrive. Returns what it would do, and changes nothing."}
	StartRedrive   = Route[RedriveIn, RedriveStarted]{Name: "start-redrive", Method: "POST", Path: "/redrives", Scope: apikey.Operator, Tag: "redrives", About: "Start a redrive. Workers queue the selected dead letters again, or discard them, at the pace of the request. Errors: conflict (no dead letter can be taken, or the same redrive is being started), idempotency_key_reused (the key was used for another redrive).", Status: http.StatusAccepted}
	ListRedrives   = Route[struct{}, RedrivesOut]{Name: "list-redrives", Method: "GET", Path: "/redrives", Scope: apikey.Viewer, Tag: "redrives", About: "List redrives. Newest first."}
	GetRedrive     = Route[ByRedrive, ops.Redrive]{Name: "get-redrive", Method: "GET", Path: "/redrives/{id}", Scope: apikey.Viewer, Tag: "redrives", About: "Get a redrive. Includes the current states of its jobs. Errors: not_found (no such redrive)."}
	PauseRedrive   = Route[OnRedrive, Nothing]{Name: "pause-redrive", Method: "POST", Path: "/redrives/{id}/pause", Scope: apikey.Operator, Tag: "redrives", About: "Pause a redrive. It takes no more dead letters; jobs that it has taken continue. Errors: not_found (no such redrive), conflict (it is not running)."}
	ResumeRedrive  = Route[OnRedrive, Nothing]{Name: "resume-redrive", Method: "POST", Path: "/redrives/{id}/resume", Scope: apikey.Operator, Tag: "redrives", About: "Resume a redrive. One that was paused, or that stopped because too many jobs failed again. Errors: not_found (no such redrive), conflict (it is neither paused nor stopped)."}
	CancelRedrive  = Route[OnRedrive, Nothing]{Name: "cancel-redrive", Method: "POST", Path: "/redrives/{id}/cancel", Scope: apikey.Operator, Tag: "redrives", About: "Cancel a redrive. It takes no more dead letters; jobs that it has taken continue. Errors: not_found (no such redrive), conflict (it has ended)."}
)
