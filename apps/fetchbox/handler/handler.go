// Package handler inspects a resource between its download and its upload. A handler refuses a resource with a code of HANDLER_, which is final, or says what it found.
package handler

import (
	"context"

	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

// An Input is a resource.
type Input struct {
	File spool.File
	URL  string
	Type string            // media type
	Meta map[string]string // what the sender of the request gave
}

// An Output is what a handler found. It is stored with the object.
type Output struct {
	Type string            // the media type, if the handler knows better; empty: that of the Input
	Meta map[string]string // such as width and height
}

// A Handler inspects resources. It is safe for concurrent use.
type Handler interface {
	Handle(ctx context.Context, in Input) (Output, error)
}

// A Set is the handlers that requests may name.
type Set map[string]Handler

// Standard returns the handlers that need no configuration: raw, image and archive-list.
func Standard() Set { panic("draft") }

// Handle calls the handler with a name. Every error has a code of HANDLER_, also that of a panic.
func (s Set) Handle(ctx context.Context, name string, in Input) (Output, error) { panic("draft") }

// Exec returns a handler that runs a program: it reads the resource from its standard input, or from the file whose path is its last argument. Exit code 0 accepts the
// resource, and what the program prints, one JSON object of strings, is the Meta. Any other exit code refuses it, with the end of standard error as the reason.
func Exec(p execjob.Program) (Handler, error) { panic("draft") }
