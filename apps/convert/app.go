package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/telemetry"
)

// An app is one process of the converter, whichever parts of it run here: they meet in the store and among the files.
type app struct {
	set     settings
	jobs    holdfast.Store
	desk    *ops.Service
	uploads blob.Store
	results blob.Store
	http    *http.Client // to the gateway
	log     *slog.Logger
	watch   *telemetry.Metrics

	uploading, following limit.AtOnce
	perOwner, perAddress *limit.Rates // of uploads
	badKeys              *limit.Rates // of addresses
	keys                 keyring
	seal                 sealKeeper
}

// open opens the store and the places for files.
func open(ctx context.Context, set settings, log *slog.Logger) (*app, error) {
	jobs, err := store.Open(ctx, set.Store)
	if err != nil {
		return nil, err
	}
	a := &app{
		set: set, jobs: jobs, http: &http.Client{}, log: log,
		perOwner: newRates(set.UploadsPerMinute), perAddress: newRates(addressRates * set.UploadsPerMinute), badKeys: newRates(badKeysPerMinute),
	}
	for _, place := range []struct {
		to   *blob.Store
		name string
		at   string
	}{{&a.uploads, "UPLOADS_DIR", set.Uploads}, {&a.results, "RESULTS_DIR", set.Results}} {
		if *place.to, err = blob.Open(ctx, place.at); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", place.name, err), jobs.Close())
		}
	}
	a.desk = ops.New(jobs, a.deskConfig())
	a.watch = telemetry.New(telemetry.Config{Desk: a.desk})
	a.jobs = tallied{jobs, a.watch}
	return a, nil
}

func (a *app) close() error { return a.jobs.Close() }

// engine makes the engine of this process. All processes perform duties (breaker probes, retention, reclaim), whatever they work on.
func (a *app) engine(queues ...string) (*engine.Engine, error) {
	e, err := engine.New(a.jobs, a.watched(a.engineConfig(queues)))
	if err != nil {
		return nil, err
	}
	return e, errors.Join(
		engine.Handle(e, a.convert, a.conversionKind()),
		engine.Handle(e, a.refuse, a.refusalKind()),
	)
}
