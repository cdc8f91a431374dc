package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
)

// A Store is what an engine needs of one.
type Store interface {
	holdfast.Worker
	holdfast.Keeper
	reader

	Conclude(ctx context.Context, limit int) (int, error)
	Sequence(ctx context.Context, limit int) (int, error)
	Purge(ctx context.Context, p holdfast.Purge) (holdfast.Purged, error)
	Forget(ctx context.Context, shelf string, older time.Duration, limit int) (int, error)
	Artifacts(ctx context.Context, f holdfast.ArtifactFilter) ([]holdfast.Artifact, error)
}

// A reader answers what an engine asks about jobs and other workers. It is a part of holdfast.Inspector.
type reader interface {
	Jobs(ctx context.Context, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error)
	Holds(ctx context.Context) ([]holdfast.Hold, error)
	Workers(ctx context.Context) ([]holdfast.Presence, error)
	Experience(ctx context.Context, within time.Duration) ([]holdfast.Experience, error)
}

// An Engine runs the jobs of its kinds until it is stopped. Any number of engines, in any number of processes, may share a
// store. Losing one at any moment loses no job.
type Engine struct {
	store  Store
	cfg    Config
	worker string        // unique to this engine
	rules  failure.Rules // of kinds that have none of their own

	mu       sync.Mutex
	kinds    map[string]*kind // fixed once started,
	handled  []string         // and so are their names, in order
	problems []error
	started  bool

	book     *book
	outbox   outbox
	tellings chan telling
	rested   chan *attempt // to a goroutine that rests
	resting  atomic.Int64  // how many do
	wakes    chan struct{} // there may be something to claim, and room for it
	cancels  chan struct{} // somebody may have asked a job to stop
	grumbles grumbles

	deps       dependencies
	clock      clock
	called     chan struct{} // the breakers have something to look at
	breaking   sync.Mutex    // held by whoever looks after the circuits
	outdated   atomic.Bool   // what is known of the circuits is not what the store goes by
	probes     sync.WaitGroup
	wishes     wishes
	promises   promises
	control    control
	rulings    *rulings
	judgements judgements
	spending   spending
	accounts   accounts
	recovering atomic.Bool // some circuit lets through more and more
	hopes      hopes

	circuitsRead time.Time // when the circuits were last read, and
	keepings     int       // how often one was kept; the breakers' alone

	declared atomic.Bool   // the store knows what this worker's kinds call,
	governed atomic.Bool   // and what the policy limits: then it claims
	ruled    chan struct{} // closed then

	jury jury

	stationing  sync.Mutex
	stations    map[string]*station
	ordered     chan struct{} // closed when orders were asked for once
	firstOrders sync.Once
	reporting   reporting

	happened   chan struct{} // there may be something for the feed to tell
	endings    chan struct{} // a member of a group may have ended
	sequencing rhythm        // the sequence duty's alone
	concluding rhythm        // the group duty's alone
	calms      map[string]calm
	pass       pass

	presented time.Time // when this worker last said it is alive; renew's alone
	published string    // the name of the record with this engine's own codes and policies; empty: it has none
	codesRead time.Time // when the codes of others were last read; the policy duty's alone

	stop, hurry func()          // ask for a graceful stop; ask for it to be quick
	stopping    context.Context // ended by stop
	hurrying    context.Context // ended by hurry
	stopped     chan struct{}   // closed when Run has returned

	working context.Context // what handlers' contexts carry. It never ends: the book ends each by itself, which is cheaper
	keeping context.Context // the parent of every store call: it outlives the handlers
	letGo   context.CancelFunc
}

