package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// A registry holds the kinds that this engine handles. Handlers are registered before the engine runs; from then on the registry is only read, without
// the lock.
type registry struct {
	*core
	deps   *dependencies
	leases *leaseTable   // has the slots of kinds
	rules  failure.Rules // for kinds without rules of their own

	mu       sync.Mutex
	kinds    map[string]*kind
	names    []string // the sorted names of kinds, known once started
	problems []error  // refused registrations, which start returns
	chunkers []*chunker
	started  bool
}

func newRegistry(c *core, deps *dependencies, leases *leaseTable, rules failure.Rules) *registry {
	return &registry{core: c, deps: deps, leases: leases, rules: rules, kinds: make(map[string]*kind)}
}

// kind is a registered handler with everything that an attempt needs, computed once.
type kind struct {
	name      string
	call      func(ctx context.Context, a *attempt) error // calls the handler, through Config.Middleware
	timeout   time.Duration
	deadlines sharedDeadlines
	rules     failure.Rules
	dep       *dependency // the dependency of jobs that name none
}

// start ends the registration. It returns an error if the engine has run already or if registrations were refused; the error names all of them.
func (r *registry) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return refuse(true, "this engine has run already: create a new one with engine.New")
	}
	if err := errors.Join(r.problems...); err != nil {
		return err
	}
	r.started = true
	r.names = slices.Sorted(maps.Keys(r.kinds))
	return nil
}

// hasStarted reports whether start has succeeded.
func (r *registry) hasStarted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// checkName refuses a name that no kind can have, and, once handlers cannot be registered any more, a kind without a handler.
func (r *registry) checkName(kind string) error {
	if kind == "" || (&store.Hold{Kind: kind, Actor: actorSystem}).Check() != nil || strings.HasSuffix(kind, "*") {
		return refuse(true, "kind %.140q: use 1 to %d letters, digits and _ - . : /", kind, check.MaxName)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return refuse(r.started && r.kinds[kind] == nil, "kind %.140q has no handler in this engine, which handles %s", kind, strings.Join(r.names, ", "))
}

// cancelDeadlines releases the timers of all kinds. It is called when no attempt runs any more.
func (r *registry) cancelDeadlines() {
	for _, k := range r.kinds {
		k.deadlines.cancelAll()
	}
}

// register adds a kind, or records why it is refused. direct does what work does without a Raw job between attempt and handler, which saves a copy of the
// lease; it is nil if there is no such way.
func (r *registry) register(name string, work Handler, direct func(context.Context, *attempt) error, options []KindOptions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		panic(fmt.Sprintf("engine: kind %q: register handlers before Run", name))
	}
	if err := r.checkKind(name, work, options); err != nil {
		r.problems = append(r.problems, err)
		return
	}
	var given KindOptions
	if len(options) == 1 {
		given = options[0]
	}
	for i := len(r.cfg.Middleware) - 1; i >= 0; i-- {
		work = r.cfg.Middleware[i](work)
		if work == nil {
			r.problems = append(r.problems, refuse(true, "kind %q: Middleware[%d] returned nil; return a handler that calls next", name, i))
			return
		}
	}
	k := &kind{name: name, call: direct, timeout: orElse(given.Timeout, r.cfg.Timeout), rules: r.rulesOf(given)}
	if direct == nil || len(r.cfg.Middleware) > 0 {
		k.call = func(ctx context.Context, a *attempt) error {
			return work(ctx, &Raw{Lease: *a.lease, Args: a.lease.Args, attempt: a})
		}
	}
	if given.Dependency != "" {
		k.dep = r.deps.add(given.Dependency, true)
	}
	if given.Slots > 0 {
		r.leases.change(func(t *leaseTable) { setSlots(t.intake.ofKind, name, given.Slots) })
	}
	r.kinds[name] = k
}

// registerChunks adds a kind whose jobs are handled in chunks, or records why it is refused.
func (r *registry) registerChunks(name string, c *chunker, work Handler, direct func(context.Context, *attempt) error, options []KindOptions) {
	slots, timeout := r.cfg.Slots, r.cfg.Timeout
	if len(options) == 1 {
		slots, timeout = orElse(options[0].Slots, slots), orElse(options[0].Timeout, timeout)
	}
	c.size, c.wait = orElse(c.size, slots), orElse(c.wait, defaultChunkWait)
	err := errors.Join(
		refuse(c.size < 0 || c.size > slots, "kind %q: ChunkOptions.Size is %d and its slots are %d; every job of a chunk takes a slot, so raise Slots, or give 1 to %d, or 0 for as many as there are slots", name, c.size, slots, slots),
		refuse(c.wait < 0 || c.wait >= timeout, "kind %q: ChunkOptions.Wait is %v and Timeout is %v; the time limit of an attempt includes the wait, so give less, or 0 for %v", name, c.wait, timeout, defaultChunkWait))
	r.register(name, work, direct, options)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problems = append(r.problems, err)
	}
	r.chunkers = append(r.chunkers, c)
}

// handOverChunks hands over every chunk that waits for more jobs. From then on none waits.
func (r *registry) handOverChunks() {
	for _, c := range r.chunkers {
		c.close()
	}
}

func (r *registry) checkKind(name string, work Handler, options []KindOptions) error {
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
	case r.kinds[name] != nil:
		return refuse(true, "kind %q: it has a handler already; register each kind once", name)
	case len(options) > 1:
		return refuse(true, "kind %q: %d KindOptions given; give one", name, len(options))
	case len(options) == 1 && (options[0].Timeout < 0 || options[0].Timeout > check.MaxDelay):
		return refuse(true, "kind %q: Timeout is %v; give a positive duration, or 0 for the engine's", name, options[0].Timeout)
	case len(options) == 1 && (options[0].Slots < 0 || options[0].Slots > r.cfg.Slots):
		return refuse(true, "kind %q: Slots is %d; give 1 to %d, which is the Slots of all kinds together, or 0 for no limit", name, options[0].Slots, r.cfg.Slots)
	case len(options) == 1:
		return checkRules(fmt.Sprintf("kind %q: ", name), r.rulesOf(options[0]))
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
func (r *registry) rulesOf(given KindOptions) failure.Rules {
	rules := r.rules
	rules.Policy = given.Policy
	if given.Classify != nil {
		rules.Classify = given.Classify
	}
	rules.Dependency = given.Dependency
	return rules
}

// depends returns the dependency of each kind that has one.
func (r *registry) depends() map[string]string {
	all := make(map[string]string)
	for name, k := range r.kinds {
		if k.rules.Dependency != "" {
			all[name] = k.rules.Dependency
		}
	}
	return all
}
