package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/telemetry"
)

func recorder() (*telemetry.Tracing, *tracetest.SpanRecorder, trace.Tracer) {
	spans := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
	return telemetry.NewTracing(provider), spans, provider.Tracer("application")
}

// attributes of a span, as texts.
func attributes(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func TestAnAttemptIsASpanOfItsOwnLinkedToTheOneThatEnqueuedIt(t *testing.T) {
	tracing, spans, application := recorder()
	play(t, engine.Config{Middleware: []func(engine.Handler) engine.Handler{tracing.Middleware()}}, func(r *run) {
		ctx, request := application.Start(r.ctx, "a request")
		draft, err := holdfast.NewDraft(mail{"fail once"})
		r.must(err)
		receipts, err := tracing.Enqueuer(r.store).Enqueue(ctx, []holdfast.Draft{draft})
		r.must(err)
		request.End()
		if draft.Trace != "" {
			t.Error("the caller's own draft was changed")
		}
		id := receipts[0].ID
		r.becomes(id, holdfast.Complete)
		time.Sleep(time.Second)
		all := spans.Ended()
		if len(all) != 4 {
			t.Fatalf("%d spans, want send, request and two attempts", len(all))
		}
		send, first, second := all[0], all[2], all[3]
		if send.Name() != "send default" || send.SpanKind() != trace.SpanKindProducer || send.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("the enqueue is %q, %v, under %v", send.Name(), send.SpanKind(), send.Parent())
		}
		for n, span := range []sdk.ReadOnlySpan{first, second} {
			if span.Name() != "process default" || span.SpanKind() != trace.SpanKindConsumer || span.Parent().IsValid() {
				t.Errorf("an attempt is %q, %v, under %v", span.Name(), span.SpanKind(), span.Parent())
			}
			if links := span.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != send.SpanContext().SpanID() || links[0].SpanContext.TraceID() != send.SpanContext().TraceID() {
				t.Errorf("attempt %d is linked to %v", n+1, links)
			}
		}
		expectSpan(t, first, codes.Error, map[string]string{
			"messaging.system": "holdfast", "messaging.destination.name": "default", "messaging.message.id": id.String(),
			"holdfast.job.attempt": "1", "holdfast.job.kind": "mail", "holdfast.outcome": "failed", "error.type": "UNKNOWN",
		})
		expectSpan(t, second, codes.Unset, map[string]string{"holdfast.job.attempt": "2", "holdfast.outcome": "complete"})
	})
}

func expectSpan(t *testing.T, span sdk.ReadOnlySpan, status codes.Code, want map[string]string) {
	t.Helper()
	got := attributes(span)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	if span.Status().Code != status {
		t.Errorf("status %v, want %v", span.Status(), status)
	}
}

func raw() *engine.Raw {
	return &engine.Raw{Lease: store.Lease{Job: holdfast.Job{ID: holdfast.NewID(), Queue: "mail", Kind: "note", Dependency: "gateway", Trace: "no traceparent"}}}
}

