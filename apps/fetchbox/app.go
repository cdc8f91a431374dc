package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/upload"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// dependencyStorage is the name of the object storage as a dependency: its breaker holds resources while it is down.
const dependencyStorage = "storage"

const (
	followInterval = 250 * time.Millisecond // of what follows the feed
	sweepInterval  = 10 * time.Minute
	sharedSweepAge = time.Hour // uploads of other processes on the same bucket may be in progress

	allowance = 10 * time.Minute // what an attempt may take in addition to its download, for handler and upload
)

// An app is one process of FetchBox.
type app struct {
	set      settings
	jobs     store.Store
	operator *ops.Service
	log      *slog.Logger
	metrics  *metrics

	transfer transfer
	ledger   *ledger.Ledger
	server   *deadletter.Server // nil with NATS_URL
	stream   *deadletter.Stream
	outbox   *deadletter.Outbox
	replays  *replay.Runner
	closers  []func() error // in the order of opening
}

// A transfer is what moves a resource from its source into the bucket.
type transfer struct {
	spool    *spool.Spool
	proxies  *proxy.Pools
	fetcher  *fetch.Fetcher
	handlers handler.Set
	bucket   blob.Store
	uploader *upload.Uploader
}

// open opens everything that a process needs.
func open(ctx context.Context, set settings, log *slog.Logger) (_ *app, err error) {
	a := &app{set: set, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if err := a.openStore(ctx); err != nil {
		return nil, err
	}
	if err := a.openTransfer(ctx); err != nil {
		return nil, err
	}
	if err := a.openLedger(); err != nil {
		return nil, err
	}
	if err := a.openStream(); err != nil {
		return nil, err
	}
	a.outbox = &deadletter.Outbox{Store: a.jobs, Stream: a.stream, Kind: Task{}.Kind()}
	a.replays = &replay.Runner{Store: a.jobs, Stream: a.stream}
	a.metrics = newMetrics(a)
	a.outbox.Published = a.metrics.observeDeadLetter
	return a, nil
}

// openStore opens the store, and makes it write the events that the ledger, the dead letters and pages follow.
func (a *app) openStore(ctx context.Context) (err error) {
	if err := setting.MakeFolder(a.set.Store); err != nil {
		return err
	}
	if a.jobs, err = anystore.Open(ctx, a.set.Store); err != nil {
		return err
	}
	a.closers = append(a.closers, a.jobs.Close)
	a.operator = ops.New(a.jobs, a.operatorConfig())
	return a.jobs.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "fetchbox", Events: []string{"*"}}}})
}

func (a *app) openTransfer(ctx context.Context) (err error) {
	config, err := readConfig(a.set.Config)
	if err != nil {
		return err
	}
	t := &a.transfer
	if t.handlers, err = config.handlers(); err != nil {
		return err
	}
	if t.bucket, err = blob.Open(ctx, a.set.Bucket); err != nil {
		return fmt.Errorf("BUCKET: %w", err)
	}
	t.uploader = upload.New(t.bucket)
	if t.spool, err = spool.Open(a.set.Spool, a.set.SpoolBytes); err != nil {
		return fmt.Errorf("SPOOL_DIR: %w", err)
	}
	a.closers = append(a.closers, t.spool.Close)
	if t.proxies, err = proxy.New(proxy.Config{Pools: config.Pools, Network: a.network()}); err != nil {
		return fmt.Errorf("CONFIG: %w", err)
	}
	a.closers = append(a.closers, func() error { t.proxies.Close(); return nil })
	d := &a.set.Download
	t.fetcher, err = fetch.New(fetch.Config{
		Spool: t.spool, Proxies: t.proxies, Limits: fetch.Limits{Size: d.Bytes, Time: d.Time, MinSpeed: d.MinSpeed},
		Hosts: fetch.HostLimits{Concurrency: d.Concurrency, Delay: d.Delay, ByHost: config.Hosts},
	})
	if err != nil {
		return fmt.Errorf("CONFIG: %w", err)
	}
	return nil
}

