package telemetry

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Serve returns a handler that makes a span of every request, as a child of the span in its headers. Spans are named by the
// pattern of the route and never by the path.
func (t *Tracing) Serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := knownMethod(r.Method)
		ctx, span := t.tracer.Start(Extract(r.Context(), r.Header), method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method)))
		defer span.End()
		if !span.IsRecording() {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		answer := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		r = r.WithContext(ctx)
		next.ServeHTTP(answer, r)
		if _, route, ok := strings.Cut(r.Pattern, " "); ok {
			span.SetName(method + " " + route)
			span.SetAttributes(semconv.HTTPRoute(route))
		}
		span.SetAttributes(semconv.HTTPResponseStatusCode(answer.status))
		if answer.status >= http.StatusInternalServerError {
			span.SetAttributes(attribute.KeyValue{Key: semconv.ErrorTypeKey, Value: attribute.StringValue(http.StatusText(answer.status))})
			span.SetStatus(codes.Error, "")
		}
	})
}

// knownMethod keeps unknown methods, which clients choose freely, out of the names of spans.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "HTTP"
}

// statusRecorder records the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
	wrote  bool
}

// WriteHeader records the status and sends it.
func (a *statusRecorder) WriteHeader(status int) {
	if !a.wrote && status >= http.StatusOK {
		a.status, a.wrote = status, true
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the connection: streams flush and set deadlines.
func (a *statusRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush implements http.Flusher for callers that do not use a ResponseController.
func (a *statusRecorder) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }
