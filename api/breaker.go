package api

import (
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// BreakersOut are all breakers.
type BreakersOut struct {
	Breakers []ops.Breaker `json:"breakers"`
}

// ForceIn forces a breaker.
type ForceIn struct {
	ByName
	Asked
	Body ForceBody
}

// ForceBody says which way.
type ForceBody struct {
	Word
	Open bool `json:"open" doc:"forced open: nothing passes; else forced closed: everything does"`
}

// The routes of breakers. A breaker is named by its dependency.
var (
	ListBreakers = Route[struct{}, BreakersOut]{Name: "list-breakers", Method: "GET", Path: "/breakers", Scope: apikey.Viewer, Tag: "breakers", About: "Every dependency that workers declared or that has a breaker, by name."}
	GetBreaker   = Route[ByName, ops.Breaker]{Name: "get-breaker", Method: "GET", Path: "/breakers/{name}", Scope: apikey.Viewer, Tag: "breakers", About: "All about one breaker, with what it lets through and its last 50 changes."}
	OpenBreaker  = Route[OnNamed, Nothing]{Name: "open-breaker", Method: "POST", Path: "/breakers/{name}/open", Scope: apikey.Operator, Tag: "breakers", About: "Open a breaker: its jobs wait until probes succeed."}
	CloseBreaker = Route[OnNamed, Nothing]{Name: "close-breaker", Method: "POST", Path: "/breakers/{name}/close", Scope: apikey.Operator, Tag: "breakers", About: "Let a dependency recover now."}
	ForceBreaker = Route[ForceIn, Nothing]{Name: "force-breaker", Method: "POST", Path: "/breakers/{name}/force", Scope: apikey.Operator, Tag: "breakers", About: "Force a breaker open or closed, whatever it measures, until it is left alone again."}
	AutoBreaker  = Route[OnNamed, Nothing]{Name: "auto-breaker", Method: "POST", Path: "/breakers/{name}/auto", Scope: apikey.Operator, Tag: "breakers", About: "Leave a forced breaker to itself again."}
)
