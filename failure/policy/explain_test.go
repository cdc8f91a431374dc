package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// rungs give max_attempts at every level, the highest first, and how an explanation calls it.
var rungs = []struct {
	source string
	file   string // a path in the file
	inGo   func(own *Own, n int)
}{
	{"owners.acme.codes.TIMEOUT", "owners/acme/codes/TIMEOUT", nil},
	{"owners.acme", "owners/acme", nil},
	{"owners.a*", "owners/a*", nil},
	{"kinds.mail.codes.TIMEOUT", "kinds/mail/codes/TIMEOUT", nil},
	{"kinds.mail", "kinds/mail", nil},
	{"kinds.m*", "kinds/m*", nil},
	{"Go: KindOptions.Policy.Codes[TIMEOUT]", "", func(own *Own, n int) { own.Kind.Codes = map[string]failure.Override{"TIMEOUT": {MaxAttempts: n}} }},
	{"Go: KindOptions.Policy", "", func(own *Own, n int) { own.Kind.MaxAttempts = n }},
	{"codes.TIMEOUT", "codes/TIMEOUT", nil},
	{"defaults", "defaults", nil},
	{"Go: Config.Policy.Codes[TIMEOUT]", "", func(own *Own, n int) { own.Engine.Codes = map[string]failure.Override{"TIMEOUT": {MaxAttempts: n}} }},
	{"Go: Config.Policy", "", func(own *Own, n int) { own.Engine.MaxAttempts = n }},
}

