package telemetry_test

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/telemetry"
	"github.com/holdfastdev/holdfast/worker"
)

func Example() {
	var jobs store.Store
	// README start
	tracing := telemetry.NewTracing(nil) // by the process's OpenTelemetry provider
	w, err := worker.New(jobs, worker.Config{Engine: engine.Config{
		Middleware: []func(engine.Handler) engine.Handler{tracing.Middleware()}, // a span for each attempt
	}})
	must(err)
	enqueuer := tracing.Enqueuer(jobs) // a span for each enqueue; attempts are linked to it

	metrics := telemetry.New(telemetry.Config{Source: w.Operator, Version: "1.0.0"})
	w.Observe(metrics.ObserveAttempt)
	must(prometheus.Register(metrics))             // in the registry of the application,
	http.Handle("GET /metrics", metrics.Handler()) // or on a page of its own
	// README end
	_ = enqueuer
}
