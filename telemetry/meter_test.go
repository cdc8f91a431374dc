package telemetry_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A series is a metric with its labels, and its values: one, or of a histogram count, sum and the count of each bucket.
type series map[string][]float64

func (s series) add(name string, labels map[string]string, values ...float64) {
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		name += fmt.Sprintf(" %s=%s", label, labels[label])
	}
	s[name] = values
}

// prometheusSeries reads what a Prometheus server would.
func prometheusSeries(t *testing.T, m prometheus.Collector) series {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := series{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range one.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			all.add(family.GetName(), labels, valuesOf(family.GetType(), one)...)
		}
	}
	return all
}

func valuesOf(form dto.MetricType, one *dto.Metric) []float64 {
	switch form {
	case dto.MetricType_COUNTER:
		return []float64{one.GetCounter().GetValue()}
	case dto.MetricType_GAUGE:
		return []float64{one.GetGauge().GetValue()}
	}
	h := one.GetHistogram()
	values := []float64{float64(h.GetSampleCount()), h.GetSampleSum()}
	for _, bucket := range h.GetBucket() {
		values = append(values, bucket.GetUpperBound(), float64(bucket.GetCumulativeCount()))
	}
	return values
}

// openTelemetrySeries reads what an exporter of OpenTelemetry for Prometheus would: names with underscores, a suffix for the unit, and _total for counters.
func openTelemetrySeries(t *testing.T, r *run) series {
	t.Helper()
	var read metricdata.ResourceMetrics
	if err := r.reader.Collect(r.ctx, &read); err != nil {
		t.Fatal(err)
	}
	all := series{}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			name := strings.ReplaceAll(m.Name, ".", "_")
			if m.Unit == "s" {
				name += "_seconds"
			}
			if m.Description == "" || strings.Count(m.Name, ".") == 0 {
				t.Errorf("%s: description %q", m.Name, m.Description)
			}
			all.addInstrument(t, name, m)
		}
	}
	return all
}

func (s series) addInstrument(t *testing.T, name string, m metricdata.Metrics) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Sum[float64]:
		if !data.IsMonotonic || data.Temporality != metricdata.CumulativeTemporality {
			t.Errorf("%s is not a counter", m.Name)
		}
		for _, p := range data.DataPoints {
			s.add(name+"_total", labelsOf(p.Attributes), p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			s.add(name, labelsOf(p.Attributes), p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			values, below := []float64{float64(p.Count), p.Sum}, uint64(0)
			for i, bound := range p.Bounds {
				below += p.BucketCounts[i]
				values = append(values, bound, float64(below))
			}
			s.add(name, labelsOf(p.Attributes), values...)
		}
	default:
		t.Errorf("%s is of type %T", m.Name, data)
	}
}

func labelsOf(set attribute.Set) map[string]string {
	labels := map[string]string{}
	for _, a := range set.ToSlice() {
		labels[string(a.Key)] = a.Value.AsString()
	}
	return labels
}

func TestOpenTelemetryGetsTheValuesThatPrometheusGets(t *testing.T) {
	playEverything(t, func(r *run) {
		want, got := prometheusSeries(t, r.metrics), openTelemetrySeries(t, r)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("OpenTelemetry differs from Prometheus (-Prometheus +OpenTelemetry):\n%s", diff)
		}
		for _, name := range []string{"holdfast_jobs_enqueued_total kind=mail queue=default", "holdfast_attempt_duration_seconds kind=mail queue=default", "holdfast_dead_letters queue=default"} {
			if len(got[name]) == 0 {
				t.Errorf("%s is missing", name)
			}
		}
	})
}
