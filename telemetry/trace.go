package telemetry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

const (
	scope       = "github.com/holdfastdev/holdfast/telemetry"
	traceparent = "traceparent"
)

// Attributes without a name in the OpenTelemetry conventions. The conventions for messaging are not final and may change.
const (
	attrKind       = attribute.Key("holdfast.job.kind")
	attrAttempt    = attribute.Key("holdfast.job.attempt")
	attrGeneration = attribute.Key("holdfast.job.generation")
	attrDependency = attribute.Key("holdfast.job.dependency")
	attrOutcome    = attribute.Key("holdfast.outcome")
	attrJobs       = semconv.MessagingBatchMessageCountKey
)

var (
	propagator = propagation.TraceContext{}
	background = context.Background()
)

func carrier(parent string) propagation.MapCarrier {
	return propagation.MapCarrier{traceparent: parent}
}

// Tracing makes spans of enqueues, attempts and requests. Without a provider that exports, it costs next to nothing. It is
// safe for concurrent use.
type Tracing struct{ tracer trace.Tracer }

// NewTracing returns a Tracing that uses provider, or the process's default provider if it is nil.
func NewTracing(provider trace.TracerProvider) *Tracing {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return &Tracing{provider.Tracer(scope)}
}

// Traceparent returns the traceparent of the span in ctx, for Draft.Trace; empty if there is none.
func Traceparent(ctx context.Context) string {
	to := propagation.MapCarrier{}
	propagator.Inject(ctx, to)
	return to[traceparent]
}

// Extract returns ctx with the span that a request's headers name, if they do.
func Extract(ctx context.Context, header http.Header) context.Context {
	return propagator.Extract(ctx, propagation.HeaderCarrier(header))
}

// Middleware returns a wrapper for engine.Config.Middleware that makes a span of every attempt. The span is linked to the span in
// which the job was enqueued and not its child, because hours may pass in between and one enqueue may cause many attempts.
func (t *Tracing) Middleware() func(next engine.Handler) engine.Handler {
	return func(next engine.Handler) engine.Handler {
		return func(ctx context.Context, job *engine.Raw) error {
			ctx, span := t.tracer.Start(ctx, "process "+job.Queue, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
				trace.WithLinks(links(job.Trace)...), trace.WithAttributes(attributesOf(job)...))
			returned := false
			defer func() {
				if !returned {
					span.SetAttributes(attrOutcome.String("panicked"))
					span.SetStatus(codes.Error, "the handler panicked or ended its goroutine")
				}
				span.End()
			}()
			err := next(ctx, job)
			returned = true
			recordOutcome(ctx, span, job, err)
			return err
		}
	}
}

func links(parent string) []trace.Link {
	if of := parse(parent); of.IsValid() {
		return []trace.Link{{SpanContext: of}}
	}
	return nil
}

func attributesOf(job *engine.Raw) []attribute.KeyValue {
	all := []attribute.KeyValue{
		semconv.MessagingSystemKey.String("holdfast"), semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(job.Queue), semconv.MessagingMessageID(job.ID.String()),
		attrKind.String(job.Kind), attrAttempt.Int(job.Attempt()), attrGeneration.Int(job.Generation),
	}
	if job.Dependency != "" {
		all = append(all, attrDependency.String(job.Dependency))
	}
	return all
}

// recordOutcome records in a span how the handler returned. The failure code is the handler's or that of the built-in rules; the
// decision about the job is made later and is in its story.
func recordOutcome(ctx context.Context, span trace.Span, job *engine.Raw, err error) {
	outcome := failure.Outcome{Event: failure.Returned, Err: err}
	switch cause := context.Cause(ctx); {
	case err == nil:
		span.SetAttributes(attrOutcome.String(string(holdfast.Complete)))
		return
	case errors.Is(cause, engine.ErrStopping), errors.Is(cause, holdfast.ErrLeaseLost):
		span.SetAttributes(attrOutcome.String("interrupted"))
		return
	case errors.Is(cause, engine.ErrCancelled):
		span.SetAttributes(attrOutcome.String(string(holdfast.Cancelled)))
		return
	case errors.Is(cause, context.DeadlineExceeded):
		outcome.Event = failure.TimedOut
	}
	verdict := failure.Decide(failure.Rules{}, job.Lease, outcome)
	if verdict.Failure == nil {
		span.SetAttributes(attrOutcome.String("snoozed"))
		return
	}
	if verdict.Throttled {
		span.SetAttributes(attrOutcome.String("throttled"), semconv.ErrorTypeKey.String(verdict.Failure.Code))
		return
	}
	span.SetAttributes(attrOutcome.String("failed"), semconv.ErrorTypeKey.String(verdict.Failure.Code))
	span.SetStatus(codes.Error, verdict.Failure.Detail) // scrubbed of secrets, and short
}

// Enqueuer returns an enqueuer that makes a span of every enqueue and sets Draft.Trace to it, so that attempts are linked
// to it. A draft that has a trace keeps it.
func (t *Tracing) Enqueuer(to holdfast.Enqueuer) holdfast.Enqueuer {
	return &tracingEnqueuer{to, t.tracer}
}

type tracingEnqueuer struct {
	holdfast.Enqueuer
	tracer trace.Tracer
}

// Enqueue implements holdfast.Enqueuer.
func (s *tracingEnqueuer) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	queue := destination(drafts)
	ctx, span := s.tracer.Start(ctx, "send "+queue, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		semconv.MessagingSystemKey.String("holdfast"), semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("enqueue"),
		semconv.MessagingDestinationName(queue), attrJobs.Int(len(drafts))))
	defer span.End()
	if stamp := Traceparent(ctx); stamp != "" {
		drafts = append([]holdfast.Draft(nil), drafts...) // do not change the caller's drafts
		for i := range drafts {
			if drafts[i].Trace == "" {
				drafts[i].Trace = stamp
			}
		}
	}
	receipts, err := s.Enqueuer.Enqueue(ctx, drafts)
	if err != nil {
		span.SetStatus(codes.Error, failure.Scrub(err.Error()))
		return receipts, err
	}
	if len(receipts) == 1 {
		span.SetAttributes(semconv.MessagingMessageID(receipts[0].ID.String()))
	}
	return receipts, nil
}

// destination returns the queue of the drafts, or "several queues".
func destination(drafts []holdfast.Draft) string {
	name := ""
	for i := range drafts {
		queue := drafts[i].Queue
		if queue == "" {
			queue = holdfast.DefaultQueue
		}
		if name != "" && name != queue {
			return "several queues"
		}
		name = queue
	}
	return name
}
