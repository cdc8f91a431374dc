package api

import (
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// LettersOut is one page of dead letters.
type LettersOut struct {
	Letters []ops.DeadLetter `json:"dead_letters" doc:"Dead letters, newest first."`
	Paged
}

// The routes of dead letters.
var (
	ListDeadLetters = Route[Selection, LettersOut]{Name: "list-dead-letters", Method: "GET", Path: "/dead-letters", Scope: apikey.Viewer, Tag: "dead letters", About: "List dead letters. Jobs that failed for good and were not discarded, newest first, each with the actions that are possible."}
)