// from writes a file, and a program, in which the levels from one on give max_attempts: 10 plus their number.
func from(t *testing.T, first int) (*Set, Own) {
	t.Helper()
	var own Own
	type node map[string]any
	root := node{}
	for n := first; n < len(rungs); n++ {
		if r := rungs[n]; r.inGo != nil {
			r.inGo(&own, 10+n)
			continue
		}
		at := root
		for _, part := range strings.Split(rungs[n].file, "/") {
			if at[part] == nil {
				at[part] = node{}
			}
			at = at[part].(node)
		}
		at["max_attempts"] = 10 + n
	}
	var write func(n node) string
	write = func(n node) string {
		var parts []string
		for name, value := range n {
			if inner, is := value.(node); is {
				value = write(inner)
			}
			parts = append(parts, fmt.Sprintf("%q: %v", name, value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return parsed(t, write(root)), own
}

func setting(e Explanation, name string) Setting {
	i := slices.IndexFunc(e.Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}
	}
	return e.Settings[i]
}

func TestEachLevelAppliesWhereTheLevelsAboveItAreSilent(t *testing.T) {
	timeout, _ := (*failure.Taxonomy)(nil).Code("TIMEOUT")
	for first := range len(rungs) + 1 {
		set, own := from(t, first)
		p := set.Over(own, "mail", "acme")
		applies := max(p.Codes["TIMEOUT"].MaxAttempts, 0)
		if applies == 0 {
			applies = p.MaxAttempts
		}
		inGo := GoSettings{Engine: Describe(own.Engine), Kinds: map[string]Described{"mail": Describe(own.Kind)}}
		got := setting(set.Explain(Question{Kind: "mail", Code: timeout, Owner: "acme", InGo: inGo}), "max_attempts")
		want := Setting{Value: "3", Source: "built in"}
		if first < len(rungs) {
			want = Setting{Value: fmt.Sprint(10 + first), Source: rungs[first].source}
		}
		if got.Value != want.Value || got.Source != want.Source || first < len(rungs) && fmt.Sprint(applies) != want.Value {
			t.Errorf("from %d on: workers go by %d, explained as %s of %s, want %s of %s", first, applies, got.Value, got.Source, want.Value, want.Source)
		}
		if len(got.Others) != len(rungs)-first {
			t.Errorf("from %d on: %d lower sources are shown, want %d", first, len(got.Others), len(rungs)-first)
		}
	}
}

func TestOnlyEntriesThatNameDeliveriesReachThem(t *testing.T) {
	own := Own{Kind: failure.Policy{MaxAttempts: 10}, Engine: failure.Policy{GiveUpAfter: time.Hour}}
	set := parsed(t, `
defaults: {max_attempts: 5, backoff: {shape: fixed, delay: 1s}}
codes: {TIMEOUT: {max_attempts: 6, retryable: false}}
kinds: {"*": {max_attempts: 7}, "h*": {max_attempts: 7}}
owners: {"*": {max_attempts: 8, budget: {retries_per_day: 1}}, "s*": {max_attempts: 8}}
`)
	p := set.Over(own, "holdfast.webhook", "subscription/shop")
	if p.MaxAttempts != 10 || p.GiveUpAfter != time.Hour || p.Backoff != nil || p.Codes != nil {
		t.Errorf("a delivery goes by %+v", p)
	}
	if _, limited := set.OwnerBudget("subscription/shop"); limited {
		t.Error("a delivery has the budget of other owners")
	}
	if got := setting(set.Explain(Question{Kind: "holdfast.webhook", Owner: "subscription/shop"}), "max_attempts"); got.Value != "3" {
		t.Errorf("explained as %+v", got)
	}
	if set.For("mail", "").MaxAttempts != 7 || set.For("holdfast.mail", "").MaxAttempts != 0 || set.For("mail", "").MaxAttempts != 7 {
		t.Error("the answer for one kind is given for another")
	}
	set = parsed(t, `
kinds: {"holdfast.*": {max_attempts: 4}, holdfast.mail: {give_up_after: 2h}}
owners: {"subscription/shop": {max_crashes: 9}}
`)
	if p := set.Over(own, "holdfast.mail", "subscription/shop"); p.MaxAttempts != 4 || p.GiveUpAfter != 2*time.Hour || p.MaxCrashes != 9 {
		t.Errorf("entries that name deliveries do not reach them: %+v", p)
	}
}

func TestAnExplanationNamesTheSourceOfEachPart(t *testing.T) {
	code, _ := (*failure.Taxonomy)(nil).Code("RATE_LIMITED")
	set := parsed(t, `
defaults: {backoff: {shape: fixed, delay: 90s}}
kinds: {mail: {cost: 2, limit: {at_most: 3}}}
owners: {acme: {share: 2, budget: {retries_per_day: 7}, codes: {RATE_LIMITED: {retryable: false}}}}
dependencies: {"smtp*": {breaker: {open_for: 1m, mode: fail-fast}}}
`)
	inGo := GoSettings{
		Kinds:        map[string]Described{"mail": Describe(failure.Policy{GiveUpAfter: 90 * time.Minute, Backoff: failure.Table{time.Second, time.Minute}, Learned: true})},
		Dependencies: map[string]map[string]string{"smtp-1": DescribeDependency(breaker.Config{OpenFor: time.Second, Window: 50}, failure.Budget{Ratio: 0.5}, true)},
	}
	e := set.Explain(Question{Kind: "mail", Code: code, CodeSource: "worker v2", Owner: "acme", Dependency: "smtp-1", InGo: inGo, Job: map[string]string{"max_attempts": "12"}})
	for _, want := range []struct{ name, value, source string }{
		{"class", "throttled, blames dependency", "code RATE_LIMITED: worker v2"}, {"retryable", "false", "owners.acme.codes.RATE_LIMITED"}, {"max_attempts", "12", "the job"},
		{"give_up_after", "1h30m", "Go: KindOptions.Policy"}, {"backoff", "table: 1s, 1m", "Go: KindOptions.Policy"}, {"learned", "true", "Go: KindOptions.Policy"}, {"max_crashes", "3", "built in"},
		{"share", "2", "owners.acme"}, {"cost", "2", "kinds.mail"}, {"owner_budget.retries_per_day", "7", "owners.acme"},
		{"breaker.open_for", "1m", "dependencies.smtp*"}, {"breaker.mode", "fail-fast", "dependencies.smtp*"}, {"breaker.window", "50", "Go: Config.Dependencies[smtp-1]"},
		{"breaker.probes", "2", "built in"}, {"budget.ratio", "50%", "Go: Config.Dependencies[smtp-1]"}, {"budget.off", "true", "Go: Config.Dependencies[smtp-1]"},
	} {
		if got := setting(e, want.name); got.Value != want.value || got.Source != want.source {
			t.Errorf("%s is %q of %q, want %q of %q", want.name, got.Value, got.Source, want.value, want.source)
		}
	}
	if got := setting(e, "backoff").Others; len(got) != 2 || got[0] != (Given{"fixed: 1m30s", "defaults"}) {
		t.Errorf("below the backoff that applies: %v", got)
	}
	if want := []string{"the job", "owners.acme", "kinds.mail", "Go: KindOptions.Policy", "codes", "defaults", "Go: Config.Policy", "built in"}; !slices.Equal(e.Order, want) {
		t.Errorf("the order is %q, want %q", e.Order, want)
	}
	if !slices.Equal(e.Holds, []string{"kinds.mail: at most 3 at once"}) {
		t.Errorf("holds: %q", e.Holds)
	}
}
