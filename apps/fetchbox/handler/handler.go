// Package handler inspects a resource between its download and its upload. A handler refuses a resource with a code of HANDLER_, which is final, or says what it found.
// Resources are untrusted: handlers read headers and directories, within limits, and never what a resource unpacks to.
package handler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/failure"
)

// An Input is a resource.
type Input struct {
	File spool.File
	URL  string
	Type string            // media type
	Meta map[string]string // what the sender of the request gave
}

// An Output is what a handler found.
type Output struct {
	Type string            // the media type, if the handler knows better; empty: that of the Input
	Meta map[string]string // such as width and height
}

// A Handler inspects resources. It is safe for concurrent use.
type Handler interface {
	Handle(ctx context.Context, in Input) (Output, error)
}

// A Func is a Handler that is a function.
type Func func(ctx context.Context, in Input) (Output, error)

// Handle calls the function.
func (f Func) Handle(ctx context.Context, in Input) (Output, error) { return f(ctx, in) }

// Raw accepts every resource as it is.
func Raw(context.Context, Input) (Output, error) { return Output{}, nil }

// A Set is the handlers that requests may name.
type Set map[string]Handler

// Standard returns the handlers that need no configuration: raw, image and archive-list.
func Standard() Set {
	return Set{"raw": Func(Raw), "image": Image{}, "archive-list": ArchiveList{}}
}

// Handle calls the handler with a name, raw if the name is empty. Every error has a code of HANDLER_ and is final, also that of a panic; only the end of ctx and a spool
// file that cannot be read have another cause.
func (s Set) Handle(ctx context.Context, name string, in Input) (out Output, err error) {
	if name == "" {
		name = "raw"
	}
	h, known := s[name]
	if !known {
		return Output{}, final(refuse(code.HandlerRefused, "there is no handler %.60q: name one of the settings", name), name)
	}
	defer func() {
		if problem := recover(); problem != nil {
			out, err = Output{}, final(refuse(code.HandlerError, "the handler %s panicked: %v\n\n%s", name, problem, debug.Stack()), name)
		}
	}()
	out, err = h.Handle(ctx, in)
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return Output{}, err
	}
	return Output{}, final(err, name)
}

// final gives an error of a handler its code. A spool file that is gone is not the fault of the resource: it is downloaded again.
func final(err error, name string) error {
	coded, ok := errors.AsType[*codedError](err)
	if !ok {
		coded = &codedError{code.HandlerError, err}
	}
	err = failure.With(failure.WithCode(err, coded.code), "handler", name)
	if coded.code == code.StorageSpoolLost {
		return err
	}
	return failure.NeverRetry(err)
}

// A codedError is a refusal with its code.
type codedError struct {
	code string
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// Refuse returns the error with which a handler refuses a resource. name is a code of HANDLER_.
func Refuse(name, format string, args ...any) error { return refuse(name, format, args...) }

func refuse(name, format string, args ...any) error {
	return &codedError{name, fmt.Errorf(format, args...)}
}

// open opens the spool file.
func (i Input) open() (*os.File, error) {
	file, err := os.Open(i.File.Path)
	if err != nil {
		return nil, refuse(code.StorageSpoolLost, "the spool file of the resource cannot be opened")
	}
	return file, nil
}

// Require returns a handler that refuses a resource whose request lacks metadata, and otherwise calls another handler.
func Require(h Handler, names ...string) Handler {
	return Func(func(ctx context.Context, in Input) (Output, error) {
		var missing []string
		for _, name := range names {
			if in.Meta[name] == "" {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return Output{}, refuse(code.HandlerMissingMetadata, "the request lacks the metadata %s", strings.Join(missing, ", "))
		}
		return h.Handle(ctx, in)
	})
}
