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

// A watch counts and traces what a server process does.
type watch struct {
	metrics *telemetry.Metrics
	tracing *telemetry.Tracing
	close   func(context.Context) error // sends what is left
}

// newWatch sets it up. Traces go where the environment says, if anywhere.
func (s *site) newWatch(ctx context.Context) (*watch, error) {
	version := thisBuild().Version
	provider, closing, err := export.Open(ctx, version)
	if err != nil {
		return nil, &usageError{fmt.Errorf("traces cannot be exported as OTEL_EXPORTER_OTLP_ENDPOINT and its like say: %w", err)}
	}
	return &watch{
		metrics: telemetry.New(telemetry.Config{Desk: s.desk, Version: version}),
		tracing: telemetry.NewTracing(provider), close: closing,
	}, nil
}

func (w *watch) around() []func(next engine.Handler) engine.Handler {
	return []func(next engine.Handler) engine.Handler{w.tracing.Around()}
}

// enqueuer makes a span of what is enqueued over HTTP.
func (w *watch) enqueuer(to holdfast.Enqueuer) holdfast.Enqueuer { return w.tracing.Enqueuer(to) }

// handler makes a span of every request.
func (w *watch) handler(next http.Handler) http.Handler { return w.tracing.Serve(next) }
