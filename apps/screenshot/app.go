package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/internal/setting"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/apps/screenshot/stream"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// An app is one process of the screenshot service.
type app struct {
	set      settings
	log      *slog.Logger
	jobs     store.Store
	operator *ops.Service
	db       *database.DB
	accounts *account.Service
	bucket   blob.Store
	camera   service.Camera
	retries  service.Retries
	service  *service.Service
	metrics  *metrics
	closers  []func() error // in the order of opening
}

// open opens everything that a process needs. camera is what makes pictures; nil: a pool of browsers.
func open(ctx context.Context, set settings, camera service.Camera, log *slog.Logger) (_ *app, err error) {
	a := &app{set: set, log: log, camera: camera}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if err := a.openStore(ctx); err != nil {
		return nil, err
	}
	guard, err := safehttp.New(set.network())
	if err != nil {
		return nil, fmt.Errorf("ALLOW_NETWORKS: %w", err)
	}
	a.closers = append(a.closers, func() error { guard.Close(); return nil })
	if a.bucket, err = blob.Open(ctx, set.Bucket); err != nil {
		return nil, fmt.Errorf("BUCKET: %w", err)
	}
	if a.camera == nil {
		if err := a.openBrowsers(guard); err != nil {
			return nil, err
		}
	}
	if a.retries, err = set.retries(); err != nil {
		return nil, err
	}
	cfg := service.Config{
		Jobs: a.jobs, Operator: a.operator, DB: a.db, Bucket: a.bucket, Camera: a.camera, Guard: guard, Limits: a.limits(), Retries: a.retries, Log: log,
		Email: func(ctx context.Context, user string) (string, error) {
			u, err := a.accounts.User(ctx, user)
			return u.Email, err
		},
		Crashes: set.Crashes, Learned: set.Learned, KeepFiles: set.KeepPicture, LinkLife: set.LinkLife, Base: set.Public, Welcome: int64(set.Welcome), StuckAfter: set.StuckAfter,
	}
	if err := a.openReceivers(&cfg); err != nil {
		return nil, err
	}
	if a.service, err = service.New(ctx, cfg); err != nil {
		return nil, err
	}
	a.accounts, err = account.Open(ctx, a.db, account.Config{KeyPrefix: "shot", Founded: a.service.Welcome})
	if err != nil {
		return nil, err
	}
	a.metrics = newMetrics(a)
	return a, nil
}

// openStore opens the store and the handle for the tables of this service.
func (a *app) openStore(ctx context.Context) (err error) {
	if err := os.MkdirAll(a.set.Data, 0o700); err != nil {
		return fmt.Errorf("DATA_DIR: %w", err)
	}
	if err := setting.MakeFolder(a.set.Store); err != nil {
		return err
	}
	if a.jobs, err = anystore.Open(ctx, a.set.Store); err != nil {
		return err
	}
	a.closers = append(a.closers, a.jobs.Close)
	if a.db, err = database.Open(ctx, a.set.Store); err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	a.closers = append(a.closers, a.db.Close)
	a.operator = ops.New(a.jobs, ops.Config{Taxonomy: code.Taxonomy(), Retention: a.retention()})
	return nil
}

// openReceivers opens the ways to tell of events, as far as they are set.
func (a *app) openReceivers(cfg *service.Config) (err error) {
	if a.set.Mail.Address != "" {
		if cfg.Mailer, err = notice.NewMailer(a.set.Mail); err != nil {
			return fmt.Errorf("MAIL_SERVER: %w", err)
		}
	}
	if a.set.Nats != "" {
		to, err := stream.Connect(a.set.Nats)
		if err != nil {
			return fmt.Errorf("NATS_URL: %w", err)
		}
		a.closers = append(a.closers, func() error { to.Close(); return nil })
		cfg.Stream = to
	}
	return nil
}

func (a *app) openBrowsers(guard *safehttp.Guard) error {
	pool, err := browser.New(browser.Config{
		Path: a.set.Chromium, NoSandbox: a.set.NoSandbox, Size: a.set.Browsers, Guard: guard, Log: a.log, Limits: browser.Limits{Shot: a.limits()},
	})
	if err != nil {
		return fmt.Errorf("the browsers: %w", err)
	}
	a.camera = pool
	a.closers = append(a.closers, func() error { pool.Close(); return nil })
	return nil
}

func (a *app) limits() shot.Limits { return shot.Limits{Timeout: a.set.Timeout, Pixels: a.set.Pixels} }

// close closes everything in the reverse order of opening.
func (a *app) close() error {
	var all []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		all = append(all, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(all...)
}

func (a *app) retention() []store.RetentionRule {
	keep := store.RetentionRule{Name: "record", For: a.set.KeepRecord}
	if keep.For == 0 {
		keep.For = store.Forever
	}
	return []store.RetentionRule{keep}
}

// browserBreaker opens when half of the last pictures failed because of the browsers.
var browserBreaker = breaker.Config{Window: 20, MinCalls: 5, FailureRate: 0.5, OpenFor: 10 * time.Second, OpenMax: 5 * time.Minute}

// engine returns the engine of this process.
func (a *app) engine() (*engine.Engine, error) {
	e, err := engine.New(a.jobs, engine.Config{
		Queues: []string{service.Queue, service.QueueHooks}, Slots: a.set.Browsers + hookSlots, QueueSlots: map[string]int{service.Queue: a.set.Browsers, service.QueueHooks: hookSlots},
		Prefetch: -1, // a shot that waits for a browser must not count as processing
		Lease:    a.set.Lease, Grace: a.set.Grace, Taxonomy: code.Taxonomy(), Classify: code.Classify, Log: a.log,
		Dependencies: map[string]engine.Dependency{code.Browsers: {Breaker: browserBreaker, NoBudget: true, Probe: a.camera.Probe}},
		Policies:     a.retries.Windows,
		Retention:    a.retention(), RetentionWarning: -1,
		OnAttemptEnd: a.attemptEnded, OnBreakerChange: a.breakerChanged, Duties: a.service.Duties(),
	})
	if err != nil {
		return nil, err
	}
	a.service.Register(e)
	return e, nil
}

// hookSlots is how many webhooks a process calls at once.
const hookSlots = 4

func (a *app) attemptEnded(end engine.AttemptEnd) {
	a.metrics.ObserveAttempt(end)
	a.service.ObserveAttempt(end)
}