// New makes an engine. A Config that cannot work is refused whole: the error names every problem.
func New(store Store, cfg Config) (*Engine, error) {
	rules := failure.Rules{Taxonomy: cfg.Taxonomy, Classify: cfg.Classify, Policy: cfg.Policy}
	if err := errors.Join(refuse(store == nil, "the store is nil: open one with store.Open"), cfg.prepare(), checkRules("", rules)); err != nil {
		return nil, err
	}
	e := &Engine{
		store: store, cfg: cfg,
		worker:   fmt.Sprintf("%s/%d/%x", cfg.Name, os.Getpid(), randomTail()),
		rules:    rules,
		kinds:    make(map[string]*kind),
		book:     newBook(cfg.Slots),
		outbox:   outbox{sign: make(chan struct{}, 1)},
		tellings: make(chan telling, maxTold),
		rested:   make(chan *attempt),
		wakes:    make(chan struct{}, 1),
		cancels:  make(chan struct{}, 1),
		called:   make(chan struct{}, 1),
		rulings:  newRulings(cfg.Policies, cfg.Taxonomy),
		stopped:  make(chan struct{}),
		stations: make(map[string]*station),
		ordered:  make(chan struct{}),
		happened: make(chan struct{}, 1),
		ruled:    make(chan struct{}),
		endings:  make(chan struct{}, 1),
	}
	for name := range cfg.Dependencies {
		e.deps.add(name, true)
	}
	e.station(dutyProbes)
	e.stopping, e.stop = context.WithCancel(context.Background())
	e.hurrying, e.hurry = context.WithCancel(context.Background())
	return e, nil
}

// randomTail keeps two engines of one process and name apart.
func randomTail() []byte {
	id := holdfast.NewID()
	return id[10:]
}

// Worker is the name under which this engine holds jobs.
func (e *Engine) Worker() string { return e.worker }

// Run works until ctx ends or Stop is called, then stops gracefully: it claims nothing more, lets handlers finish within
// Grace, hands back what cannot, and returns after the last settlement is written. It returns nil after a graceful stop,
// and otherwise what could not be written; those jobs are reclaimed when their leases end. An engine runs once.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer close(e.stopped)
	defer e.stop()
	claiming, halt := context.WithCancel(ctx)
	defer halt()
	defer context.AfterFunc(e.stopping, halt)()

	var front, back, station, hook sync.WaitGroup
	renewing, rest := context.WithCancel(e.keeping)
	defer rest()
	for _, d := range e.frontDuties() {
		front.Go(func() { e.keep(claiming, d) })
	}
	for _, d := range e.backDuties() {
		back.Go(func() { e.keep(renewing, d) })
	}
	back.Go(e.logDurability)
	station.Go(e.settle)
	hook.Go(e.tell)

	<-claiming.Done()
	err := e.drain(&front, &station)
	e.dismiss()
	rest()
	back.Wait()
	e.await(&e.probes, e.cfg.Patience)
	close(e.tellings)
	e.await(&hook, e.cfg.Patience)
	err = errors.Join(err, e.leave())
	for _, k := range e.kinds {
		k.windows.shut()
	}
	e.letGo()
	return err
}

// begin refuses what cannot run, all problems at once, and sets up the contexts.
func (e *Engine) begin(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return refuse(true, "this engine has run already: make a new one with engine.New")
	}
	if err := errors.Join(e.problems...); err != nil {
		return err
	}
	e.started = true
	e.handled = slices.Sorted(maps.Keys(e.kinds))
	e.published = catalog.Name(e.cfg.Taxonomy, e.inGo())
	for _, d := range slices.Concat(e.frontDuties(), e.backDuties()) {
		e.station(d.name) // before the first order is read: it must find everybody
	}
	e.working = context.WithoutCancel(ctx)
	e.keeping, e.letGo = context.WithCancel(e.working)
	e.jury.sit()
	return nil
}

// logDurability logs the settings of the store's database under which acknowledged jobs can be lost, if the store knows any.
func (e *Engine) logDurability() {
	s, ok := e.store.(interface {
		Warnings(ctx context.Context) []string
	})
	if !ok {
		return
	}
	ctx, cancel := e.call(e.cfg.Patience)
	defer cancel()
	for _, problem := range s.Warnings(ctx) {
		e.cfg.Log.Warn("the store's database is not set up for durability", "event", "durability", "problem", problem)
	}
}

// call is the context of one store call. Every call has a deadline, and none is cut short by a stop.
func (e *Engine) call(within time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.keeping, within)
}

// Stop asks for a graceful stop and waits until Run has returned. When ctx ends first the grace is over: handlers' contexts
// end at once. So Stop with a context that has ended already stops now. The answer is ctx's error in that case.
func (e *Engine) Stop(ctx context.Context) error {
	e.stop()
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	if !started {
		return nil
	}
	select {
	case <-e.stopped:
		return nil
	case <-ctx.Done():
		e.hurry()
	}
	<-e.stopped
	return context.Cause(ctx)
}
