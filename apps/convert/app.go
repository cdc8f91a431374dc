package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/keyring"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
	"github.com/holdfastdev/holdfast/telemetry"
)

// An app is one process of the converter: web, worker or both. Several processes work together through the store and the file storage.
type app struct {
	set      settings
	jobs     store.Store
	operator *ops.Service
	uploads  blob.Store
	results  blob.Store
	http     *http.Client // to the gateway
	log      *slog.Logger
	metrics  *telemetry.Metrics

	uploading            limit.AtOnce // uploads in progress
	perOwner, perAddress *limit.Rates // uploads per minute
	keys                 *keyring.Gate
	sessionKey           sessionKeyCache
}

// open opens the store and the file storage.
func open(ctx context.Context, set settings, log *slog.Logger) (*app, error) {
	jobs, err := anystore.Open(ctx, set.Store)
	if err != nil {
		return nil, err
	}
	a := &app{
		set: set, jobs: jobs, http: &http.Client{}, log: log,
		perOwner: newRates(set.UploadsPerMinute), perAddress: newRates(addressFactor * set.UploadsPerMinute), keys: keyring.NewGate(),
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
	a.operator = ops.New(jobs, a.operatorConfig())
	a.metrics = telemetry.New(telemetry.Config{Source: a.operator})
	a.jobs = countingStore{jobs, a.metrics}
	return a, nil
}

func (a *app) close() error { return a.jobs.Close() }

// engine returns the engine of this process. Every process performs the duties (breaker probes, retention, reclaim), whatever queues it claims from.
func (a *app) engine(queues ...string) (*engine.Engine, error) {
	e, err := engine.New(a.jobs, a.withMetrics(a.engineConfig(queues)))
	if err != nil {
		return nil, err
	}
	engine.Handle(e, a.convert, a.conversionKind())
	engine.Handle(e, a.refuse, a.refusalKind())
	return e, nil
}
