package storetest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// Holds in the model.

// A holdName identifies a hold: scope, name and source.
type holdName struct{ scope, name, source string }

func nameOf(h store.Hold) holdName {
	scope, name := h.Scope()
	return holdName{scope, name, cmp.Or(h.Source, store.SourceOperator)}
}

// A held is a hold that was placed. The level of its rate is that of a given time.
type held struct {
	store.Hold
	levelAt time.Time
}

func (h *held) inForce(now time.Time) bool { return h.Until.IsZero() || h.Until.After(now) }

// level is the present level of a rate limit.
func (h *held) level(now time.Time) float64 {
	return min(h.Rate.Burst, h.Rate.Level+max(0, now.Sub(h.levelAt).Seconds())*h.Rate.PerSecond)
}

// fill sets the present level of a rate limit.
func (h *held) fill(level float64, now time.Time) {
	h.Rate = &store.Rate{PerSecond: h.Rate.PerSecond, Burst: h.Rate.Burst, Level: min(h.Rate.Burst, level)}
	h.levelAt = now
}

func (m *model) place(h store.Hold) {
	name := nameOf(h)
	placed := &held{Hold: h, levelAt: m.now}
	placed.Source, placed.Since, placed.For = name.source, m.now, 0
	if h.For > 0 {
		placed.Until = m.now.Add(h.For)
	}
	if old := m.holds[name]; h.Rate != nil && old != nil && old.Rate != nil {
		placed.fill(old.level(m.now), m.now)
	}
	m.holds[name] = placed
}

func (m *model) pause(h store.Hold) error {
	if err := h.Check(); err != nil {
		return err
	}
	m.place(h)
	word := "paused"
	if !h.Closed() {
		word = "limited"
	}
	m.addStory(subjectOf(h), word, h.Actor, h.Reason)
	return nil
}

func (m *model) resume(h store.Hold) error {
	if err := h.Check(); err != nil {
		return err
	}
	old := m.holds[nameOf(h)]
	if old == nil {
		return nil
	}
	if !old.inForce(m.now) { // it ended by itself: a store may or may not record an event
		m.ambiguous[subjectOf(h)] = true
	}
	delete(m.holds, nameOf(h))
	m.addStory(subjectOf(h), "resumed", h.Actor, h.Reason)
	return nil
}

func subjectOf(h store.Hold) string {
	scope, name := h.Scope()
	return "hold/" + scope + "/" + name
}

// addStory adds an event of a subject that is not a job.
func (m *model) addStory(subject, name, actor, reason string) {
	m.stories[subject] = append(m.stories[subject], store.Event{Subject: subject, At: m.now, Name: name, Actor: actor, Reason: reason})
}

// dependency is the dependency of a job: its own, or else the declared one of its kind.
func (m *model) dependency(r *record) string { return cmp.Or(r.Dependency, m.kinds[r.Kind]) }

// covers reports whether a hold is in force and applies to a job, tags aside.
func (m *model) covers(h *held, r *record) bool {
	if !h.inForce(m.now) || h.Retries && r.Failures == 0 {
		return false
	}
	return m.about(h, r)
}

// about reports whether a hold names the queue, kind, owner or dependency of a job.
func (m *model) about(h *held, r *record) bool {
	scope, _ := h.Scope()
	names := map[string]string{"queue": r.Queue, "kind": r.Kind, "owner": r.Owner, "dependency": m.dependency(r)}
	return scope != "tag" && h.Covers(names[scope])
}

// closed reports whether a hold lets no such job through.
func (m *model) closed(r *record) bool {
	for _, h := range m.holds {
		if h.Closed() && m.covers(h, r) {
			return true
		}
	}
	return false
}

func (m *model) tagHeld(r *record) bool {
	return slices.ContainsFunc(r.Tags, func(tag string) bool {
		for name, h := range m.holds {
			if name.scope == "tag" && name.name == tag && h.inForce(m.now) {
				return true
			}
		}
		return false
	})
}

// A limit is what a hold counts by: everything it covers, or each name that its pattern covers.
type limit struct {
	hold *held
	each string
}

// limits are all limits that apply to a job.
func (m *model) limits(r *record) (all []limit) {
	for name, h := range m.holds {
		if h.Closed() || !m.covers(h, r) {
			continue
		}
		each := ""
		if name.name[len(name.name)-1] == '*' {
			each = map[string]string{"queue": r.Queue, "kind": r.Kind, "owner": r.Owner, "dependency": m.dependency(r)}[name.scope]
		}
		all = append(all, limit{h, each})
	}
	return all
}

// capacities returns how many more jobs each limit lets through.
func (m *model) capacities(jobs []*record) map[limit]int {
	live := map[limit]int{}
	for _, r := range m.jobs {
		if r.place == leased {
			for _, l := range m.limits(r) {
				live[l]++
			}
		}
	}
	capacity := map[limit]int{}
	for _, r := range jobs {
		for _, l := range m.limits(r) {
			free := math.MaxInt32
			if l.hold.AtMost > 0 {
				free = max(0, l.hold.AtMost-live[l])
			}
			if l.hold.Rate != nil {
				free = min(free, int(math.Floor(l.hold.level(m.now)+1e-9)))
			}
			capacity[l] = free
		}
	}
	return capacity
}

// spend takes the tokens of a claimed job.
func (m *model) spend(r *record) {
	for _, l := range m.limits(r) {
		if l.hold.Rate != nil {
			l.hold.fill(l.hold.level(m.now)-1, m.now)
		}
	}
}

// behind counts the due jobs that a hold holds: the minimum and the maximum, because some may have been set aside or not promoted.
func (m *model) behind(h store.Hold) (least, most int) {
	hold := &held{Hold: h}
	for _, r := range m.jobs {
		switch {
		case r.place == leased, r.place == finished, r.place == waiting, r.place == later && r.due.After(m.now):
		case h.Tag != "":
			most += countIf(r.aside)
		case h.Retries && r.Failures == 0, !m.about(hold, r):
		case r.aside || r.place == later:
			most++
		default:
			least++
			most++
		}
	}
	return least, most
}
