package holdfast

import (
	"errors"
	"strings"
	"time"
)

// A Hold keeps jobs queued without spending anything. Breakers, pauses, limits, budgets and windows are all holds, and act in
// one place: Claim passes over what is held. A hold closes lanes, not jobs, so a million held jobs cost nobody anything.
//
// Exactly one of Queue, Kind, Owner, Dependency and Tag names what is held. A name that ends in * stands for every name that
// begins so; with AtMost, each of them may have that many.
type Hold struct {
	Queue      string `json:"queue,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Owner      string `json:"owner,omitempty"`
	Dependency string `json:"dependency,omitempty"`
	Tag        string `json:"tag,omitempty"`

	// Source is who keeps the hold: operator (when empty), breaker, budget, limit, window or handler. Holds on the same thing from
	// different sources do not replace each other: all of them must let a job through.
	Source  string `json:"source,omitempty"`
	Retries bool   `json:"retries,omitempty"` // keeps back only jobs that have failed before

	// What the hold lets through. Both zero: nothing.
	AtMost int   `json:"at_most,omitempty"` // so many in workers' hands at once, counted from the live leases
	Rate   *Rate `json:"rate,omitempty"`

	For      time.Duration `json:"-"`                 // when it is placed: how long; 0 until it is lifted
	Since    time.Time     `json:"since"`             // set by the store
	Until    time.Time     `json:"until,omitzero"`    // set by the store: it ends by itself then; zero until lifted
	Expected time.Time     `json:"expected,omitzero"` // when its keeper expects to change it; it does not end by itself
	Actor    string        `json:"actor"`
	Reason   string        `json:"reason,omitempty"`
}

// A Rate lets claims through as from a bucket: every claimed job takes one token, and PerSecond are added, up to Burst.
type Rate struct {
	PerSecond float64 `json:"per_second"`
	Burst     float64 `json:"burst"`
	Level     float64 `json:"level"` // tokens: at the beginning when the hold is placed, and now when it is read
}

// Closed reports whether the hold lets nothing through.
func (h *Hold) Closed() bool { return h.AtMost == 0 && h.Rate == nil }

// On answers what is held: queue, kind, owner, dependency or tag, and its name.
func (h *Hold) On() (scope, name string) {
	switch {
	case h.Queue != "":
		return "queue", h.Queue
	case h.Kind != "":
		return "kind", h.Kind
	case h.Owner != "":
		return "owner", h.Owner
	case h.Dependency != "":
		return "dependency", h.Dependency
	}
	return "tag", h.Tag
}

// Upon is the hold on something else, by what On answers.
func (h Hold) Upon(scope, name string) Hold {
	h.Queue, h.Kind, h.Owner, h.Dependency, h.Tag = "", "", "", "", ""
	switch scope {
	case "queue":
		h.Queue = name
	case "kind":
		h.Kind = name
	case "owner":
		h.Owner = name
	case "dependency":
		h.Dependency = name
	default:
		h.Tag = name
	}
	return h
}

// Covers reports whether a name is the hold's, by its pattern.
func (h *Hold) Covers(name string) bool {
	_, own := h.On()
	if begin, each := strings.CutSuffix(own, "*"); each {
		return name != "" && strings.HasPrefix(name, begin)
	}
	return name == own
}

// Sources of holds. What is placed by Pause is the operator's unless it says otherwise.
const (
	SourceOperator = "operator"
	SourceBreaker  = "breaker"
	SourceBudget   = "budget"
	SourceLimit    = "limit"
	SourceWindow   = "window"
	SourceHandler  = "handler"
)

// Check fills in the source and refuses a hold that makes no sense, naming every problem at once. Stores call it first.
func (h *Hold) Check() error {
	var p problems
	if h.Source == "" {
		h.Source = SourceOperator
	}
	p.name("source", h.Source)
	named := 0
	for _, name := range []string{h.Queue, h.Kind, h.Owner, h.Dependency, h.Tag} {
		if name != "" {
			named++
		}
	}
	scope, name := h.On()
	switch begin := strings.TrimSuffix(name, "*"); {
	case named != 1:
		p.add("a hold on one of queue, kind, owner, dependency and tag: name exactly one")
	case scope == "owner" || scope == "tag":
		p.text(scope, name)
	case begin != "":
		p.name(scope, begin)
	}
	if h.For < 0 || h.For > MaxDelay {
		p.add("a hold for %v: give a duration between 0 and 100 years", h.For)
	}
	if h.AtMost < 0 || h.AtMost > 1_000_000 {
		p.add("a hold that lets at most %d through: give 1 to 1000000, or 0 to close it", h.AtMost)
	}
	h.checkRate(&p, strings.HasSuffix(name, "*"))
	if scope == "tag" && (!h.Closed() || h.Retries || strings.HasSuffix(name, "*")) {
		p.add("a hold on a tag closes it for all its jobs: a limit, a pattern or retries alone need a queue, kind, owner or dependency")
	}
	if h.Actor == "" {
		p.add("no actor is named: say who intervenes")
	}
	p.text("actor", h.Actor)
	if len(h.Reason) > 1000 {
		p.add("a reason of %d bytes: the limit is 1000", len(h.Reason))
	}
	return errors.Join(p...)
}

func (h *Hold) checkRate(p *problems, pattern bool) {
	if h.Rate == nil {
		return
	}
	r := h.Rate
	if !(r.PerSecond >= 0 && r.PerSecond <= 1e6 && r.Burst >= 1 && r.Burst <= 1e9 && r.Level >= 0 && r.Level <= r.Burst) {
		p.add("a rate of %v a second, burst %v, level %v: give 0 to 1000000 a second, a burst of at least 1, and a level up to the burst", r.PerSecond, r.Burst, r.Level)
	}
	if pattern {
		p.add("a rate for a pattern: name one queue, kind, owner or dependency")
	}
}
