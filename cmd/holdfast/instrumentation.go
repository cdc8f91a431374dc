package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/telemetry"
	"github.com/holdfastdev/holdfast/telemetry/export"
)

// An instrumentation collects the metrics and traces of a server process.
type instrumentation struct {
	metrics *telemetry.Metrics
	tracing *telemetry.Tracing
	close   func(context.Context) error // exports the remaining traces and the last metrics
}

// newInstrumentation sets up metrics and tracing. Traces and metrics are exported as the OTEL_* variables of the environment configure, or not at all.
func (s *serverProcess) newInstrumentation(ctx context.Context) (*instrumentation, error) {
	version := thisBuild().Version
	spans, closeSpans, err := export.Open(ctx, version)
	if err != nil {
		return nil, exportError("traces", err)
	}
	meters, closeMeters, err := export.OpenMetrics(ctx, version)
	if err != nil {
		return nil, errors.Join(exportError("metrics", err), closeSpans(ctx))
	}
	return &instrumentation{
		metrics: telemetry.New(telemetry.Config{Source: s.operator, Version: version, MeterProvider: meters}),
		tracing: telemetry.NewTracing(spans),
		close:   func(ctx context.Context) error { return errors.Join(closeMeters(ctx), closeSpans(ctx)) },
	}, nil
}

func exportError(what string, err error) error {
	return &usageError{fmt.Errorf("cannot set up the export of %s: %w; check OTEL_EXPORTER_OTLP_ENDPOINT and the other OTEL_* variables", what, err)}
}

// middleware traces the attempts of the engine.
func (w *instrumentation) middleware() []func(next engine.Handler) engine.Handler {
	return []func(next engine.Handler) engine.Handler{w.tracing.Middleware()}
}

// enqueuer traces jobs that are enqueued over HTTP.
func (w *instrumentation) enqueuer(to holdfast.Enqueuer) holdfast.Enqueuer {
	return w.tracing.Enqueuer(to)
}

// handler traces every request.
func (w *instrumentation) handler(next http.Handler) http.Handler { return w.tracing.Serve(next) }
