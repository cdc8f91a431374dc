package telemetry

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// instrument returns the name of the metric in OpenTelemetry: without the suffixes that say type and unit there, and with dots after the namespace and after the
// subject. A Prometheus exporter of OpenTelemetry makes the name for Prometheus from it again.
func (n name) instrument() string {
	text := strings.TrimSuffix(strings.TrimSuffix(n.metric, "_total"), "_seconds")
	return strings.Replace(text, "_", ".", 2)
}

// A histogram is a histogram in Prometheus and, if there is a MeterProvider, in OpenTelemetry.
type histogram struct {
	*prometheus.HistogramVec
	name    name
	buckets []float64
	meter   metric.Float64Histogram // nil: none
}

func newHistogram(n name, buckets []float64) *histogram {
	return &histogram{HistogramVec: n.histogram(buckets), name: n, buckets: buckets}
}

// observe records a duration. The span, if it is sampled, is its exemplar.
func (h *histogram) observe(took time.Duration, span trace.SpanContext, values ...string) {
	in, seconds := h.WithLabelValues(values...), took.Seconds()
	if with, ok := in.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		with.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": span.TraceID().String()})
	} else {
		in.Observe(seconds)
	}
	if h.meter == nil {
		return
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(h.name.labels[i], value)
	}
	h.meter.Record(trace.ContextWithSpanContext(background, span), seconds, metric.WithAttributes(attributes...))
}

// reportTo makes instruments of all metrics. Histograms are recorded twice from then on, here and for Prometheus. Counters and gauges are read when OpenTelemetry
// collects: from the same place as the page for Prometheus, so both show the same values.
func (m *Metrics) reportTo(provider metric.MeterProvider) error {
	meter := provider.Meter(scope)
	for _, h := range []*histogram{m.attemptTime, m.callTime, m.retryDelay, m.requestTime} {
		made, err := meter.Float64Histogram(h.name.instrument(), metric.WithDescription(h.name.help), metric.WithUnit(h.name.unit), metric.WithExplicitBucketBoundaries(h.buckets...))
		if err != nil {
			return err
		}
		h.meter = made
	}
	instruments, observables := map[string]metric.Float64Observable{}, []metric.Observable{}
	for _, n := range observedMetrics() {
		made, err := n.observable(meter)
		if err != nil {
			return err
		}
		instruments[n.metric] = made
		observables = append(observables, made)
	}
	page := prometheus.NewRegistry()
	page.MustRegister(m)
	_, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		families, err := page.Gather()
		for _, family := range families {
			if into := instruments[family.GetName()]; into != nil {
				observeFamily(to, into, family)
			}
		}
		return err
	}, observables...)
	return err
}

// observedMetrics are all metrics but histograms.
func observedMetrics() []name {
	return append([]name{
		buildInfo, jobsEnqueued, jobsComplete, jobsFailed, jobsBenign, jobsStopped, jobsLost, jobsFinal, jobsManual, attempts, successes, retries, throttled, requests, sourceErrors,
	}, storeMetrics...)
}

// observable makes the instrument of a counter or a gauge.
func (n name) observable(meter metric.Meter) (metric.Float64Observable, error) {
	if strings.HasSuffix(n.metric, "_total") {
		return meter.Float64ObservableCounter(n.instrument(), metric.WithDescription(n.help), metric.WithUnit(n.unit))
	}
	return meter.Float64ObservableGauge(n.instrument(), metric.WithDescription(n.help), metric.WithUnit(n.unit))
}

func observeFamily(to metric.Observer, into metric.Float64Observable, family *dto.MetricFamily) {
	for _, one := range family.GetMetric() {
		attributes := make([]attribute.KeyValue, len(one.GetLabel()))
		for i, label := range one.GetLabel() {
			attributes[i] = attribute.String(label.GetName(), label.GetValue())
		}
		value := one.GetGauge().GetValue()
		if one.GetCounter() != nil {
			value = one.GetCounter().GetValue()
		}
		to.ObserveFloat64(into, value, metric.WithAttributes(attributes...))
	}
}
