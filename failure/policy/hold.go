package policy

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A limit is the number of jobs that may run at once, and the rate at which they may start.
type limit struct {
	atMost           int
	perSecond, burst float64
	at               place
}

func (l *limit) rate() *store.Rate {
	if l.perSecond == 0 {
		return nil
	}
	burst := l.burst
	if burst == 0 {
		burst = max(1, l.perSecond)
	}
	return &store.Rate{PerSecond: l.perSecond, Burst: burst, Level: burst}
}

func (l *limit) text() string {
	var words []string
	if l.atMost > 0 {
		words = append(words, fmt.Sprintf("at most %d at once", l.atMost))
	}
	if l.perSecond > 0 {
		words = append(words, fmt.Sprintf("%v a second", l.perSecond))
	}
	return strings.Join(words, ", ")
}

// Holds returns the limits of the file as holds. The caller that places them must lift earlier ones with the same source
// and actor that are not among them.
func (s *Set) Holds() (holds []store.Hold) {
	for _, kind := range sectionNames {
		for _, name := range s.section(kind).names() {
			l := s.section(kind).named[name].limit
			if l == nil {
				continue
			}
			h := hold(kind, name)
			h.Source, h.Actor, h.Reason = store.SourceLimit, actor, "limit of the policy: "+l.text()
			h.AtMost, h.Rate = l.atMost, l.rate()
			holds = append(holds, h)
		}
	}
	return holds
}

// A Window is a time of day in which jobs are not retried.
type Window struct {
	On store.Hold // the hold to place; For is not set
	failure.Window
}

// Windows returns the windows of the file. Those under defaults apply to every queue.
func (s *Set) Windows() (windows []Window) {
	if s == nil {
		return nil
	}
	add := func(on store.Hold, e *entry) {
		on.Source, on.Actor, on.Retries = store.SourceWindow, actor, true
		for _, w := range e.windows {
			on.Reason = "no retries " + describe(w)
			windows = append(windows, Window{on, w})
		}
	}
	add(store.Hold{Queue: "*"}, &s.base)
	for _, kind := range sectionNames {
		for _, name := range s.section(kind).names() {
			add(hold(kind, name), s.section(kind).named[name])
		}
	}
	return windows
}

// WindowHolds returns the holds that windows require at this time, each with For set to the remaining time. Adjacent
// windows on the same name make one hold.
func (s *Set) WindowHolds(now time.Time) (holds []store.Hold) {
	windows := s.Windows()
	for i := 0; i < len(windows); {
		same := i + 1
		for same < len(windows) && sameThing(windows[i].On, windows[same].On) {
			same++
		}
		if end, by := lastsUntil(windows[i:same], now); end.After(now) {
			h := by.On
			h.For = end.Sub(now)
			holds = append(holds, h)
		}
		i = same
	}
	return holds
}

func sameThing(a, b store.Hold) bool {
	scopeA, nameA := a.Scope()
	scopeB, nameB := b.Scope()
	return scopeA == scopeB && nameA == nameB
}

// lastsUntil follows adjacent windows, for at most a week, and returns when the last ends and which window contains now.
func lastsUntil(windows []Window, now time.Time) (end time.Time, by Window) {
	end = now
	for range 7 * len(windows) {
		later := end
		for _, w := range windows {
			if until, inside := w.Until(end); inside && until.After(later) {
				later = until
				if end.Equal(now) {
					by = w
				}
			}
		}
		if !later.After(end) {
			break
		}
		end = later
	}
	return end, by
}

func (r *reader) limitKey(name string, e *entry) key {
	return key{"limit", func(r *reader, at place) {
		l := &limit{at: at}
		r.object(at, append([]key{{"at_most", count(&l.atMost, 1, 1_000_000)}}, l.paceKeys(r, name)...))
		r.burstAlone(at, l)
		e.limit = l
	}}
}

func (l *limit) paceKeys(r *reader, name string) []key {
	return []key{
		{"per_second", r.onlyNamed(name, "a rate", number(&l.perSecond, 1e6))},
		{"burst", r.onlyNamed(name, "a burst", number(&l.burst, 1e6))},
	}
}

func (r *reader) burstAlone(at place, l *limit) {
	if l.burst > 0 && l.burst < 1 {
		r.wrong(at, "a burst of %v lets nothing through: give at least 1", l.burst)
	}
	if at.Kind == yaml.MappingNode && l.burst > 0 && !has(at.Node, "per_second") {
		r.wrong(at, "a burst without per_second: add per_second")
	}
}

func has(n *yaml.Node, word string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == word {
			return true
		}
	}
	return false
}

// pace reads how fast an owner may enqueue. A pattern is allowed here: each owner has a bucket of its own.
func (r *reader) pace(at place) *limit {
	l := &limit{at: at}
	before := len(r.mistakes)
	r.object(at, l.paceKeys(r, "each"))
	if len(r.mistakes) == before && l.perSecond == 0 {
		r.wrong(at, "no per_second: add it")
		return nil
	}
	r.burstAlone(at, l)
	if l.perSecond == 0 {
		return nil
	}
	return l
}

// uselessLimits reports limits that are higher than the limit of a pattern that also covers the name: a job runs only if
// all holds that cover it let it through.
func (r *reader) uselessLimits(s *Set) {
	for _, kind := range sectionNames {
		sec := s.section(kind)
		for name, e := range sec.named {
			if e.limit == nil {
				continue
			}
			for prefix := range sec.prefixes(name) {
				wide := sec.patterns[prefix].limit
				if wide != nil && wide.atMost > 0 && e.limit.atMost > wide.atMost {
					r.wrong(e.limit.at, "at_most %d can never be reached: %s.%s* limits each name to %d, and both limits apply; raise that one or lower this one", e.limit.atMost, kind, prefix, wide.atMost)
				}
			}
		}
	}
}