func TestASpanRecordsHowTheHandlerEnded(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	late, done := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer done()
	for sentence, one := range map[string]struct {
		ctx     context.Context
		err     error
		outcome string
		code    string
	}{
		"a code of its own":    {context.Background(), failure.WithCode(errors.New("x"), "GW_5XX"), "failed", "GW_5XX"},
		"time ran out":         {late, errors.New("signal: killed"), "failed", "TIMEOUT"},
		"the worker stopped":   {ended(engine.ErrStopping), errors.New("broken pipe"), "interrupted", ""},
		"the lease was lost":   {ended(holdfast.ErrLeaseLost), errors.New("broken pipe"), "interrupted", ""},
		"a person stopped it":  {ended(engine.ErrCancelled), errors.New("broken pipe"), "cancelled", ""},
		"it snoozed":           {context.Background(), failure.Snooze(time.Minute), "snoozed", ""},
		"it completed":         {context.Background(), nil, "complete", ""},
		"it panicked":          {context.Background(), errPanic, "panicked", ""},
		"it showed its secret": {context.Background(), errors.New("dial postgres://ada:hunter2@db/x: refused"), "failed", ""},
	} {
		tracing, spans, _ := recorder()
		handler := tracing.Middleware()(func(context.Context, *engine.Raw) error {
			if one.err == errPanic {
				panic("boom")
			}
			return one.err
		})
		func() {
			defer func() { _ = recover() }()
			if err := handler(one.ctx, raw()); err != one.err {
				t.Errorf("%s: returned %v", sentence, err)
			}
		}()
		if len(spans.Ended()) != 1 {
			t.Fatalf("%s: %d spans ended", sentence, len(spans.Ended()))
		}
		span := spans.Ended()[0]
		got := attributes(span)
		if got["holdfast.outcome"] != one.outcome || one.code != "" && got["error.type"] != one.code || len(span.Links()) != 0 {
			t.Errorf("%s: %v", sentence, got)
		}
		if strings.Contains(span.Status().Description, "hunter2") {
			t.Errorf("%s: a secret is in the span: %s", sentence, span.Status().Description)
		}
	}
}

var errPanic = errors.New("in place of a panic")

func TestATraceparentSurvivesARoundTrip(t *testing.T) {
	_, _, application := recorder()
	ctx, span := application.Start(context.Background(), "x")
	stamp := telemetry.Traceparent(ctx)
	header := http.Header{}
	header.Set("Traceparent", stamp)
	got := trace.SpanContextFromContext(telemetry.Extract(context.Background(), header))
	if got.TraceID() != span.SpanContext().TraceID() || got.SpanID() != span.SpanContext().SpanID() || !got.IsRemote() {
		t.Errorf("%q was read as %v", stamp, got)
	}
	if telemetry.Traceparent(context.Background()) != "" {
		t.Error("a stamp without a span")
	}
	draft := holdfast.Draft{Kind: "note", Queue: "mail", Trace: stamp}
	if err := draft.Prepare(); err != nil {
		t.Errorf("a draft refuses the stamp: %v", err)
	}
}

func TestARequestIsASpanNamedByItsRouteInsideTheCallersTrace(t *testing.T) {
	tracing, spans, _ := recorder()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs/{id}/retry", func(w http.ResponseWriter, r *http.Request) {
		if telemetry.Traceparent(r.Context()) == "" {
			t.Error("the handler's context carries no span")
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("streams could not flush")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	request := httptest.NewRequest("POST", "/v1/jobs/secret-id/retry", nil)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	tracing.Serve(mux).ServeHTTP(httptest.NewRecorder(), request)
	span := spans.Ended()[0]
	if span.Name() != "POST /v1/jobs/{id}/retry" || span.SpanContext().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%q in trace %v", span.Name(), span.SpanContext().TraceID())
	}
	expectSpan(t, span, codes.Error, map[string]string{"http.response.status_code": "503", "http.route": "/v1/jobs/{id}/retry"})
	for _, a := range span.Attributes() {
		if a.Value.Type() == attribute.STRING && strings.Contains(a.Value.AsString(), "secret-id") {
			t.Errorf("the path is in %s", a.Key)
		}
	}
}

func TestASpanOfAnEnqueueNamesTheQueueOfItsJobs(t *testing.T) {
	tracing, spans, _ := recorder()
	play(t, engine.Config{}, func(r *run) {
		for n, want := range []string{"slow", "default", "several queues"} {
			drafts := [][]holdfast.Draft{{{Kind: "mail", Queue: "slow"}}, {{Kind: "http"}}, {{Kind: "mail", Queue: "slow"}, {Kind: "mail"}}}[n]
			_, err := tracing.Enqueuer(r.store).Enqueue(r.ctx, drafts)
			r.must(err)
			span := spans.Ended()[n]
			if got := attributes(span)["messaging.destination.name"]; span.Name() != "send "+want || got != want {
				t.Errorf("span %q to %q, want %q", span.Name(), got, want)
			}
		}
	})
}
