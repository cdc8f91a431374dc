package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// A Job is what a handler works on: the lease with the facts of the job, its arguments decoded into A, and methods that write progress, checkpoints and
// the result to the store. What they write takes effect only while the lease is held.
type Job[A any] struct {
	*store.Lease
	Args A

	attempt *attempt
}

// A Raw job carries its arguments as they were enqueued. Middleware receives jobs in this form.
type Raw = Job[json.RawMessage]

// A Handler works on one job. Its context ends at the attempt's timeout (context.DeadlineExceeded) or with one of three causes, which context.Cause
// returns: holdfast.ErrLeaseLost, ErrCancelled or ErrStopping. An error that the handler returns after that is attributed to the cause; nil still
// completes the job.
type Handler func(ctx context.Context, job *Raw) error

// kind is a registered handler with everything that an attempt needs, computed once.
type kind struct {
	name      string
	handler   Handler
	timeout   time.Duration
	deadlines sharedDeadlines
	rules     failure.Rules
	dep       *dependency // the dependency of jobs that name none
}

// unreadable marks the error of arguments that cannot be decoded, so that it is recognised after it passed through middleware.
type unreadable struct{ cause error }

func (u *unreadable) Error() string { return u.cause.Error() }
func (u *unreadable) Unwrap() error { return u.cause }

// Handle registers the handler of the kind that A names. If the registration is invalid, Run returns the error, with those of all other handlers, and runs
// nothing. At most one Kind may be given. Handle panics if the engine runs already, because nothing would report the error.
func Handle[A holdfast.Args](e *Engine, work func(ctx context.Context, job *Job[A]) error, options ...KindOptions) {
	name := kindOf[A]()
	if work == nil {
		e.register(name, nil, options)
		return
	}
	e.register(name, func(ctx context.Context, raw *Raw) error {
		job := Job[A]{Lease: raw.Lease, attempt: raw.attempt}
		if err := json.Unmarshal(raw.Args, &job.Args); err != nil {
			return &unreadable{fmt.Errorf("the arguments of %q cannot be decoded: %w", name, err)}
		}
		return work(ctx, &job)
	}, options)
}

// HandleRaw registers a handler for a kind by name, for arguments that no Go type describes. Otherwise it is like Handle.
func HandleRaw(e *Engine, name string, work Handler, options ...KindOptions) {
	e.register(name, work, options)
}

// kindOf returns the kind that A names. Kind is called on a zero value; for a pointer type, on a pointer to a zero value.
func kindOf[A holdfast.Args]() string {
	var args A
	if t := reflect.TypeFor[A](); t.Kind() == reflect.Pointer {
		args = reflect.New(t.Elem()).Interface().(A)
	}
	return args.Kind()
}

func (e *Engine) register(name string, work Handler, options []KindOptions) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		panic(fmt.Sprintf("engine: kind %q: register handlers before Run", name))
	}
	if err := e.checkKind(name, work, options); err != nil {
		e.problems = append(e.problems, err)
		return
	}
	var given KindOptions
	if len(options) == 1 {
		given = options[0]
	}
	k := &kind{name: name, handler: work, timeout: orElse(given.Timeout, e.cfg.Timeout), rules: e.rulesOf(given)}
	for i := len(e.cfg.Middleware) - 1; i >= 0; i-- {
		k.handler = e.cfg.Middleware[i](k.handler)
		if k.handler == nil {
			e.problems = append(e.problems, refuse(true, "kind %q: Middleware[%d] returned nil; return a handler that calls next", name, i))
			return
		}
	}
	if given.Dependency != "" {
		k.dep = e.deps.add(given.Dependency, true)
	}
	e.kinds[name] = k
}

func (e *Engine) checkKind(name string, work Handler, options []KindOptions) error {
	named := store.Hold{Kind: name, Actor: actorSystem} // not checked as a draft: the notifier handles kinds that no draft may have
	probe := holdfast.Draft{Kind: "probe"}
	if len(options) == 1 {
		probe.Dependency = options[0].Dependency
	}
	if err := probe.Prepare(); err != nil {
		return err
	}
	switch {
	case name == "" || named.Check() != nil || strings.HasSuffix(name, "*"):
		return refuse(true, "kind %.140q: use 1 to %d letters, digits and _ - . : /", name, check.MaxName)
	case work == nil:
		return refuse(true, "kind %q: its handler is nil; give a function", name)
	case e.kinds[name] != nil:
		return refuse(true, "kind %q: it has a handler already; register each kind once", name)
	case len(options) > 1:
		return refuse(true, "kind %q: %d Kind values given; give one", name, len(options))
	case len(options) == 1 && (options[0].Timeout < 0 || options[0].Timeout > check.MaxDelay):
		return refuse(true, "kind %q: Timeout is %v; give a positive duration, or 0 for the engine's", name, options[0].Timeout)
	case len(options) == 1:
		return checkRules(fmt.Sprintf("kind %q: ", name), e.rulesOf(options[0]))
	}
	return nil
}

// checkRules validates a policy. where is the prefix of the error message.
func checkRules(where string, rules failure.Rules) error {
	if err := rules.Check(); err != nil {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: where + err.Error(), Cause: err}
	}
	return nil
}

// rulesOf returns the rules of a kind: its own, completed from the engine's.
func (e *Engine) rulesOf(given KindOptions) failure.Rules {
	rules := e.rules
	rules.Policy = given.Policy
	if given.Classify != nil {
		rules.Classify = given.Classify
	}
	rules.Dependency = given.Dependency
	return rules
}
