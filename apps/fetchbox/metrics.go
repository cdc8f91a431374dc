package main

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/telemetry"
)

// metrics are Holdfast's metrics and those of FetchBox.
type metrics struct {
	*telemetry.Metrics
	registry *prometheus.Registry

	deadLetters   *prometheus.CounterVec
	bytes, tries  prometheus.Counter
	downloads     prometheus.Counter
	ledgerBehind  atomic.Int64
	proxyUsable   *prometheus.Desc
	proxyScore    *prometheus.Desc
	proxyRequests *prometheus.Desc
	proxies       *proxy.Pools
}

func newMetrics(operator *ops.Service, outbox *deadletter.Outbox, files *spool.Spool, proxies *proxy.Pools) *metrics {
	m := &metrics{
		Metrics: telemetry.New(telemetry.Config{Source: operator}), registry: prometheus.NewRegistry(), proxies: proxies,
		deadLetters:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fetchbox_dead_letters_total", Help: "Dead letters that this process published, by code."}, []string{"code"}),
		bytes:         prometheus.NewCounter(prometheus.CounterOpts{Name: "fetchbox_downloaded_bytes_total", Help: "Bytes of complete downloads."}),
		downloads:     prometheus.NewCounter(prometheus.CounterOpts{Name: "fetchbox_downloads_total", Help: "Complete downloads."}),
		tries:         prometheus.NewCounter(prometheus.CounterOpts{Name: "fetchbox_intake_failures_total", Help: "Failed tries to store a manifest. A request makes up to three."}),
		proxyUsable:   prometheus.NewDesc("fetchbox_proxy_usable", "1 while a proxy can be used, 0 while it rests.", []string{"proxy"}, nil),
		proxyScore:    prometheus.NewDesc("fetchbox_proxy_score", "Share of successes and speed of a proxy, from 0 to 1.", []string{"proxy"}, nil),
		proxyRequests: prometheus.NewDesc("fetchbox_proxy_requests_total", "Requests through a proxy, by outcome.", []string{"proxy", "outcome"}, nil),
	}
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	m.registry.MustRegister(m.Metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.deadLetters, m.bytes, m.downloads, m.tries, proxyCollector{m},
		gauge("fetchbox_dead_letters_behind", "Events that the outbox of dead letters has not handled yet.", func() float64 { return float64(outbox.Behind()) }),
		gauge("fetchbox_ledger_behind", "Events that the ledger does not have yet.", func() float64 { return float64(m.ledgerBehind.Load()) }),
		gauge("fetchbox_spool_bytes", "Size of the downloads in the spool.", func() float64 { return float64(files.Usage().Bytes) }),
		gauge("fetchbox_spool_files", "Number of downloads in the spool.", func() float64 { return float64(files.Usage().Files) }),
	)
	return m
}

func (m *metrics) observeDeadLetter(code string) { m.deadLetters.WithLabelValues(code).Inc() }
func (m *metrics) observeIntakeFailure()         { m.tries.Inc() }

func (m *metrics) observeDownload(size int64) {
	m.downloads.Inc()
	m.bytes.Add(float64(size))
}

// handler serves the metrics page.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// A proxyCollector reads the state of the proxies when the metrics are read.
type proxyCollector struct{ *metrics }

// Describe implements prometheus.Collector.
func (p proxyCollector) Describe(to chan<- *prometheus.Desc) {
	to <- p.proxyUsable
	to <- p.proxyScore
	to <- p.proxyRequests
}

// Collect implements prometheus.Collector.
func (p proxyCollector) Collect(to chan<- prometheus.Metric) {
	for _, s := range p.proxies.Status() {
		usable := 0.0
		if s.Usable {
			usable = 1
		}
		to <- prometheus.MustNewConstMetric(p.proxyUsable, prometheus.GaugeValue, usable, s.Name)
		to <- prometheus.MustNewConstMetric(p.proxyScore, prometheus.GaugeValue, s.Score, s.Name)
		to <- prometheus.MustNewConstMetric(p.proxyRequests, prometheus.CounterValue, float64(s.Good), s.Name, "good")
		to <- prometheus.MustNewConstMetric(p.proxyRequests, prometheus.CounterValue, float64(s.Bad), s.Name, "bad")
	}
}
