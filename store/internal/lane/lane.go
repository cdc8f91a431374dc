// Package lane decides what a claim may take: which lanes are open, how many jobs the holds let through, and which
// owner's turn it is.
//
// The decision is the same for every database, so it is written once and does not depend on one. A store reads its
// holds, its lanes and the first jobs of each line; this package picks; the store takes what was picked.
package lane

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// A Lane is where ready jobs of one queue, kind, owner and dependency wait.
type Lane struct {
	ID         int64
	Queue      string
	Kind       string
	Owner      string
	Dependency string // the one that the jobs name, or else the one that their kind declares
}

// Lines returns the numbers of the two lines of a lane in holdfast_ready: first attempts, and retries.
func (l *Lane) Lines() [2]int64 { return [2]int64{l.ID, -l.ID} }

// Dependency returns the dependency of a lane: its own, or else the one that its kind declares. declared may be nil.
func Dependency(own, kind string, declared map[string]string) string {
	if own != "" {
		return own
	}
	return declared[kind]
}

// Both stores claim within these bounds.
const (
	// FewLines is how many lines of one owner a claim merges in exact order. From more lines it takes runs, because a
	// merge reads from every line at every claim.
	FewLines = 16
	// RunLength is how many jobs a claim takes from one line before it goes to the next one. So a job is overtaken by at
	// most this many younger jobs of each other line.
	RunLength = 16
	// MaxSetAside is how many jobs behind held tags one transaction sets aside before it ends with what it has.
	MaxSetAside = 10_000
)

func (l *Lane) name(scope string) string {
	switch scope {
	case "queue":
		return l.Queue
	case "kind":
		return l.Kind
	case "owner":
		return l.Owner
	case "dependency":
		return l.Dependency
	}
	return ""
}

// Valves are the holds in force at one moment, and how many jobs they still let through. A Valves is not safe for
// concurrent use.
type Valves struct {
	closed []store.Hold
	caps   []valve
	tags   map[string]bool

	bounded bool           // the claim limits how many jobs of each owner it runs
	slots   int            // to this many
	busy    map[string]int // how many it already runs or has picked
}

// A valve is a hold that lets some jobs through: a number in all, or a number for each name that its pattern covers.
type valve struct {
	hold  store.Hold
	scope string
	each  bool
	left  map[string]float64 // how many more pass, by name; a name that is missing has not used any
}

// NewValves returns the valves of the holds that are in force. Rates must have their level of this moment.
func NewValves(holds []store.Hold, now time.Time) *Valves {
	v := &Valves{tags: map[string]bool{}}
	for _, h := range holds {
		scope, name := h.Scope()
		switch {
		case !h.Until.IsZero() && !h.Until.After(now):
		case scope == "tag":
			v.tags[name] = true
		case h.Closed():
			v.closed = append(v.closed, h)
		default:
			v.caps = append(v.caps, valve{hold: h, scope: scope, each: strings.HasSuffix(name, "*"), left: map[string]float64{}})
		}
	}
	return v
}

// Level returns the level of a rate limit since after it was r.Level.
func Level(r store.Rate, since time.Duration) float64 {
	return min(r.Burst, r.Level+max(0, since.Seconds())*r.PerSecond)
}

// Bound limits the valves to the slots that a claim has for each owner. 0 slots means no limit.
func (v *Valves) Bound(slots int, busy map[string]int) {
	v.bounded, v.slots, v.busy = slots > 0, slots, map[string]int{}
	for owner, n := range busy {
		v.busy[owner] = max(n, 0)
	}
}

// Open reports whether no hold closes a line.
func (v *Valves) Open(l *Lane, retries bool) bool {
	return !slices.ContainsFunc(v.closed, func(h store.Hold) bool {
		scope, _ := h.Scope()
		return (retries || !h.Retries) && h.Covers(l.name(scope))
	})
}

// Capped reports whether a hold, or the claim itself, limits how many jobs of a line pass.
func (v *Valves) Capped(l *Lane, retries bool) bool {
	return v.bounded || slices.ContainsFunc(v.caps, func(c valve) bool { return c.covers(l, retries) })
}

