// Package export sends spans and metrics to a collector over OTLP/HTTP, configured by the standard OTEL_* variables. It is separate
// from package telemetry, so that only programs that export them have its dependencies.
package export

import (
	"context"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// patience is how long a stop waits for the last spans and metrics to be sent.
const patience = 5 * time.Second

// Open returns a tracer provider. It exports to OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT), with
// headers, timeout, sampler, service name and limits from the other OTEL_* variables. With neither set, or with
// OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER=none, it exports nothing. If the collector is unavailable, spans are lost and
// nothing else is affected. close sends the remaining spans.
func Open(ctx context.Context, version string) (provider trace.TracerProvider, close func(context.Context) error, err error) {
	if !wanted(os.Getenv, "TRACES") {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	about, err := resourceOf(ctx, version)
	if err != nil {
		return nil, nil, err
	}
	made := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return made, closing(made.Shutdown), nil
}

// OpenMetrics returns a meter provider for telemetry.Config. It exports the metrics every 60 seconds, or OTEL_METRIC_EXPORT_INTERVAL milliseconds, to
// OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT). With neither set, or with OTEL_SDK_DISABLED or OTEL_METRICS_EXPORTER=none, it returns no
// provider. If the collector is unavailable, the values are sent with the next export. close sends the last values.
func OpenMetrics(ctx context.Context, version string) (provider metric.MeterProvider, close func(context.Context) error, err error) {
	if !wanted(os.Getenv, "METRICS") {
		return nil, func(context.Context) error { return nil }, nil
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	about, err := resourceOf(ctx, version)
	if err != nil {
		return nil, nil, err
	}
	made := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)), sdkmetric.WithResource(about))
	return made, closing(made.Shutdown), nil
}

// closing limits the time of a shutdown.
func closing(shutdown func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, done := context.WithTimeout(ctx, patience)
		defer done()
		return shutdown(ctx)
	}
}

// wanted reports whether a signal, TRACES or METRICS, is to be exported.
func wanted(env func(string) string, signal string) bool {
	if strings.EqualFold(strings.TrimSpace(env("OTEL_SDK_DISABLED")), "true") || strings.TrimSpace(env("OTEL_"+signal+"_EXPORTER")) == "none" {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// resourceOf describes this program. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func resourceOf(ctx context.Context, version string) (*resource.Resource, error) {
	own := []attribute.KeyValue{semconv.ServiceName("holdfast")}
	if version != "" {
		own = append(own, semconv.ServiceVersion(version))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv())
}
