package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A Source reads the state of the store for the metrics page. Every ops.Operator implements it.
type Source interface {
	Stats(ctx context.Context) (ops.Stats, error)
	Holds(ctx context.Context) ([]ops.HoldStatus, error)
	Breakers(ctx context.Context) ([]ops.Breaker, error)
	Duties(ctx context.Context) ([]duty.Status, error)
	Subscriptions(ctx context.Context) ([]ops.SubscriptionStatus, error)
	Redrives(ctx context.Context) ([]redrive.Progress, error)
	Workers(ctx context.Context) ([]store.WorkerInfo, error)
}

// A storeCollector reads the store from time to time and reports what it read. However many pages are requested, one read
// runs at a time. A page waits for it for a limited time and then reports the store as down.
type storeCollector struct {
	operator Source
	every    time.Duration
	within   time.Duration
	names    *Metrics // label limits of the page
	descs    map[string]*prometheus.Desc
	errors   *prometheus.CounterVec

	mu      sync.Mutex
	last    *snapshot
	reading chan struct{} // closed when the read in progress ends; nil: there is none
}

// A snapshot is the result of one read of the store.
type snapshot struct {
	at       time.Time
	took     time.Duration
	up       bool
	valueSet valueSet
}

func newStoreCollector(cfg Config, m *Metrics) *storeCollector {
	l := &storeCollector{operator: cfg.Source, every: cfg.Every, within: cfg.Within, names: m, descs: make(map[string]*prometheus.Desc), errors: sourceErrors.counter()}
	if l.every <= 0 {
		l.every = 5 * time.Second
	}
	if l.within <= 0 {
		l.within = time.Second
	}
	for _, n := range storeMetrics {
		l.descs[n.metric] = n.desc()
	}
	return l
}

// Describe implements prometheus.Collector.
func (l *storeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range l.descs {
		to <- desc
	}
	l.errors.Describe(to)
}

// Collect implements prometheus.Collector. It reports the last snapshot, after a new read if that one is too old.
func (l *storeCollector) Collect(to chan<- prometheus.Metric) {
	g, up := l.latest()
	page := valueSet{}
	page.set(storeUp, flag(up))
	if g != nil {
		page.set(snapshotAge, time.Since(g.at).Seconds())
		page.set(snapshotTook, g.took.Seconds())
	}
	if up { // values from before an outage are not reported as current
		g.valueSet.report(l.descs, to)
	}
	page.report(l.descs, to)
	l.errors.Collect(to)
}

// latest returns the last snapshot, and whether the store answers. A slow store is read less often.
func (l *storeCollector) latest() (*snapshot, bool) {
	l.mu.Lock()
	if g := l.last; g != nil && time.Since(g.at) < max(l.every, 10*g.took) {
		l.mu.Unlock()
		return g, g.up
	}
	if l.reading == nil {
		l.reading = make(chan struct{})
		go l.takeSnapshot(l.reading)
	}
	asking := l.reading
	l.mu.Unlock()
	timer := time.NewTimer(l.within)
	defer timer.Stop()
	answered := false
	select {
	case <-asking:
		answered = true
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, answered && l.last.up
}

// takeSnapshot takes a snapshot.
func (l *storeCollector) takeSnapshot(asking chan struct{}) {
	ctx, done := context.WithTimeout(context.Background(), 10*l.within)
	defer done()
	g := &snapshot{valueSet: valueSet{}}
	began := time.Now()
	g.up = l.read("stats", func() error { return l.stats(ctx, g.valueSet) })
	for name, ask := range map[string]func(context.Context, valueSet) error{
		"holds": l.holds, "breakers": l.breakers, "duties": l.duties, "subscriptions": l.subscriptions, "redrives": l.redrives,
	} {
		if g.up {
			l.read(name, func() error { return ask(ctx, g.valueSet) })
		}
	}
	g.at, g.took = time.Now(), time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.reading = g, nil
	close(asking)
}

// read runs one read and reports whether it succeeded. A failure does not affect the other reads.
func (l *storeCollector) read(name string, ask func() error) (answered bool) {
	err := guarded(ask)
	if err != nil {
		l.errors.WithLabelValues(name).Inc()
	}
	return err == nil
}

func guarded(ask func() error) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("a panic: %v", thrown)
		}
	}()
	return ask()
}

// A sheet holds values by metric and labels. Values whose labels were merged by a label limit are combined.
type valueSet map[string]map[string]value

type value struct {
	labels []string
	number float64
}

func (s valueSet) set(n name, number float64, labels ...string) {
	s.merge(n, number, labels, func(_, now float64) float64 { return now })
}

func (s valueSet) add(n name, number float64, labels ...string) {
	s.merge(n, number, labels, func(was, now float64) float64 { return was + now })
}

// most keeps the largest value.
func (s valueSet) most(n name, number float64, labels ...string) {
	s.merge(n, number, labels, func(was, now float64) float64 { return max(was, now) })
}

func (s valueSet) merge(n name, number float64, labels []string, how func(was, now float64) float64) {
	if s[n.metric] == nil {
		s[n.metric] = make(map[string]value)
	}
	key := strings.Join(labels, "\x00")
	s[n.metric][key] = value{labels, how(s[n.metric][key].number, number)}
}

func (s valueSet) report(descs map[string]*prometheus.Desc, to chan<- prometheus.Metric) {
	for metric, values := range s {
		for _, v := range values {
			to <- prometheus.MustNewConstMetric(descs[metric], prometheus.GaugeValue, v.number, v.labels...)
		}
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