// Caps reports whether any hold, or the claim itself, limits how many jobs pass.
func (v *Valves) Caps() bool { return v.bounded || len(v.caps) > 0 }

// Selective reports whether the order of keys alone does not decide which jobs of one owner are taken: a tag is held, or
// a hold or the claim itself limits one of the lines. anyLine reports whether a line satisfies a condition; it is not
// called if nothing limits any line.
func (v *Valves) Selective(anyLine func(such func(l *Lane, retries bool) bool) bool) bool {
	return len(v.tags) > 0 || v.Caps() && anyLine(v.Capped)
}

// Tags returns the held tags.
func (v *Valves) Tags() map[string]bool { return v.tags }

// Held returns the held tag behind which a job has to be set aside, if there is one.
func (v *Valves) Held(tags []string) (tag string, held bool) {
	if len(v.tags) == 0 {
		return "", false
	}
	for _, tag := range tags {
		if v.tags[tag] {
			return tag, true
		}
	}
	return "", false
}

func (c *valve) covers(l *Lane, retries bool) bool {
	return (retries || !c.hold.Retries) && c.hold.Covers(l.name(c.scope))
}

// key returns the name by which the jobs of a lane are counted.
func (c *valve) key(l *Lane) string {
	if c.each {
		return l.name(c.scope)
	}
	return ""
}

// remaining returns how many more jobs of a lane pass.
func (c *valve) remaining(l *Lane) float64 {
	if left, known := c.left[c.key(l)]; known {
		return left
	}
	left := math.Inf(1)
	if c.hold.AtMost > 0 {
		left = float64(c.hold.AtMost)
	}
	if c.hold.Rate != nil {
		left = min(left, math.Floor(c.hold.Rate.Level+1e-9))
	}
	return left
}

// Live counts processing jobs of a line, whichever worker runs them. It must be called for all of them before anything
// is picked.
func (v *Valves) Live(l *Lane, retries bool, jobs int) {
	for i := range v.caps {
		if c := &v.caps[i]; c.hold.AtMost > 0 && c.covers(l, retries) {
			live := c.left[c.liveKey(l)] + float64(jobs)
			c.left[c.liveKey(l)] = live
			c.left[c.key(l)] = c.remainingBeside(live)
		}
	}
}

// liveKey returns the key under which the count of processing jobs is kept. No name contains NUL, so it is no name.
func (c *valve) liveKey(l *Lane) string { return "\x00" + c.key(l) }

// remainingBeside returns how many more jobs pass beside this many processing ones.
func (c *valve) remainingBeside(live float64) float64 {
	left := max(0, float64(c.hold.AtMost)-live)
	if c.hold.Rate != nil {
		left = min(left, math.Floor(c.hold.Rate.Level+1e-9))
	}
	return left
}

// Remaining returns how many more jobs of a line may be taken.
func (v *Valves) Remaining(l *Lane, retries bool) int {
	remaining := math.Inf(1)
	if v.bounded {
		remaining = float64(v.slots - v.busy[l.Owner])
	}
	for i := range v.caps {
		if c := &v.caps[i]; c.covers(l, retries) {
			remaining = min(remaining, c.remaining(l))
		}
	}
	return int(min(max(remaining, 0), math.MaxInt32))
}

// take counts picked jobs of a line in every valve that covers it.
func (v *Valves) take(l *Lane, retries bool, jobs int) {
	if v.bounded {
		v.busy[l.Owner] += jobs
	}
	for i := range v.caps {
		if c := &v.caps[i]; c.covers(l, retries) {
			c.left[c.key(l)] = c.remaining(l) - float64(jobs)
		}
	}
}

// Spend returns how many tokens the taken jobs cost, for each rate limit, as negative deposits.
func (v *Valves) Spend(taken []Share) (spent []store.Deposit) {
	for i := range v.caps {
		c := &v.caps[i]
		if c.hold.Rate == nil {
			continue
		}
		n := 0
		for _, s := range taken {
			if c.covers(s.Lane, s.Retries()) {
				n += s.Jobs
			}
		}
		if n > 0 {
			spent = append(spent, store.Deposit{Hold: c.hold, Tokens: -float64(n)})
		}
	}
	return spent
}
