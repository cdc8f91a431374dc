package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/telemetry"
)

// metrics are Holdfast's metrics and those of this service.
type metrics struct {
	*telemetry.Metrics
	registry *prometheus.Registry
}

func newMetrics(a *app) *metrics {
	m := &metrics{Metrics: telemetry.New(telemetry.Config{Source: a.operator}), registry: prometheus.NewRegistry()}
	m.registry.MustRegister(m.Metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{a})
	return m
}

// handler serves the metrics page.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// A collector reads the service when the metrics are read.
type collector struct{ *app }

var (
	descRetries  = prometheus.NewDesc("screenshot_retries_total", "Retries of shots that this process scheduled or accepted, by type: automatic, manual or stuck.", []string{"type"}, nil)
	descAttempts = prometheus.NewDesc("screenshot_attempts_total", "Attempts of shots that ended in this process, by number and outcome.", []string{"attempt", "outcome"}, nil)
	descFinal    = prometheus.NewDesc("screenshot_not_retryable_total", "Shots that failed for good although attempts were left, because their error is not retried.", nil, nil)
	descAccepted = prometheus.NewDesc("screenshot_submitted_total", "Shots that this process accepted.", nil, nil)
	descCached   = prometheus.NewDesc("screenshot_cached_total", "Requests that a picture in the cache answered.", nil, nil)
	descReleased = prometheus.NewDesc("screenshot_credits_released_total", "Credits that this process released because a shot ended without a picture.", nil, nil)
	descQueue    = prometheus.NewDesc("screenshot_queue_size", "Shots that wait, by queue: main or delayed.", []string{"queue"}, nil)
	descStuck    = prometheus.NewDesc("screenshot_stuck_jobs", "Shots that have been processed for more than 30 minutes.", nil, nil)
	descBrowsers = prometheus.NewDesc("screenshot_browsers", "Browsers of this process, by state: running or busy.", []string{"state"}, nil)
	descReplaced = prometheus.NewDesc("screenshot_browsers_replaced_total", "Browsers of this process that were replaced, by reason: planned or sick.", []string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRetries, descAttempts, descFinal, descAccepted, descCached, descReleased, descQueue, descStuck, descBrowsers, descReplaced} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	all := c.service.Counts()
	for kind, n := range map[string]int64{"automatic": all.Automatic, "manual": all.Manual, "stuck": all.Stuck} {
		count(descRetries, n, kind)
	}
	count(descFinal, all.Final)
	count(descAccepted, all.Submitted)
	count(descCached, all.Cached)
	count(descReleased, all.Released)
	for _, one := range c.service.Attempts() {
		count(descAttempts, one.Complete, strconv.Itoa(one.Attempt), "complete")
		count(descAttempts, one.Failed, strconv.Itoa(one.Attempt), "failed")
	}
	b := c.camera.Status()
	gauge(descBrowsers, b.Running, "running")
	gauge(descBrowsers, b.Busy, "busy")
	count(descReplaced, int64(b.Recycled), "planned")
	count(descReplaced, int64(b.Sick), "sick")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if d, err := c.service.Depth(ctx); err == nil {
		gauge(descQueue, d.Ready, "main")
		gauge(descQueue, d.Later+d.Retrying, "delayed")
	}
	if stuck, err := c.service.Stuck(ctx); err == nil {
		gauge(descStuck, len(stuck))
	}
}

var _ prometheus.Collector = collector{}

// errorRate returns the share of attempts that failed in this process, for the health check.
func errorRate(list []service.AttemptCount) (rate float64, attempts int64) {
	failed := int64(0)
	for _, one := range list {
		if one.Attempt > 1 {
			failed, attempts = failed+one.Failed, attempts+one.Failed+one.Complete
		}
	}
	if attempts == 0 {
		return 0, 0
	}
	return float64(failed) / float64(attempts), attempts
}