// network returns which addresses may be called.
func (a *app) network() safehttp.Config {
	cfg := safehttp.Config{Allow: a.set.Download.Networks, Log: a.log}
	if a.set.Download.PrivateOK {
		cfg.AnyPort = true
		for _, all := range []string{"0.0.0.0/0", "::/0"} {
			cfg.Allow = append(cfg.Allow, netip.MustParsePrefix(all))
		}
	}
	return cfg
}

func (a *app) openLedger() (err error) {
	if err := os.MkdirAll(a.set.Data, 0o700); err != nil {
		return fmt.Errorf("DATA_DIR: %w", err)
	}
	a.ledger, err = openBook(filepath.Join(a.set.Data, "ledger.db"))
	if err == nil {
		a.closers = append(a.closers, a.ledger.Close)
	}
	return err
}

// openBook opens a ledger in a file.
func openBook(file string) (*ledger.Ledger, error) {
	return ledger.Open(file, ledger.Config{Kind: Task{}.Kind(), Letter: deadletter.EventPublished, Retryable: func(name string) bool { return code.Of(name).Retryable }})
}

func (a *app) openStream() (err error) {
	url, options := a.set.Nats, []nats.Option(nil)
	if url == "" {
		if a.server, err = deadletter.StartServer(filepath.Join(a.set.Data, "nats"), a.set.NatsAddr); err != nil {
			return fmt.Errorf("NATS_ADDR: %w; off listens nowhere", err)
		}
		a.closers = append(a.closers, func() error { a.server.Close(); return nil })
		options = append(options, a.server.Option())
	}
	if a.stream, err = deadletter.Connect(url, a.set.KeepRecord, options...); err != nil {
		return fmt.Errorf("NATS_URL: %w", err)
	}
	a.closers = append(a.closers, func() error { a.stream.Close(); return nil })
	return nil
}

// close closes everything in the reverse order of opening.
func (a *app) close() error {
	var all []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		all = append(all, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(all...)
}

// engine returns the engine of this process.
func (a *app) engine() (*engine.Engine, error) {
	cfg := engine.Config{
		Queues: []string{queueFetch, queueAccept}, Slots: a.set.Concurrency, Prefetch: -1, // a resource that waits for a slot must not count as processing
		Lease: a.set.Lease, Grace: a.set.Grace, Taxonomy: code.Taxonomy(), Classify: code.Classify, Log: a.log,
		Dependencies: map[string]engine.Dependency{dependencyStorage: {Breaker: storageBreaker, NoBudget: true, Probe: a.probeStorage}},
		Retention:    a.retention(), RetentionWarning: -1, KeepFeed: a.keepFeed(),
		OnAttemptEnd: a.attemptEnded,
		Duties: []engine.Duty{
			{Name: "ledger", Interval: followInterval, Run: a.followFeed},
			{Name: "dead-letters", Interval: followInterval, Run: a.outbox.Step},
			{Name: "replays", Interval: time.Second, Run: a.replays.Step},
			{Name: "sweep", Interval: sweepInterval, Run: a.sweep},
		},
	}
	e, err := engine.New(a.jobs, cfg)
	if err != nil {
		return nil, err
	}
	engine.Handle(e, a.fetch, engine.KindOptions{
		Timeout: a.set.Download.Time + allowance, Policy: a.policy(), Classify: code.Classify, Dependency: dependencyStorage,
	})
	engine.Handle(e, a.seal, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 1000, Backoff: failure.Exponential{Base: time.Second, Factor: 2, Cap: time.Minute}}})
	return e, nil
}

// storageBreaker opens when half of the last twenty uploads failed.
var storageBreaker = breaker.Config{Window: 20, MinCalls: 10, FailureRate: 0.5, OpenFor: 10 * time.Second, OpenMax: 5 * time.Minute}

// policy returns when a resource is retried. The number of attempts is counted by the handler, for downloads and uploads separately; see attemptLimit.
func (a *app) policy() failure.Policy {
	p := code.Limits{Downloads: 2 * maxRetryLimit, Storage: 2 * maxRetryLimit, Base: a.set.Limits.Base}.Policy()
	p.MaxCrashes = a.set.Limits.Crashes
	return p
}

