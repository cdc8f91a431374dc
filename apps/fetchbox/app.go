package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/fetch"
	"github.com/holdfastdev/holdfast/apps/fetchbox/handler"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// An app is one process of FetchBox.
type app struct {
	set      settings
	jobs     store.Store
	operator *ops.Service
	log      *slog.Logger
	metrics  *metrics

	transfer transfer
	worker   *work.Worker
	intake   *intake.Intake
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
}

// open opens everything that a process needs.
func open(ctx context.Context, set settings, log *slog.Logger) (*app, error) {
	a := &app{set: set, log: log}
	if err := a.openStore(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	if err := a.openRest(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// openRest opens everything but the store.
func (a *app) openRest(ctx context.Context) error {
	if err := a.openTransfer(ctx); err != nil {
		return err
	}
	if err := a.openLedger(); err != nil {
		return err
	}
	if err := a.openStream(); err != nil {
		return err
	}
	a.connect()
	return nil
}

// connect makes the parts that work with what was opened.
func (a *app) connect() {
	a.outbox = &deadletter.Outbox{Store: a.jobs, Stream: a.stream, Kind: work.Task{}.Kind()}
	a.replays = &replay.Runner{Store: a.jobs, Stream: a.stream}
	t, limits := &a.transfer, &a.set.Limits
	a.metrics = newMetrics(a.operator, a.outbox, t.spool, t.proxies)
	a.outbox.Published = a.metrics.observeDeadLetter
	a.worker = work.New(work.Config{
		Store: a.jobs, Spool: t.spool, Fetcher: t.fetcher, Handlers: t.handlers, Bucket: t.bucket, Log: a.log, Downloaded: a.metrics.observeDownload,
		Limits: work.Limits{Download: a.set.Download.Time, Base: limits.Base, Crashes: limits.Crashes, CountNoProxy: limits.CountNoProxy},
	})
	a.intake = intake.New(intake.Config{
		Store: a.jobs, Fetcher: t.fetcher, Proxies: t.proxies, Handlers: t.handlers, Log: a.log, Failed: a.metrics.observeIntakeFailure,
		AtOnce: a.set.Intakes, Downloads: limits.Downloads, Storage: limits.Storage,
	})
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
	return ledger.Open(file, ledger.Config{Kind: work.Task{}.Kind(), Letter: deadletter.EventPublished, Retryable: func(name string) bool { return code.Of(name).Retryable }})
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
