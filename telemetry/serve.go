package telemetry

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Serve makes a span of every request that next answers, inside the one that its headers name. It is called by the pattern of its route,
// never by its path.
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
		answer := &answering{ResponseWriter: w, status: http.StatusOK}
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

// knownMethod keeps what strangers call a method out of the names of spans.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "HTTP"
}

// answering notes the status of an answer.
type answering struct {
	http.ResponseWriter
	status int
	said   bool
}

// WriteHeader notes the status and sends it on.
func (a *answering) WriteHeader(status int) {
	if !a.said && status >= http.StatusOK {
		a.status, a.said = status, true
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find what the connection can do: streams flush and set deadlines.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written so far, for those who do not ask a ResponseController.
func (a *answering) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }
