package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// GoSettings holds the retry settings of a program in Go as text, as its workers publish them. The names are those of a policy file.
type GoSettings struct {
	Engine       Described                    `json:"engine,omitzero"`        // Config.Policy
	Kinds        map[string]Described         `json:"kinds,omitempty"`        // KindOptions.Policy, by kind
	Dependencies map[string]map[string]string `json:"dependencies,omitempty"` // Config.Dependencies, by name
}

// IsZero reports whether the program sets nothing.
func (g GoSettings) IsZero() bool { return g.Engine.IsZero() && len(g.Kinds)+len(g.Dependencies) == 0 }

// Described holds settings as text, in general and by code.
type Described struct {
	Settings map[string]string            `json:"settings,omitempty"`
	Codes    map[string]map[string]string `json:"codes,omitempty"`
}

// IsZero reports whether nothing is set.
func (s Described) IsZero() bool { return len(s.Settings)+len(s.Codes) == 0 }

// maxValueBytes limits one value of a publication, because any worker may publish.
const maxValueBytes = 300

// known returns only what an explanation shows: settings with known names, their values truncated.
func (g GoSettings) known(q Question) GoSettings {
	sift := func(given map[string]string) map[string]string {
		kept := map[string]string{}
		for name, value := range given {
			if slices.Contains(inOrder, name) || strings.HasPrefix(name, "breaker.") || strings.HasPrefix(name, "budget.") {
				kept[truncate(name, 40)] = truncate(value, maxValueBytes)
			}
		}
		return kept
	}
	only := func(s Described) Described {
		return Described{sift(s.Settings), map[string]map[string]string{q.Code.Name: sift(s.Codes[q.Code.Name])}}
	}
	return GoSettings{only(g.Engine), map[string]Described{q.Kind: only(g.Kinds[q.Kind])}, map[string]map[string]string{q.Dependency: sift(g.Dependencies[q.Dependency])}}
}

// Describe returns the settings of a policy as text.
func Describe(p failure.Policy) Described {
	e := entryOf(p)
	return e.settings()
}

func (e *entry) settings() Described {
	given := Described{Settings: e.terms.settings()}
	for name, t := range e.codes {
		if words := t.settings(); len(words) > 0 {
			if given.Codes == nil {
				given.Codes = map[string]map[string]string{}
			}
			given.Codes[name] = words
		}
	}
	return given
}

// DescribeDependency returns the settings of a program for a dependency as text.
func DescribeDependency(b breaker.Config, budget failure.Budget, noBudget bool) map[string]string {
	d := dependencySettings{breaker: b, budget: budget}
	if b.FailFast {
		d.failFast = &b.FailFast
	}
	if b.Disabled {
		d.off = &b.Disabled
	}
	if noBudget {
		d.budgetOff = &noBudget
	}
	return d.settings()
}

// A Question asks which settings apply. An empty Code asks about failures in general, an empty Owner or Dependency about
// jobs that have none.
type Question struct {
	Kind       string
	Code       failure.Code // zero: any
	CodeSource string       // where the code is defined
	Owner      string
	Dependency string
	InGo       GoSettings        // settings of the program that works on the kind
	Job        map[string]string // settings of the job itself
}

// An Explanation lists the settings that apply to failures of a kind, each with its source.
type Explanation struct {
	Kind       string    `json:"kind"`
	Code       string    `json:"code,omitempty"`
	Owner      string    `json:"owner,omitempty"`
	Dependency string    `json:"dependency,omitempty"`
	Version    int       `json:"version,omitempty"` // of the applied policy; 0: none is applied
	Order      []string  `json:"order"`             // the sources in their order of precedence, the highest first
	Settings   []Setting `json:"settings"`
	Holds      []string  `json:"holds,omitempty"` // limits and windows: all of them apply
	Notes      []string  `json:"notes,omitempty"` // what is not known
}

// A Setting is one setting that applies.
type Setting struct {
	Name   string  `json:"name"` // as in a policy file
	Value  string  `json:"value"`
	Source string  `json:"source"`           // one of Order, or a part of it
	Others []Given `json:"others,omitempty"` // values of sources with lower precedence, the highest first
}

