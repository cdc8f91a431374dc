package store

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// A Hold keeps queued jobs from being claimed, at no cost to them. Breakers, pauses, limits, retry budgets and time windows
// are all holds, and they act in one place: Claim skips held jobs. The store applies a hold to lanes, which are jobs with
// the same queue, kind, owner and dependency, and not to single jobs. So the number of held jobs does not slow claims.
//
// Exactly one of Queue, Kind, Owner, Dependency and Tag is set. A name that ends in * is a prefix pattern. With AtMost, each
// name that matches the pattern has its own limit.
type Hold struct {
	Queue      string `json:"queue,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Owner      string `json:"owner,omitempty"`
	Dependency string `json:"dependency,omitempty"`
	Tag        string `json:"tag,omitempty"`

	// Source says which mechanism placed the hold: operator (when empty), breaker, budget, limit, window or handler. Holds of
	// different sources on the same name are independent: a job is claimed only if all of them let it through.
	Source  string `json:"source,omitempty"`
	Retries bool   `json:"retries,omitempty"` // holds only jobs that have failed before

	// What the hold lets through. With neither AtMost nor Rate it lets nothing through.
	AtMost int   `json:"at_most,omitempty"` // number of jobs that may run at once, counted from live leases
	Rate   *Rate `json:"rate,omitempty"`

	For      time.Duration `json:"-"`                 // when placed: how long it lasts; 0: until it is lifted
	Since    time.Time     `json:"since"`             // set by the store
	Until    time.Time     `json:"until,omitzero"`    // set by the store: when it ends by itself; zero: when it is lifted
	Expected time.Time     `json:"expected,omitzero"` // when its source expects to change it; the hold does not end then by itself
	Actor    string        `json:"actor"`
	Reason   string        `json:"reason,omitempty"`
}

// A Rate is a token bucket. Each claimed job takes one token; PerSecond tokens are added each second, up to Burst.
type Rate struct {
	PerSecond float64 `json:"per_second"`
	Burst     float64 `json:"burst"`
	Level     float64 `json:"level"` // tokens: at the start when the hold is placed, current when it is read
}

// Closed reports whether the hold lets nothing through.
func (h *Hold) Closed() bool { return h.AtMost == 0 && h.Rate == nil }

// Scope returns what is held: the scope (queue, kind, owner, dependency or tag) and the name.
func (h *Hold) Scope() (scope, name string) {
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

// WithScope returns a copy of the hold for another scope and name, in the form that On returns.
func (h Hold) WithScope(scope, name string) Hold {
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

// Covers reports whether name matches the hold's name or pattern.
func (h *Hold) Covers(name string) bool {
	_, held := h.Scope()
	if prefix, pattern := strings.CutSuffix(held, "*"); pattern {
		return name != "" && strings.HasPrefix(name, prefix)
	}
	return name == held
}

// Sources of holds. Operator.Pause uses SourceOperator if the hold names no source.
const (
	SourceOperator = "operator"
	SourceBreaker  = "breaker"
	SourceBudget   = "budget"
	SourceLimit    = "limit"
	SourceWindow   = "window"
	SourceHandler  = "handler"
)

// Check sets the default source and validates the hold. The error wraps ErrInvalid and names every problem. Stores call it first.
func (h *Hold) Check() error {
	var p check.Problems
	if h.Source == "" {
		h.Source = SourceOperator
	}
	p.Name("source", h.Source)
	named := 0
	for _, name := range []string{h.Queue, h.Kind, h.Owner, h.Dependency, h.Tag} {
		if name != "" {
			named++
		}
	}
	scope, name := h.Scope()
	switch prefix := strings.TrimSuffix(name, "*"); {
	case named != 1:
		p.Add("a hold is on one queue, kind, owner, dependency or tag: name exactly one")
	case scope == "owner" || scope == "tag":
		p.Text(scope, name)
	case prefix != "":
		p.Name(scope, prefix)
	}
	if h.For < 0 || h.For > check.MaxDelay {
		p.Add("a hold for %v: give a duration between 0 and 100 years", h.For)
	}
	if h.AtMost < 0 || h.AtMost > 1_000_000 {
		p.Add("a hold that lets at most %d jobs run: give 1 to 1000000, or 0 to let none run", h.AtMost)
	}
	h.checkRate(&p, strings.HasSuffix(name, "*"))
	if scope == "tag" && (!h.Closed() || h.Retries || strings.HasSuffix(name, "*")) {
		p.Add("a hold on a tag holds all jobs with the tag: for a limit, a pattern or retries only, name a queue, kind, owner or dependency")
	}
	if h.Actor == "" {
		p.Add("no actor: name the person or program that makes the change")
	}
	p.Text("actor", h.Actor)
	if len(h.Reason) > 1000 {
		p.Add("a reason of %d bytes: the limit is 1000", len(h.Reason))
	}
	return p.Err(invalid)
}

func (h *Hold) checkRate(p *check.Problems, pattern bool) {
	if h.Rate == nil {
		return
	}
	r := h.Rate
	if !(r.PerSecond >= 0 && r.PerSecond <= 1e6 && r.Burst >= 1 && r.Burst <= 1e9 && r.Level >= 0 && r.Level <= r.Burst) {
		p.Add("a rate of %v a second, burst %v, level %v: give 0 to 1000000 a second, a burst of at least 1, and a level up to the burst", r.PerSecond, r.Burst, r.Level)
	}
	if pattern {
		p.Add("a rate for a pattern: name one queue, kind, owner or dependency")
	}
}

// A HeldLine is a line of an order key that a dead letter holds (Draft.OrderHold): the jobs behind it wait until the dead letter is retried and completes, or is
// discarded or purged.
type HeldLine struct {
	Owner   string      `json:"owner,omitempty"`
	Order   string      `json:"order"` // the order key
	Job     holdfast.ID `json:"job"`   // the dead letter
	Kind    string      `json:"kind"`
	Queue   string      `json:"queue"`
	Code    string      `json:"code,omitempty"` // of its last failure
	Since   time.Time   `json:"since"`          // when it failed for good
	Waiting int         `json:"waiting"`        // jobs behind it, up to a thousand
}
