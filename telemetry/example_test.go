package telemetry_test

import (
	"context"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/telemetry"
)

// A program that sends its metrics with OpenTelemetry gives its MeterProvider.
func ExampleConfig() {
	ctx := context.Background()
	path, err := os.MkdirTemp("", "holdfast-")
	must(err)
	defer os.RemoveAll(path)
	jobs, err := sqlite.Open(ctx, sqlite.Config{Path: path + "/jobs.db"})
	must(err)
	defer jobs.Close()

	// README start meter
	provider := sdkmetric.NewMeterProvider() // with a reader that exports, as the rest of the program has it
	metrics := telemetry.New(telemetry.Config{
		Source: ops.New(jobs, ops.Config{}), Version: "1.0.0", MeterProvider: provider,
	})
	worker, err := engine.New(jobs, engine.Config{OnAttemptEnd: metrics.ObserveAttempt})
	// README end
	must(err)
	_ = worker
	// Output:
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
