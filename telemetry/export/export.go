// Package export sends spans to a collector over OTLP/HTTP, configured by the standard OTEL_* variables. It is separate
// from package telemetry, so that only programs that export spans have its dependencies.
package export

import (
	"context"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// patience is how long a stop waits for the last spans to be sent.
const patience = 5 * time.Second

// Open returns a tracer provider. It exports to OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT), with
// headers, timeout, sampler, service name and limits from the other OTEL_* variables. With neither set, or with
// OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER=none, it exports nothing. If the collector is unavailable, spans are lost and
// nothing else is affected. close sends the remaining spans.
func Open(ctx context.Context, version string) (provider trace.TracerProvider, close func(context.Context) error, err error) {
	if !wanted(os.Getenv) {
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
	return made, func(ctx context.Context) error {
		ctx, done := context.WithTimeout(ctx, patience)
		defer done()
		return made.Shutdown(ctx)
	}, nil
}

// wanted reports whether spans are to be exported.
func wanted(env func(string) string) bool {
	if strings.EqualFold(strings.TrimSpace(env("OTEL_SDK_DISABLED")), "true") || strings.TrimSpace(env("OTEL_TRACES_EXPORTER")) == "none" {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// resourceOf describes this program. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func resourceOf(ctx context.Context, version string) (*resource.Resource, error) {
	own := []attribute.KeyValue{semconv.ServiceName("holdfast")}
	if version != "" {
		own = append(own, semconv.ServiceVersion(version))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv())
}
