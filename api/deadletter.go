package api

import (
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// LettersOut is a page of dead letters.
type LettersOut struct {
	Letters []ops.DeadLetter `json:"dead_letters"`
	Paged
}

// The routes of dead letters.
var (
	ListDeadLetters = Route[Selection, LettersOut]{Name: "list-dead-letters", Method: "GET", Path: "/dead-letters", Scope: apikey.Viewer, Tag: "dead letters", About: "Jobs that failed for good and that nobody has discarded, newest first, each with what can be done."}
)
