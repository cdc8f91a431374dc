package main

import (
	"context"
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
	close   func(context.Context) error // exports the remaining traces
}

// newInstrumentation sets up metrics and tracing. Traces are exported as the OTEL_* variables of the environment configure, or not at all.
func (s *serverProcess) newInstrumentation(ctx context.Context) (*instrumentation, error) {
	version := thisBuild().Version
	provider, closing, err := export.Open(ctx, version)
	if err != nil {
		return nil, &usageError{fmt.Errorf("cannot set up the export of traces: %w; check OTEL_EXPORTER_OTLP_ENDPOINT and the other OTEL_* variables", err)}
	}
	return &instrumentation{
		metrics: telemetry.New(telemetry.Config{Source: s.operator, Version: version}),
		tracing: telemetry.NewTracing(provider), close: closing,
	}, nil
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
