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
)

// A Job is what a handler holds: the facts of the lease, its arguments in the type A, and a way to speak to the store.
// Everything it says counts only while the lease is held.
type Job[A any] struct {
	*holdfast.Lease
	Args A

	attempt *attempt
}

// A Raw job carries its arguments as they were enqueued. It is what middleware sees.
type Raw = Job[json.RawMessage]

// A Handler works on one job. Its context ends with the attempt's timeout (context.DeadlineExceeded) or with one of three
// causes, told by context.Cause: holdfast.ErrLeaseLost, ErrCancelled, ErrStopping. An error returned after that is put
// down to the cause; nil still completes the job.
type Handler func(ctx context.Context, job *Raw) error

// kind is a registered handler with everything an attempt needs, worked out once.
type kind struct {
	name    string
	handler Handler
	timeout time.Duration
	windows windows
	rules   failure.Rules
	dep     *dependency // what its jobs call, unless they name another
}

// unreadable marks arguments that could not be decoded on their way through middleware.
type unreadable struct{ cause error }

func (u *unreadable) Error() string { return u.cause.Error() }
func (u *unreadable) Unwrap() error { return u.cause }

// Handle registers the handler of the kind that A names. It must come before Run. A refusal is also remembered: Run
// returns it and runs nothing, so the error may be left to Run.
func Handle[A holdfast.Args](e *Engine, work func(ctx context.Context, job *Job[A]) error, how ...Kind) error {
	name := kindOf[A]()
	if work == nil {
		return e.register(name, nil, how)
	}
	return e.register(name, func(ctx context.Context, raw *Raw) error {
		job := Job[A]{Lease: raw.Lease, attempt: raw.attempt}
		if err := json.Unmarshal(raw.Args, &job.Args); err != nil {
			return &unreadable{fmt.Errorf("the arguments of %q cannot be decoded: %w", name, err)}
		}
		return work(ctx, &job)
	}, how)
}

// HandleRaw registers a handler for a kind by its name, for arguments no Go type describes. Otherwise it is Handle.
func HandleRaw(e *Engine, name string, work Handler, how ...Kind) error {
	return e.register(name, work, how)
}

// kindOf asks a zero A for its kind; a pointer type gets something to point at.
func kindOf[A holdfast.Args]() string {
	var args A
	if t := reflect.TypeFor[A](); t.Kind() == reflect.Pointer {
		args = reflect.New(t.Elem()).Interface().(A)
	}
	return args.Kind()
}

func (e *Engine) register(name string, work Handler, how []Kind) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.checkKind(name, work, how); err != nil {
		e.problems = append(e.problems, err)
		return err
	}
	var given Kind
	if len(how) == 1 {
		given = how[0]
	}
	k := &kind{name: name, handler: work, timeout: orElse(given.Timeout, e.cfg.Timeout), rules: e.rulesOf(given)}
	for i := len(e.cfg.Around) - 1; i >= 0; i-- {
		k.handler = e.cfg.Around[i](k.handler)
		if k.handler == nil {
			err := refuse(true, "kind %q: Around[%d] returned nil; return a handler that calls next", name, i)
			e.problems = append(e.problems, err)
			return err
		}
	}
	if given.Dependency != "" {
		k.dep = e.deps.add(given.Dependency, true)
	}
	e.kinds[name] = k
	return nil
}

func (e *Engine) checkKind(name string, work Handler, how []Kind) error {
	named := holdfast.Hold{Kind: name, Actor: actorSystem} // not as a draft: the notifier handles kinds that no draft may have
	probe := holdfast.Draft{Kind: "probe"}
	if len(how) == 1 {
		probe.Dependency = how[0].Dependency
	}
	if err := probe.Prepare(); err != nil {
		return err
	}
	switch {
	case name == "" || named.Check() != nil || strings.HasSuffix(name, "*"):
		return refuse(true, "kind %.140q: use 1 to %d letters, digits and _ - . : /", name, holdfast.MaxName)
	case e.started:
		return refuse(true, "kind %q: register handlers before Run", name)
	case work == nil:
		return refuse(true, "kind %q: its handler is nil; give a function", name)
	case e.kinds[name] != nil:
		return refuse(true, "kind %q: it has a handler already; register each kind once", name)
	case len(how) > 1:
		return refuse(true, "kind %q: %d Kind values given; give one", name, len(how))
	case len(how) == 1 && (how[0].Timeout < 0 || how[0].Timeout > holdfast.MaxDelay):
		return refuse(true, "kind %q: Timeout is %v; give a positive duration, or 0 for the engine's", name, how[0].Timeout)
	case len(how) == 1:
		return checkRules(fmt.Sprintf("kind %q: ", name), e.rulesOf(how[0]))
	}
	return nil
}

// checkRules refuses a policy that makes no sense.
func checkRules(where string, rules failure.Rules) error {
	if err := rules.Check(); err != nil {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: where + err.Error(), Cause: err}
	}
	return nil
}

// rulesOf completes a kind's rules from the engine's.
func (e *Engine) rulesOf(given Kind) failure.Rules {
	rules := e.rules
	rules.Policy = given.Policy
	if given.Classify != nil {
		rules.Classify = given.Classify
	}
	rules.Dependency = given.Dependency
	return rules
}
