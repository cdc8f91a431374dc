package export_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	proto "google.golang.org/protobuf/proto"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/telemetry"
	"github.com/holdfastdev/holdfast/telemetry/export"
)

// A receiver takes spans and metrics as a collector does.
type receiver struct {
	mu    sync.Mutex
	names []string // of spans or of metrics
	about string
	token string
	path  string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	text, _ := io.ReadAll(body)
	if strings.HasSuffix(req.URL.Path, "/metrics") {
		r.takeMetrics(w, req, text)
		return
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(text, &sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.token = req.URL.Path, req.Header.Get("X-Token")
	for _, of := range sent.ResourceSpans {
		r.about += of.Resource.String()
		for _, in := range of.ScopeSpans {
			for _, span := range in.Spans {
				r.names = append(r.names, span.Name)
			}
		}
	}
}

func TestSpansArriveAtTheCollectorThatTheVariablesName(t *testing.T) {
	var got receiver
	server := httptest.NewServer(&got)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=abc")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	provider, done, err := export.Open(t.Context(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	handler := telemetry.NewTracing(provider).Middleware()(func(context.Context, *engine.Raw) error { return nil })
	lease := store.Lease{Job: holdfast.Job{ID: holdfast.NewID(), Queue: "mail", Kind: "note"}}
	if err := handler(t.Context(), &engine.Raw{Lease: lease}); err != nil {
		t.Fatal(err)
	}
	if err := done(context.Background()); err != nil {
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.names) != 1 || got.names[0] != "process mail" || got.path != "/v1/traces" || got.token != "abc" {
		t.Errorf("arrived: %q at %s with token %q", got.names, got.path, got.token)
	}
	for _, word := range []string{"holdfast", "1.2.3", "deployment.environment.name"} {
		if !strings.Contains(got.about, word) {
			t.Errorf("%q is missing in the resource: %s", word, got.about)
		}
	}
}

func (r *receiver) takeMetrics(w http.ResponseWriter, req *http.Request, text []byte) {
	var sent metrics.ExportMetricsServiceRequest
	if err := proto.Unmarshal(text, &sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.token = req.URL.Path, req.Header.Get("X-Token")
	for _, of := range sent.ResourceMetrics {
		r.about += of.Resource.String()
		for _, in := range of.ScopeMetrics {
			for _, one := range in.Metrics {
				r.names = append(r.names, one.Name)
			}
		}
	}
}

func TestMetricsArriveAtTheCollectorThatTheVariablesName(t *testing.T) {
	var got receiver
	server := httptest.NewServer(&got)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=abc")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	provider, done, err := export.OpenMetrics(t.Context(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	page := telemetry.New(telemetry.Config{Version: "1.2.3", MeterProvider: provider})
	page.ObserveEnqueue([]holdfast.Draft{{Kind: "note"}})
	if err := done(context.Background()); err != nil { // sends the last values
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if !slices.Contains(got.names, "holdfast.jobs.enqueued") || got.path != "/v1/metrics" || got.token != "abc" {
		t.Errorf("arrived: %q at %s with token %q", got.names, got.path, got.token)
	}
	for _, word := range []string{"holdfast", "1.2.3", "deployment.environment.name"} {
		if !strings.Contains(got.about, word) {
			t.Errorf("%q is missing in the resource: %s", word, got.about)
		}
	}
}

func TestWithoutAnEndpointThereIsNoMeterProvider(t *testing.T) {
	for _, set := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_METRICS_EXPORTER": "none"},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_METRICS_EXPORTER"} {
			t.Setenv(name, set[name])
		}
		provider, done, err := export.OpenMetrics(t.Context(), "")
		if err != nil || provider != nil {
			t.Errorf("%v: there is a meter provider, %v", set, err)
		}
		if err := done(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWithoutAnEndpointNothingIsExported(t *testing.T) {
	for _, set := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
			t.Setenv(name, set[name])
		}
		provider, done, err := export.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, span := provider.Tracer("x").Start(t.Context(), "x"); span.IsRecording() {
			t.Errorf("%v: a span is recorded although it is not exported", set)
		}
		if err := done(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnavailableCollectorDelaysNothing(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.URL)
	provider, done, err := export.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // more than are kept: the rest is dropped
		_, span := provider.Tracer("x").Start(t.Context(), "x")
		span.End()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if done(ctx) == nil {
		t.Error("the last spans cannot have arrived, and there is no error")
	}
}
