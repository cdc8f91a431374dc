package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// A Desk answers what the page tells about the store. Every ops.Desk is one.
type Desk interface {
	Stats(ctx context.Context) (ops.Stats, error)
	Holds(ctx context.Context) ([]ops.Held, error)
	Breakers(ctx context.Context) ([]ops.Breaker, error)
	Duties(ctx context.Context) ([]duty.Standing, error)
	Subscriptions(ctx context.Context) ([]ops.Subscribed, error)
	Redrives(ctx context.Context) ([]redrive.Progress, error)
	Workers(ctx context.Context) ([]holdfast.Presence, error)
}

// A lookout asks the desk now and then, and tells what it said. However many pages are asked for, one question is under way at a time; a
// page waits for it only so long, and then says that the store is away.
type lookout struct {
	desk   Desk
	every  time.Duration
	within time.Duration
	names  *Metrics // how things are called on the page
	descs  map[string]*prometheus.Desc
	errors *prometheus.CounterVec

	mu     sync.Mutex
	last   *glance
	asking chan struct{} // closed when the question under way is answered; nil: there is none
}

// A glance is what the desk said at one time.
type glance struct {
	at    time.Time
	took  time.Duration
	up    bool
	sheet sheet
}

func newLookout(cfg Config, m *Metrics) *lookout {
	l := &lookout{desk: cfg.Desk, every: cfg.Every, within: cfg.Within, names: m, descs: make(map[string]*prometheus.Desc), errors: deskTroubles.counter()}
	if l.every <= 0 {
		l.every = 5 * time.Second
	}
	if l.within <= 0 {
		l.within = time.Second
	}
	for _, n := range told {
		l.descs[n.metric] = n.desc()
	}
	return l
}

// Describe names what Collect tells.
func (l *lookout) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range l.descs {
		to <- desc
	}
	l.errors.Describe(to)
}

// Collect tells what was seen last, and looks again if that is long ago.
func (l *lookout) Collect(to chan<- prometheus.Metric) {
	g, up := l.look()
	page := sheet{}
	page.set(storeUp, flag(up))
	if g != nil {
		page.set(glanceAge, time.Since(g.at).Seconds())
		page.set(glanceTook, g.took.Seconds())
	}
	if up { // what was true before the store went away is not told as if it were true now
		g.sheet.tell(l.descs, to)
	}
	page.tell(l.descs, to)
	l.errors.Collect(to)
}

// look answers with the last glance, and whether the store answers. A store that is slow to answer is asked less often.
func (l *lookout) look() (*glance, bool) {
	l.mu.Lock()
	if g := l.last; g != nil && time.Since(g.at) < max(l.every, 10*g.took) {
		l.mu.Unlock()
		return g, g.up
	}
	if l.asking == nil {
		l.asking = make(chan struct{})
		go l.ask(l.asking)
	}
	asking := l.asking
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

// ask takes a glance.
func (l *lookout) ask(asking chan struct{}) {
	ctx, done := context.WithTimeout(context.Background(), 10*l.within)
	defer done()
	g := &glance{sheet: sheet{}}
	began := time.Now()
	g.up = l.question("stats", func() error { return l.stats(ctx, g.sheet) })
	for name, ask := range map[string]func(context.Context, sheet) error{
		"holds": l.holds, "breakers": l.breakers, "duties": l.duties, "subscriptions": l.subscriptions, "redrives": l.redrives,
	} {
		if g.up {
			l.question(name, func() error { return ask(ctx, g.sheet) })
		}
	}
	g.at, g.took = time.Now(), time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.asking = g, nil
	close(asking)
}

// question reports whether one was answered. One that was not costs its own answer, not the others'.
func (l *lookout) question(name string, ask func() error) (answered bool) {
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

// A sheet is values by metric and labels. What bounded labels have in common adds up.
type sheet map[string]map[string]value

type value struct {
	labels []string
	number float64
}

func (s sheet) set(n name, number float64, labels ...string) {
	s.merge(n, number, labels, func(_, now float64) float64 { return now })
}

func (s sheet) add(n name, number float64, labels ...string) {
	s.merge(n, number, labels, func(was, now float64) float64 { return was + now })
}

// most keeps the largest.
func (s sheet) most(n name, number float64, labels ...string) {
	s.merge(n, number, labels, func(was, now float64) float64 { return max(was, now) })
}

func (s sheet) merge(n name, number float64, labels []string, how func(was, now float64) float64) {
	if s[n.metric] == nil {
		s[n.metric] = make(map[string]value)
	}
	key := strings.Join(labels, "\x00")
	s[n.metric][key] = value{labels, how(s[n.metric][key].number, number)}
}

func (s sheet) tell(descs map[string]*prometheus.Desc, to chan<- prometheus.Metric) {
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