// A Given is the value of a setting in one source.
type Given struct {
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Explain returns every setting that applies, with its source. The sources are those of [Set.Over], in the same order.
func (s *Set) Explain(q Question) Explanation {
	q.InGo = q.InGo.known(q)
	e := Explanation{Kind: q.Kind, Code: q.Code.Name, Owner: q.Owner, Dependency: q.Dependency}
	t := table{}
	t.put(levelBuiltIn, builtIn())
	if q.Code.Name != "" {
		class := map[string]string{"retryable": strconv.FormatBool(q.Code.Retryable), "class": q.Code.Category + ", blames " + string(q.Code.Blame)}
		if q.Code.Benign {
			class["class"] += ", benign"
		}
		t.put("code "+q.Code.Name+": "+cmp.Or(q.CodeSource, levelBuiltIn), class)
	}
	e.Order = []string{levelBuiltIn}
	for _, l := range s.levels(Own{}, q.Kind, q.Owner) {
		given := l.entry.settings()
		switch l.name {
		case levelEngine:
			given = q.InGo.Engine
		case levelKind:
			given = q.InGo.Kinds[q.Kind]
		}
		t.put(l.name, given.Settings)
		t.put(l.codeName(q.Code.Name), given.Codes[q.Code.Name])
		e.Order = append(e.Order, l.name)
		if l.name == levelDefaults {
			e.Order = append(e.Order, "codes")
		}
	}
	t.put(levelJob, q.Job)
	slices.Reverse(e.Order)
	e.Order = append([]string{levelJob}, e.Order...)
	s.explainNames(&t, q)
	e.Settings, e.Holds = t.settings(), s.covering(q)
	return e
}

// explainNames adds the settings of the owner, the kind and the dependency that are not about retries.
func (s *Set) explainNames(t *table, q Question) {
	for _, found := range s.section("kinds").chain(q.Kind) {
		if found.cost > 0 {
			t.put("kinds."+found.name, map[string]string{"cost": numberText(found.cost)})
		}
	}
	for _, found := range s.section("owners").chain(q.Owner) {
		t.put("owners."+found.name, found.owner.settings())
	}
	if q.Dependency == "" {
		return
	}
	t.put(levelBuiltIn, builtInDependency())
	t.put("Go: Config.Dependencies["+q.Dependency+"]", q.InGo.Dependencies[q.Dependency])
	for _, found := range s.section("dependencies").chain(q.Dependency) {
		t.put("dependencies."+found.name, found.depends.settings())
	}
}

// covering lists the limits and windows of the file that cover such jobs, except those of their queue.
func (s *Set) covering(q Question) (holds []string) {
	say := func(path string, e *entry) {
		if e.limit != nil {
			holds = append(holds, path+": "+e.limit.text())
		}
		for _, w := range e.windows {
			holds = append(holds, path+": no retries "+describe(w))
		}
	}
	if s != nil {
		say(levelDefaults, &s.base)
	}
	for _, named := range []struct{ section, name string }{{"kinds", q.Kind}, {"owners", q.Owner}, {"dependencies", q.Dependency}} {
		sec := s.section(named.section)
		for _, name := range sec.names() {
			prefix, pattern := strings.CutSuffix(name, "*")
			if named.name != "" && (name == named.name || pattern && strings.HasPrefix(named.name, prefix)) {
				say(named.section+"."+name, sec.named[name])
			}
		}
	}
	return holds
}

// A table collects the values of all sources, in ascending order of precedence.
type table map[string][]Given

func (t table) put(source string, given map[string]string) {
	for name, value := range given {
		t[name] = append(t[name], Given{value, source})
	}
}

// inOrder lists the settings in the order of the explanation; others follow by name.
var inOrder = []string{"class", "retryable", "max_attempts", "give_up_after", "backoff", "retry_after_cap", "retry_within", "throttle", "throttle_trips_breaker", "group_benign", "max_crashes", "crash_backoff", "learned", "min_success_rate"}

func (t table) settings() []Setting {
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	settings := make([]Setting, len(names))
	for i, name := range names {
		given := slices.Clone(t[name])
		slices.Reverse(given)
		settings[i] = Setting{name, given[0].Value, given[0].Source, given[1:]}
	}
	return settings
}

// rank returns the position of a setting in the explanation.
func rank(name string) int {
	if at := slices.Index(inOrder, name); at >= 0 {
		return at
	}
	return len(inOrder)
}

// builtIn returns the settings of failure.Policy's zero value.
func builtIn() map[string]string {
	return map[string]string{
		"max_attempts": "3", "give_up_after": "no limit", "backoff": "exponential: 5s, times 2, up to 1h, plus up to 5s",
		"retry_after_cap": "1h", "retry_within": "no limit", "throttle": "as the handler says", "throttle_trips_breaker": "only for status 503", "group_benign": "false",
		"max_crashes": "3", "crash_backoff": "table: 0s, 1s, 2s, 4s, 8s, 16s, 32s, 1m", "learned": "false", "min_success_rate": "2%",
	}
}

// builtInDependency returns the settings of the zero values of breaker.Config and failure.Budget.
func builtInDependency() map[string]string {
	return map[string]string{
		"breaker.window": "20", "breaker.min_calls": "10", "breaker.failure_rate": "50%", "breaker.open_for": "30s", "breaker.open_max": "10m", "breaker.probes": "2", "breaker.successes": "2",
		"breaker.ramp": "30s", "breaker.mode": "hold-queue", "breaker.off": "false", "budget.ratio": "20%", "budget.floor": "3", "budget.burst": "100", "budget.off": "false",
	}
}

func (o *ownerSettings) settings() map[string]string {
	given := map[string]string{}
	put := func(is bool, name, value string) {
		if is {
			given[name] = value
		}
	}
	put(o.share > 0, "share", numberText(o.share))
	if o.enqueue != nil {
		given["enqueue"] = o.enqueue.text()
	}
	put(o.budget.RetriesPerDay > 0, "owner_budget.retries_per_day", strconv.Itoa(o.budget.RetriesPerDay))
	put(o.budget.RetriesPerMonth > 0, "owner_budget.retries_per_month", strconv.Itoa(o.budget.RetriesPerMonth))
	put(o.budget.CostPerDay > 0, "owner_budget.cost_per_day", numberText(o.budget.CostPerDay))
	return given
}

func (d *dependencySettings) settings() map[string]string {
	given := map[string]string{}
	b := d.breaker
	for name, n := range map[string]int{"window": b.Window, "min_calls": b.MinCalls, "probes": b.Probes, "successes": b.Successes} {
		if n > 0 {
			given["breaker."+name] = strconv.Itoa(n)
		}
	}
	for name, length := range map[string]time.Duration{"span": b.Span, "slow_call": b.SlowCall, "open_for": b.OpenFor, "open_max": b.OpenMax, "ramp": b.Ramp} {
		if length > 0 {
			given["breaker."+name] = durationText(length)
		}
	}
	for name, share := range map[string]float64{"breaker.failure_rate": b.FailureRate, "breaker.slow_rate": b.SlowRate, "budget.ratio": d.budget.Ratio} {
		if share > 0 {
			given[name] = percent(share)
		}
	}
	for name, n := range map[string]float64{"budget.floor": d.budget.Floor, "budget.burst": d.budget.Burst} {
		if n > 0 {
			given[name] = numberText(n)
		}
	}
	if d.failFast != nil {
		given["breaker.mode"] = map[bool]string{true: "fail-fast", false: "hold-queue"}[*d.failFast]
	}
	if b.Code != "" {
		given["breaker.code"] = b.Code
	}
	for name, flag := range map[string]*bool{"breaker.off": d.off, "budget.off": d.budgetOff} {
		if flag != nil {
			given[name] = strconv.FormatBool(*flag)
		}
	}
	if d.probe.URL != "" {
		given["probe"] = d.probe.URL + " every " + durationText(d.probe.Every)
	}
	return given
}
