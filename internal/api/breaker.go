package api

import (
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// BreakersOut lists all breakers.
type BreakersOut struct {
	Breakers []ops.Breaker `json:"breakers" doc:"Every dependency that workers have declared or that has a breaker, by name."`
}

// ForceIn is the request to force a breaker open or closed.
type ForceIn struct {
	ByName
	Asked
	Body ForceBody
}

// ForceBody says in which state the breaker is forced.
type ForceBody struct {
	Word
	Open bool `json:"open" doc:"True forces the breaker open: no job that needs the dependency is claimed. False forces it closed: all of them are."`
}

// The routes of breakers. A breaker has the name of its dependency.
var (
	ListBreakers = Route[struct{}, BreakersOut]{Name: "list-breakers", Method: "GET", Path: "/breakers", Scope: apikey.Viewer, Tag: "breakers", About: "List breakers. Includes every dependency that workers have declared, by name, also those whose breaker has never opened."}
	GetBreaker   = Route[ByName, ops.Breaker]{Name: "get-breaker", Method: "GET", Path: "/breakers/{name}", Scope: apikey.Viewer, Tag: "breakers", About: "Get a breaker. Includes its state, what it lets through and its last 50 state changes. Errors: not_found (no worker has declared this dependency and it has no breaker)."}
	OpenBreaker  = Route[OnNamed, Nothing]{Name: "open-breaker", Method: "POST", Path: "/breakers/{name}/open", Scope: apikey.Operator, Tag: "breakers", About: "Open a breaker. Jobs that need the dependency are held; probes find out when it works again. Errors: not_found (nothing calls this dependency), conflict (the breaker is switched off; force it open instead)."}
	CloseBreaker = Route[OnNamed, Nothing]{Name: "close-breaker", Method: "POST", Path: "/breakers/{name}/close", Scope: apikey.Operator, Tag: "breakers", About: "Close a breaker. The dependency recovers at once: jobs are let through at a growing rate. Errors: not_found (nothing calls this dependency)."}
	ForceBreaker = Route[ForceIn, Nothing]{Name: "force-breaker", Method: "POST", Path: "/breakers/{name}/force", Scope: apikey.Operator, Tag: "breakers", About: "Force a breaker open or closed. It stays so, whatever calls report, until it is returned to automatic control."}
	AutoBreaker  = Route[OnNamed, Nothing]{Name: "auto-breaker", Method: "POST", Path: "/breakers/{name}/auto", Scope: apikey.Operator, Tag: "breakers", About: "Return a forced breaker to automatic control. The results of calls decide its state again. Errors: not_found (nothing calls this dependency)."}
)
