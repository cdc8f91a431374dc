package telemetry

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
)

// Config says what metrics are about. The zero value counts what it is told and asks nobody.
type Config struct {
	Desk    Desk          // asked about the store; nil: nothing is told about it
	Version string        // of this build
	Every   time.Duration // the store is asked no more often; 5 s when zero
	Within  time.Duration // a page waits no longer for the store; 1 s when zero. The question itself may take ten times as long
}

// Metrics count what they are told, and tell what the desk says, on a page for Prometheus.
type Metrics struct {
	registry *prometheus.Registry

	queues, kinds, codes, dependencies, routes, duties, words *bound

	enqueued, completed, failed, benign, cancelled, reclaimed, final *prometheus.CounterVec
	manual                                                           *prometheus.CounterVec
	attempts, successes, retries, throttled, requests                *prometheus.CounterVec
	attemptTime, callTime, retryDelay, requestTime                   *prometheus.HistogramVec
}

// From 5 ms to an hour: handlers call gateways, and encode films.
var longBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

// From a second to a day, as policies choose them.
var delayBuckets = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600}

// New makes metrics with a registry of their own.
func New(cfg Config) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		queues:   newBound(100), kinds: newBound(100), codes: newBound(200), dependencies: newBound(100), routes: newBound(300),
		duties: newBound(100), words: newBound(50),

		enqueued: jobsEnqueued.counter(), completed: jobsComplete.counter(), failed: jobsFailed.counter(), benign: jobsBenign.counter(), cancelled: jobsStopped.counter(),
		reclaimed: jobsLost.counter(), final: jobsFinal.counter(), manual: jobsManual.counter(),
		attempts: attempts.counter(), successes: successes.counter(), retries: retries.counter(), throttled: throttled.counter(), requests: requests.counter(),
		attemptTime: attemptTime.histogram(longBuckets), callTime: callTime.histogram(longBuckets), retryDelay: retryDelay.histogram(delayBuckets),
		requestTime: requestTime.histogram(prometheus.DefBuckets),
	}
	build := buildInfo.gauge()
	build.WithLabelValues(cfg.Version, runtime.Version()).Set(1)
	m.registry.MustRegister(build, m.enqueued, m.completed, m.failed, m.benign, m.cancelled, m.reclaimed, m.final, m.manual, m.attempts, m.successes, m.retries, m.throttled,
		m.requests, m.attemptTime, m.callTime, m.retryDelay, m.requestTime,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if cfg.Desk != nil {
		m.registry.MustRegister(newLookout(cfg, m))
	}
	return m
}

// Handler is the page. What cannot be told is left out, and the rest is told.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, Registry: m.registry})
}

// Enqueued counts what was acknowledged and is new.
func (m *Metrics) Enqueued(drafts []holdfast.Draft) {
	for i := range drafts {
		d := &drafts[i]
		queue := d.Queue
		if queue == "" {
			queue = holdfast.DefaultQueue
		}
		m.enqueued.WithLabelValues(m.queues.of(queue), m.kinds.of(d.Kind)).Inc()
	}
}

// Asked counts a request that was answered. The route is its name, never a path.
func (m *Metrics) Asked(route string, status int, took time.Duration) {
	code := other
	if status >= 100 && status <= 599 {
		code = strconv.Itoa(status)
	}
	route = m.routes.of(route)
	m.requests.WithLabelValues(route, code).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

// Ended counts an attempt. It is quick, and meant for engine.Config.Ended.
func (m *Metrics) Ended(end engine.End) {
	queue, kind, code := m.queues.of(end.Lease.Queue), m.kinds.of(end.Lease.Kind), ""
	if end.Failure != nil {
		code = m.codes.of(end.Failure.Code)
	}
	m.attempts.WithLabelValues(queue, kind, outcomeOf(end)).Inc()
	m.timed(end, queue, kind)
	if end.Lease.Lost != "" {
		m.reclaimed.WithLabelValues(queue, kind).Inc()
	}
	if end.Attempt == 1 && end.Lease.Generation > 1 {
		m.manual.WithLabelValues(queue, kind).Inc()
	}
	switch end.To {
	case holdfast.Complete:
		m.completed.WithLabelValues(queue, kind).Inc()
		m.successes.WithLabelValues(ordinal(end.Attempt)).Inc()
	case holdfast.Failed:
		if end.Failure != nil && end.Failure.Benign {
			m.benign.WithLabelValues(queue, kind, code).Inc()
			return
		}
		m.failed.WithLabelValues(queue, kind, code).Inc()
		if end.Charge == holdfast.ChargeFailure && end.Left > 0 {
			m.final.WithLabelValues(kind, code).Inc()
		}
	case holdfast.Cancelled:
		m.cancelled.WithLabelValues(queue, kind).Inc()
	case holdfast.Queued:
		if end.Throttled {
			m.throttled.WithLabelValues(queue, kind, code).Inc()
		}
		if end.Failure != nil && end.Charge != holdfast.ChargeInterrupt {
			m.retries.WithLabelValues(kind, code).Inc()
			m.retryDelay.WithLabelValues().Observe(end.Delay.Seconds())
		}
	}
}

// timed notes how long an attempt ran, with the trace of whoever wanted it as an example. How long a lost worker was at it nobody knows.
func (m *Metrics) timed(end engine.End, queue, kind string) {
	if end.Took <= 0 || end.Lease.Lost != "" {
		return
	}
	var example prometheus.Labels
	if of := parse(end.Lease.Trace); of.IsSampled() {
		example = prometheus.Labels{"trace_id": of.TraceID().String()}
	}
	observe(m.attemptTime.WithLabelValues(queue, kind), end.Took, example)
	if end.Lease.Dependency != "" {
		observe(m.callTime.WithLabelValues(m.dependencies.of(end.Lease.Dependency)), end.Took, example)
	}
}

func observe(in prometheus.Observer, took time.Duration, example prometheus.Labels) {
	if with, ok := in.(prometheus.ExemplarObserver); ok && example != nil {
		with.ObserveWithExemplar(took.Seconds(), example)
		return
	}
	in.Observe(took.Seconds())
}

// outcomeOf says in a word what became of the job.
func outcomeOf(end engine.End) string {
	if end.To == holdfast.Failed && end.Failure != nil && end.Failure.Benign {
		return "benign"
	}
	if end.To != holdfast.Queued {
		return string(end.To)
	}
	switch {
	case end.Throttled:
		return "throttled"
	case end.Charge == holdfast.ChargeCrash:
		return "crashed"
	case end.Charge == holdfast.ChargeInterrupt:
		return "returned"
	}
	return "retry"
}

// ordinal keeps the number of an attempt to ten values.
func ordinal(n int) string {
	if n >= 10 {
		return "10+"
	}
	return strconv.Itoa(max(n, 1))
}

// parse reads a traceparent; one that cannot be read is none.
func parse(traceparent string) trace.SpanContext {
	return trace.SpanContextFromContext(propagator.Extract(background, carrier(traceparent)))
}
