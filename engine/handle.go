package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/decode"
	"github.com/holdfastdev/holdfast/store"
)

// A Job is what a handler works on: the lease with the facts of the job, its arguments decoded into A, and methods that write progress, checkpoints and
// the result to the store. What they write takes effect only while the lease is held.
//
// A Job that a test makes itself, such as &engine.Job[A]{Args: args}, has no attempt: its methods validate what they are given and write nothing. Package
// holdfasttest runs a handler with everything that it needs, and returns what it wrote.
type Job[A any] struct {
	store.Lease
	Args A

	attempt *attempt // nil in a Job that a test made
}

// A Raw job carries its arguments as they were enqueued. Middleware receives jobs in this form.
type Raw = Job[json.RawMessage]

// A Handler works on one job. Its context ends at the attempt's timeout (context.DeadlineExceeded) or with one of three causes, which context.Cause
// returns: holdfast.ErrLeaseLost, ErrCancelled or ErrStopping. An error that the handler returns after that is attributed to the cause; nil still
// completes the job.
type Handler func(ctx context.Context, job *Raw) error

// unreadable marks the error of arguments that cannot be decoded, so that it is recognised after it passed through middleware.
type unreadable struct{ cause error }

func (u *unreadable) Error() string { return u.cause.Error() }
func (u *unreadable) Unwrap() error { return u.cause }

// Handle registers the handler of the kind that A names. If the registration is invalid, Run returns the error, with those of all other handlers, and runs
// nothing. At most one KindOptions may be given. Handle panics if the engine runs already, because nothing would report the error.
func Handle[A holdfast.Args](e *Engine, work func(ctx context.Context, job *Job[A]) error, options ...KindOptions) {
	name := kindOf[A]()
	if work == nil {
		e.registry.register(name, nil, nil, options)
		return
	}
	decodeArgs := decode.For[A]()
	decoded := func(ctx context.Context, lease *store.Lease, args json.RawMessage, a *attempt) error {
		job := Job[A]{Lease: *lease, attempt: a}
		if err := decodeArgs(args, &job.Args); err != nil {
			return &unreadable{fmt.Errorf("the arguments of %q cannot be decoded: %w", name, err)}
		}
		return work(ctx, &job)
	}
	e.registry.register(name,
		func(ctx context.Context, raw *Raw) error { return decoded(ctx, &raw.Lease, raw.Args, raw.attempt) },
		func(ctx context.Context, a *attempt) error { return decoded(ctx, a.lease, a.lease.Args, a) },
		options)
}

// HandleRaw registers a handler for a kind by name, for arguments that no Go type describes. Otherwise it is like Handle.
func HandleRaw(e *Engine, name string, work Handler, options ...KindOptions) {
	e.registry.register(name, work, nil, options)
}

// kindOf returns the kind that A names. Kind is called on a zero value; for a pointer type, on a pointer to a zero value.
func kindOf[A holdfast.Args]() string {
	var args A
	if t := reflect.TypeFor[A](); t.Kind() == reflect.Pointer {
		args = reflect.New(t.Elem()).Interface().(A)
	}
	return args.Kind()
}