// maxRetryLimit is the largest limit of attempts that a manifest or the settings can have.
const maxRetryLimit = 100

func (a *app) retention() []store.RetentionRule {
	keep := store.RetentionRule{Name: "record", For: a.set.KeepRecord}
	if keep.For == 0 {
		keep.For = store.Forever
	}
	return []store.RetentionRule{keep}
}

// keepFeed returns how long events are kept: as long as records, so that ledger and stream can be built again for every job that there is.
func (a *app) keepFeed() time.Duration {
	if a.set.KeepRecord == 0 {
		return store.Forever
	}
	return a.set.KeepRecord
}

func (a *app) operatorConfig() ops.Config {
	return ops.Config{Taxonomy: code.Taxonomy(), Retention: a.retention(), Breakers: map[string]breaker.Config{dependencyStorage: storageBreaker}}
}

// followFeed is a duty: it brings the ledger up to date.
func (a *app) followFeed(ctx context.Context) error {
	left, missed, err := a.ledger.Step(ctx, a.jobs)
	a.metrics.ledgerBehind.Store(left)
	if missed > 0 {
		a.log.Warn("the ledger missed events that retention had deleted", "event", "ledger_missed", "events", missed)
	}
	if err == nil && a.set.KeepRecord > 0 {
		_, err = a.ledger.Forget(time.Now().Add(-a.set.KeepRecord))
	}
	return err
}

// sweep is a duty: it deletes what uploads and downloads that were cut off left behind, and groups that no manifest was stored for.
func (a *app) sweep(ctx context.Context) error {
	return errors.Join(a.sweepUploads(ctx, sharedSweepAge), a.sweepSpool(ctx), a.sweepGroups(ctx))
}

// sweepAtStart deletes what this process left when it was killed. Unfinished uploads may be of other processes, unless there are none.
func (a *app) sweepAtStart(ctx context.Context) error {
	err := a.sweepSpool(ctx)
	if a.set.alone() {
		err = errors.Join(err, a.sweepUploads(ctx, 0))
	}
	return err
}

// sweepUploads deletes unfinished uploads that began longer ago than age.
func (a *app) sweepUploads(ctx context.Context, age time.Duration) error {
	n, err := a.transfer.uploader.Sweep(ctx, age)
	if err != nil {
		err = fmt.Errorf("unfinished uploads: %w", err)
	}
	if n > 0 {
		a.log.Info("swept unfinished uploads", "event", "swept", "uploads", n)
	}
	return err
}

// sweepSpool deletes spool files whose resource needs them no longer.
func (a *app) sweepSpool(ctx context.Context) error {
	var asking error
	n, err := a.transfer.spool.Sweep(func(name string) bool {
		id, bad := holdfast.ParseID(name)
		if bad != nil {
			return false
		}
		job, jobErr := a.jobs.Job(ctx, id)
		if errors.Is(jobErr, holdfast.ErrNotFound) || errors.Is(jobErr, holdfast.ErrPurged) {
			return false
		}
		asking = errors.Join(asking, jobErr)
		return jobErr != nil || !job.State.Terminal()
	})
	if n > 0 {
		a.log.Info("swept spool files", "event", "swept", "spool_files", n)
	}
	return errors.Join(err, asking)
}

// sweepGroups cancels open groups without members: their manifest was never stored.
func (a *app) sweepGroups(ctx context.Context) error {
	cursor := ""
	for {
		groups, next, err := a.jobs.Groups(ctx, store.GroupFilter{State: holdfast.GroupOpen, Limit: 200, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, g := range groups {
			if g.AsOf.Sub(g.CreatedAt) < sharedSweepAge {
				continue
			}
			if g, err = a.jobs.Group(ctx, g.ID); err != nil {
				return err
			}
			if g.Members.Total == 0 {
				err = a.jobs.CancelGroup(ctx, store.Intervention{Group: g.ID, Actor: "fetchbox", Reason: "its manifest was never stored"})
				if err != nil && !errors.Is(err, holdfast.ErrConflict) {
					return err
				}
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
