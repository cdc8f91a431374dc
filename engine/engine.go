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

	// In returns the store as a transaction of a handler sees it (Job.CompleteIn).
	In(tx any) store.Tx
	AdvanceGroups(ctx context.Context, limit int) (int, error)
	Sequence(ctx context.Context, limit int) (int, error)
	Purge(ctx context.Context, p store.Purge) (store.PurgeResult, error)
	DeleteHistory(ctx context.Context, history string, older time.Duration, limit int) (int, error)
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
	policies  *policies
	budgets   *ownerBudgets
	breakers  *breakers
	announcer *announcer
	deadlines *startDeadlines

	// The path of a job.
	claimer *claimer
	leases  *leaseTable
	runner  *runner
	settler *settler

	keeper  *leaseKeeper
	sweeper *sweeper
	remote  *remoteReports
	duties  *dutyRunner
	halt    *halt
}

// New creates an engine. An invalid Config is refused with an error that names every problem.
func New(db Store, cfg Config) (*Engine, error) {
	rules := failure.Rules{Taxonomy: cfg.Taxonomy, Classify: cfg.Classify, Policy: cfg.Policy}
	if err := errors.Join(refuse(db == nil, "the store is nil: open one with anystore.Open"), cfg.prepare(), checkRules("", rules)); err != nil {
		return nil, err
	}
	c := newCore(db, cfg)

	// Parts that know no attempt: what attempts are decided by, and the duties.
	duties := newDutyRunner(c)
	deps := newDependencies(cfg.Dependencies)
	leases := newLeaseTable(&c.cfg)
	kinds := newRegistry(c, deps, leases, rules)
	policies := newPolicies(c, kinds)
	budgets := &ownerBudgets{core: c, policy: policies.active}
	presence := &presence{core: c, registry: kinds, policies: policies, leases: leases}

	// What the steps of the path of a job share besides the leases of this process: the outcomes on their way to the settler, and the hooks.
	outcomes := newOutcomeQueue()
	attempts := &attemptMaker{core: c, registry: kinds, deps: deps, leases: leases}
	announcer := newAnnouncer(c, leases)
	deadlines := &startDeadlines{core: c, announcer: announcer}

	holds := &handlerHolds{core: c}
	gate := &breakerGate{core: c, policies: policies, deps: deps, holds: holds}
	prober := &prober{core: c, policies: policies, duties: duties}
	breakers := &breakers{
		core: c, policies: policies, deps: deps, gate: gate, holds: holds, prober: prober, announcer: announcer, leases: leases, outcomes: outcomes,
		updating: make(chan struct{}, 1),
	}

	// The path of a job, from its end to its beginning: each step is given the next one.
	settler := &settler{
		core: c, policies: policies, gate: gate, breakers: breakers, budgets: budgets, deadlines: deadlines, announcer: announcer, leases: leases, outcomes: outcomes,
	}
	runner := &runner{core: c, gate: gate, budgets: budgets, leases: leases, outcomes: outcomes, idle: make(chan *attempt)}
	runner.maxIdle.Store(int64(c.cfg.Slots))
	claimer := &claimer{
		core: c, registry: kinds, policies: policies, presence: presence, attempts: attempts, leases: leases, runner: runner, outcomes: outcomes,
	}

	e := &Engine{
		core: c, registry: kinds, policies: policies, budgets: budgets, breakers: breakers, announcer: announcer, deadlines: deadlines,
		claimer: claimer, leases: leases, runner: runner, settler: settler,
		keeper:  &leaseKeeper{core: c, leases: leases, outcomes: outcomes, runner: runner, presence: presence},
		sweeper: &sweeper{core: c, attempts: attempts, leases: leases, outcomes: outcomes},
		remote: &remoteReports{
			core: c, policies: policies, budgets: budgets, breakers: breakers, attempts: attempts, settler: settler, announcer: announcer,
		},
		duties: duties,
		halt:   newHalt(),
	}
	duties.intake, duties.upkeep = e.intakeDuties(), e.leaseDuties()
	duties.control(dutyProbes)
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
	defer close(e.halt.done)
	defer e.halt.request()
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	defer context.AfterFunc(e.halt.requested, stopClaiming)()

	var intake, upkeep, settler, hooks sync.WaitGroup
	renewing, stopRenewing := context.WithCancel(e.storeCtx)
	defer stopRenewing()
	for _, d := range e.duties.intake {
		intake.Go(func() { e.duties.run(claiming, d) })
	}
	for _, d := range e.duties.upkeep {
		upkeep.Go(func() { e.duties.run(renewing, d) })
	}
	upkeep.Go(e.logDurability)
	settler.Go(e.settler.settle)
	hooks.Go(e.announcer.run)

	<-claiming.Done()
	err := e.drain(&intake, &settler)
	e.remote.stop(e.lastSettleTimeout())
	stopRenewing()
	upkeep.Wait()
	waitFor(&e.breakers.prober.inProgress, e.cfg.AbandonAfter)
	e.announcer.close()
	waitFor(&hooks, e.cfg.AbandonAfter)
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
	for _, d := range slices.Concat(e.duties.intake, e.duties.upkeep) {
		e.duties.control(d.name) // before the first requests are read, which apply to the duties that exist then
	}
	e.runner.handlerCtx = context.WithoutCancel(ctx)
	e.storeCtx, e.cancelStore = context.WithCancel(e.runner.handlerCtx)
	e.remote.start()
	return nil
}

// SettleReports settles the outcomes of attempts that remote workers made, exactly as if this engine had made them. answers holds one entry for each report: nil
// if its settlement is written, ErrLeaseLost if another worker has the job. An err means that nothing was written or that the result is unknown:
// the caller should report again. Reporting again is safe: a settlement that was written before is answered with nil and counted once.
//
// A kind without a handler here uses the engine's rules and the policy for its name. It works only while the engine runs; otherwise it returns
// ErrUnavailable. It is safe for concurrent use.
func (e *Engine) SettleReports(ctx context.Context, reports []RemoteReport) (answers []error, err error) {
	return e.remote.settle(ctx, reports)
}

// ReserveRetries counts the retries among jobs that were claimed for a remote worker against the budgets of their owners, as the engine does for its own. It returns
// the leases that may run and releases the others at no cost. Reports of the returned leases set Rationed. An engine that is not running returns all
// leases.
func (e *Engine) ReserveRetries(ctx context.Context, leases []store.Lease) []store.Lease {
	return e.remote.reserveRetries(ctx, leases)
}

// Stop requests a graceful stop and waits until Run has returned. If ctx ends first, the grace period is over: handlers' contexts end at once,
// and Stop still waits for Run and then returns ctx's error. To stop without a grace period, call Stop with a context that has ended.
func (e *Engine) Stop(ctx context.Context) error {
	e.halt.request()
	if !e.registry.hasStarted() {
		return nil
	}
	select {
	case <-e.halt.done:
		return nil
	case <-ctx.Done():
		e.halt.hurry()
	}
	<-e.halt.done
	return context.Cause(ctx)
}
