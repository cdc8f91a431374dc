package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A Store is the part of store.Store that an engine uses.
type Store interface {
	store.Claimer
	store.Maintainer
	reader

	AdvanceGroups(ctx context.Context, limit int) (int, error)
	Sequence(ctx context.Context, limit int) (int, error)
	Purge(ctx context.Context, p store.Purge) (store.PurgeResult, error)
	DeleteHistory(ctx context.Context, shelf string, older time.Duration, limit int) (int, error)
	Artifacts(ctx context.Context, f store.ArtifactFilter) ([]store.Artifact, error)
}

// A reader answers the engine's questions about jobs, holds and other workers. It is a part of store.Inspector.
type reader interface {
	Jobs(ctx context.Context, f store.Filter) (jobs []holdfast.Job, cursor string, err error)
	Holds(ctx context.Context) ([]store.Hold, error)
	Workers(ctx context.Context) ([]store.WorkerInfo, error)
	RetryStats(ctx context.Context, within time.Duration) ([]store.RetryStats, error)
}

// An Engine runs the jobs of its registered kinds until it is stopped. Any number of engines, in any number of processes, may share a store.
// No job is lost if an engine or its process dies at any moment: its leases expire and another engine reclaims the jobs.
//
// All methods are safe for concurrent use. Handlers are registered before Run.
type Engine struct {
	*core
	registry  *registry
	duties    *dutyRunner
	policies  *policies
	budgets   *ownerBudgets
	deadlines *startDeadlines
	announcer *announcer
	breakers  *breakers
	settler   *settler
	runner    *runner
	claimer   *claimer
	keeper    *leaseKeeper
	presence  *presence

	leases   *leaseTable
	outcomes *outcomeQueue
	attempts *attemptMaker

	remote remoteReports

	intake []dutySpec // end when the engine is asked to stop
	upkeep []dutySpec // run until the last settlement is written

	stop, hurry func()          // request a graceful stop; end its grace period
	stopping    context.Context // ends when stop is called
	hurrying    context.Context // ends when hurry is called
	stopped     chan struct{}   // closed when Run has returned
}

// New creates an engine. An invalid Config is refused with an error that names every problem.
func New(db Store, cfg Config) (*Engine, error) {
	rules := failure.Rules{Taxonomy: cfg.Taxonomy, Classify: cfg.Classify, Policy: cfg.Policy}
	if err := errors.Join(refuse(db == nil, "the store is nil: open one with anystore.Open"), cfg.prepare(), checkRules("", rules)); err != nil {
		return nil, err
	}
	c := newCore(db, cfg)
	deps := newDependencies(cfg.Dependencies)
	kinds := newRegistry(c, deps, rules)
	duties := newDutyRunner(c)
	policies := newPolicies(c, kinds)
	budgets := &ownerBudgets{core: c, policy: policies.active}
	leases, outcomes := newLeaseTable(cfg.Slots), newOutcomeQueue()
	announcer := newAnnouncer(c, leases)
	deadlines := &startDeadlines{core: c, announcer: announcer}
	holds := &handlerHolds{core: c}
	gate := &breakerGate{core: c, policies: policies, deps: deps, holds: holds}
	breakers := &breakers{
		core: c, policies: policies, deps: deps, gate: gate, holds: holds, announcer: announcer, leases: leases, outcomes: outcomes,
		prober: &prober{core: c, policies: policies, duties: duties},
	}
	settler := &settler{
		core: c, policies: policies, gate: gate, breakers: breakers, budgets: budgets, deadlines: deadlines,
		announcer: announcer, leases: leases, outcomes: outcomes,
	}
	runner := &runner{core: c, gate: gate, budgets: budgets, leases: leases, outcomes: outcomes, idle: make(chan *attempt)}
	attempts := &attemptMaker{core: c, registry: kinds, deps: deps, leases: leases}
	presence := &presence{core: c, registry: kinds, policies: policies}
	e := &Engine{
		core:      c,
		registry:  kinds,
		duties:    duties,
		policies:  policies,
		budgets:   budgets,
		deadlines: deadlines,
		announcer: announcer,
		breakers:  breakers,
		settler:   settler,
		runner:    runner,
		claimer: &claimer{
			core: c, registry: kinds, policies: policies, presence: presence, attempts: attempts, leases: leases, runner: runner, outcomes: outcomes,
		},
		keeper:   &leaseKeeper{core: c, leases: leases, outcomes: outcomes, runner: runner, presence: presence},
		presence: presence,
		leases:   leases,
		outcomes: outcomes,
		attempts: attempts,
		stopped:  make(chan struct{}),
	}
	e.duties.control(dutyProbes)
	e.intake, e.upkeep = e.intakeDuties(), e.leaseDuties()
	e.stopping, e.stop = context.WithCancel(context.Background())
	e.hurrying, e.hurry = context.WithCancel(context.Background())
	return e, nil
}

// Worker returns the worker name under which this engine holds leases.
func (e *Engine) Worker() string { return e.worker }

// Run runs jobs until ctx ends or Stop is called, then stops gracefully: it claims nothing more, gives handlers Config.Grace to return, releases
// the jobs that do not finish, and returns after the last settlement is written. Leases are renewed all the while. It returns nil after a
// graceful stop; otherwise the error says how many settlements could not be written. Those jobs are reclaimed when their leases expire.
//
// Run returns at once, with every problem, if a handler registration was refused. An engine runs once.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer close(e.stopped)
	defer e.stop()
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	defer context.AfterFunc(e.stopping, stopClaiming)()

	var intake, upkeep, settler, hooks sync.WaitGroup
	renewing, stopRenewing := context.WithCancel(e.storeCtx)
	defer stopRenewing()
	for _, d := range e.intake {
		intake.Go(func() { e.duties.run(claiming, d) })
	}
	for _, d := range e.upkeep {
		upkeep.Go(func() { e.duties.run(renewing, d) })
	}
	upkeep.Go(e.logDurability)
	settler.Go(e.settler.settle)
	hooks.Go(e.announcer.run)

	<-claiming.Done()
	err := e.drain(&intake, &settler)
	e.stopReports()
	stopRenewing()
	upkeep.Wait()
	e.waitFor(&e.breakers.prober.inProgress, e.cfg.AbandonAfter)
	close(e.announcer.calls)
	e.waitFor(&hooks, e.cfg.AbandonAfter)
	err = errors.Join(err, e.leave())
	e.registry.cancelDeadlines()
	e.cancelStore()
	return err
}

// begin refuses to run with problems, naming all of them, and sets up the contexts.
func (e *Engine) begin(ctx context.Context) error {
	if err := e.registry.start(); err != nil {
		return err
	}
	e.policies.start()
	for _, d := range slices.Concat(e.intake, e.upkeep) {
		e.duties.control(d.name) // before the first requests are read, which apply to the duties that exist then
	}
	e.runner.handlerCtx = context.WithoutCancel(ctx)
	e.storeCtx, e.cancelStore = context.WithCancel(e.runner.handlerCtx)
	e.remote.start()
	return nil
}

// Stop requests a graceful stop and waits until Run has returned. If ctx ends first, the grace period is over: handlers' contexts end at once,
// and Stop still waits for Run and then returns ctx's error. To stop without a grace period, call Stop with a context that has ended.
func (e *Engine) Stop(ctx context.Context) error {
	e.stop()
	if !e.registry.hasStarted() {
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
