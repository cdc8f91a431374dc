package telemetry

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// Config configures metrics. The zero value counts only events of this process and does not read the store.
type Config struct {
	Source  Source        // reads the store; nil: no metrics of the store
	Version string        // of this build
	Every   time.Duration // minimum time between two reads of the store; 5 s when zero
	Within  time.Duration // how long a page waits for the store; 1 s when zero. The read itself may take ten times as long

	// MeterProvider, if not nil, also gets the metrics, for programs that send theirs with OpenTelemetry.
	MeterProvider metric.MeterProvider
}

// Metrics counts events of this process and reads the state of the store, and serves both to Prometheus: on a page of its own
// (Handler), or as a prometheus.Collector in a registry of the application, beside the application's own metrics. With
// Config.MeterProvider it reports the same values to OpenTelemetry. It is safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry // of the page: this collector, and those of the Go runtime and the process
	collectors []prometheus.Collector

	queues, kinds, codes, dependencies, routes, duties, words *labelLimit

	enqueued, completed, failed, benign, cancelled, reclaimed, final *prometheus.CounterVec
	manual                                                           *prometheus.CounterVec
	attempts, successes, retries, throttled, requests                *prometheus.CounterVec
	attemptTime, callTime, retryDelay, requestTime                   *histogram
}

// longBuckets go from 5 ms to an hour, because handlers range from short calls to long conversions.
var longBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

// delayBuckets go from a second to a day, as the backoffs of policies do.
var delayBuckets = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600}

// New returns metrics.
func New(cfg Config) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		queues:   newLabelLimit(100), kinds: newLabelLimit(100), codes: newLabelLimit(200), dependencies: newLabelLimit(100), routes: newLabelLimit(300),
		duties: newLabelLimit(100), words: newLabelLimit(50),

		enqueued: jobsEnqueued.counter(), completed: jobsComplete.counter(), failed: jobsFailed.counter(), benign: jobsBenign.counter(), cancelled: jobsStopped.counter(),
		reclaimed: jobsLost.counter(), final: jobsFinal.counter(), manual: jobsManual.counter(),
		attempts: attempts.counter(), successes: successes.counter(), retries: retries.counter(), throttled: throttled.counter(), requests: requests.counter(),
		attemptTime: newHistogram(attemptTime, longBuckets), callTime: newHistogram(callTime, longBuckets), retryDelay: newHistogram(retryDelay, delayBuckets),
		requestTime: newHistogram(requestTime, prometheus.DefBuckets),
	}
	build := buildInfo.gauge()
	build.WithLabelValues(cfg.Version, runtime.Version()).Set(1)
	m.collectors = []prometheus.Collector{
		build, m.enqueued, m.completed, m.failed, m.benign, m.cancelled, m.reclaimed, m.final, m.manual, m.attempts, m.successes, m.retries, m.throttled,
		m.requests, m.attemptTime.HistogramVec, m.callTime.HistogramVec, m.retryDelay.HistogramVec, m.requestTime.HistogramVec,
	}
	if cfg.Source != nil {
		m.collectors = append(m.collectors, newStoreCollector(cfg, m))
	}
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if cfg.MeterProvider != nil {
		if err := m.reportTo(cfg.MeterProvider); err != nil {
			otel.Handle(err)
		}
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors {
		c.Collect(to)
	}
}

// Handler serves the metrics page. Metrics that cannot be collected are left out.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, Registry: m.registry})
}

// ObserveEnqueue counts jobs that were added.
func (m *Metrics) ObserveEnqueue(drafts []holdfast.Draft) {
	for i := range drafts {
		d := &drafts[i]
		queue := d.Queue
		if queue == "" {
			queue = holdfast.DefaultQueue
		}
		m.enqueued.WithLabelValues(m.queues.of(queue), m.kinds.of(d.Kind)).Inc()
	}
}

// ObserveRequest counts a request that was answered. route is the name of the route, never a path.
func (m *Metrics) ObserveRequest(route string, status int, took time.Duration) {
	code := other
	if status >= 100 && status <= 599 {
		code = strconv.Itoa(status)
	}
	route = m.routes.of(route)
	m.requests.WithLabelValues(route, code).Inc()
	m.requestTime.observe(took, trace.SpanContext{}, route)
}

// ObserveAttempt counts an attempt. It is fast, and meant for engine.Config.OnAttemptEnd.
func (m *Metrics) ObserveAttempt(end engine.AttemptEnd) {
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
		if end.Charge == store.ChargeFailure && end.Left > 0 {
			m.final.WithLabelValues(kind, code).Inc()
		}
	case holdfast.Cancelled:
		m.cancelled.WithLabelValues(queue, kind).Inc()
	case holdfast.Queued:
		if end.Throttled {
			m.throttled.WithLabelValues(queue, kind, code).Inc()
		}
		if end.Failure != nil && end.Charge != store.ChargeRelease {
			m.retries.WithLabelValues(kind, code).Inc()
			m.retryDelay.observe(end.Delay, trace.SpanContext{})
		}
	}
}

// timed records how long an attempt ran, with the trace of the enqueue as an exemplar. The duration of a reclaimed attempt
// is not known.
func (m *Metrics) timed(end engine.AttemptEnd, queue, kind string) {
	if end.Took <= 0 || end.Lease.Lost != "" {
		return
	}
	of := parse(end.Lease.Trace)
	m.attemptTime.observe(end.Took, of, queue, kind)
	if end.Lease.Dependency != "" {
		m.callTime.observe(end.Took, of, m.dependencies.of(end.Lease.Dependency))
	}
}

// outcomeOf returns the value of the label outcome.
func outcomeOf(end engine.AttemptEnd) string {
	if end.To == holdfast.Failed && end.Failure != nil && end.Failure.Benign {
		return "benign"
	}
	if end.To != holdfast.Queued {
		return string(end.To)
	}
	switch {
	case end.Throttled:
		return "throttled"
	case end.Charge == store.ChargeCrash:
		return "crashed"
	case end.Charge == store.ChargeRelease:
		return "released"
	}
	return "retry"
}

// ordinal limits the number of an attempt to ten label values.
func ordinal(n int) string {
	if n >= 10 {
		return "10+"
	}
	return strconv.Itoa(max(n, 1))
}

// parse parses a traceparent; an invalid one gives an invalid SpanContext.
func parse(traceparent string) trace.SpanContext {
	return trace.SpanContextFromContext(propagator.Extract(background, carrier(traceparent)))
}
