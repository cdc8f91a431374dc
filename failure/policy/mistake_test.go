package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

func TestEveryMistakeIsNamedWithItsLine(t *testing.T) {
	text := `defaults:
  max_attempts: many
  give_up_after: 5
codes:
  GW_5X: {max_attempts: 3}
kinds:
  convert:
    max_atempts: 4
    backoff: {shape: cubic}
    cost: -1
  convert: {max_attempts: 1}
owners:
  acme: {share: 0}
  "*": {share: 2, limit: {per_second: 3}}
dependencies:
  gateway:
    breaker: {failure_rate: 50, min_calls: 40, mode: wait}
    probe: {url: "ftp://x"}
  other: {breaker: {min_calls: 40}}
queues:
  "a b": {}
  bulk:
    limit: {at_most: 0}
    no_retries: [{from: "25:00", to: "17:00", zone: Mars/Base, days: [someday]}, {from: "09:00"}]
kindz: {}
`
	_, err := Parse([]byte(text))
	var m Problems
	if !errors.As(err, &m) || !errors.Is(err, holdfast.ErrInvalid) {
		t.Fatalf("%T: %v", err, err)
	}
	want := []string{
		`line 2: defaults.max_attempts: "many" is not a whole number`,
		`line 3: defaults.give_up_after: 5 has no unit: write 5s, 5m or 5h`,
		`line 5: codes.GW_5X: "GW_5X" is not a known failure code; did you mean GW_5XX?`,
		`line 8: kinds.convert.max_atempts is not known; did you mean max_attempts?`,
		`line 9: kinds.convert.backoff.shape: "cubic" is not a shape`,
		`line 10: kinds.convert.cost: "-1" is not a number above 0`,
		`line 11: kinds.convert is given twice; the first is on line 7`,
		`line 13: owners.acme.share: "0" is not a number above 0`,
		`line 14: owners.*.share: a share for a pattern: use a name without *`,
		`line 14: owners.*.limit.per_second: a rate for a pattern: use a name without *`,
		`line 17: dependencies.gateway.breaker.failure_rate: 50 is more than 100%; write 50% or 0.5`,
		`line 17: dependencies.gateway.breaker.mode: "wait" is not a mode`,
		`line 18: dependencies.gateway.probe.url: this is not an address`,
		`line 19: dependencies.other.breaker: min_calls 40 of the last 20 calls can never be reached: give a larger window, or a span`,
		`line 21: queues.a b: queue "a b": use 1 to 128 letters`,
		`line 23: queues.bulk.limit.at_most: "0" is not a whole number from 1`,
		`line 24: queues.bulk.no_retries[1].from: "25:00" is not a time of day`,
		`line 24: queues.bulk.no_retries[1].zone: "Mars/Base" is not a time zone`,
		`line 24: queues.bulk.no_retries[1].days[1]: "someday" is not a day`,
		`line 24: queues.bulk.no_retries[2]: a window needs from and to`,
		`line 25: kindz is not known; did you mean kinds?`,
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range max(len(lines), len(want)) {
		got, expected := "nothing", "nothing"
		if i < len(lines) {
			got = lines[i]
		}
		if i < len(want) {
			expected = want[i]
		}
		if !strings.HasPrefix(got, expected) {
			t.Errorf("got  %s\nwant %s", got, expected)
		}
	}
}

func TestAFileWithAnyMistakeIsRefused(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for what, c := range map[string]struct{ text, want string }{
		"an empty file":               {"", "line 1: the file is empty"},
		"only comments":               {"# nothing\n", "line 1: the file is empty"},
		"null":                        {"null\n", "line 1: the file is empty"},
		"a list":                      {"- a\n", "line 1: the file: expected names with values, such as {name: value}; found a list"},
		"a word":                      {"hello\n", `found "hello"`},
		"two documents":               {"kinds: {a: {cost: 1}}\n---\nkinds: {b: {cost: 1}}\n", "a second document begins here"},
		"no YAML":                     {"kinds: {a: {cost: 1}\nowners: x: y\n", "this is not valid YAML"},
		"a tab":                       {"kinds:\n\ta: {cost: 1}\n", "this is not valid YAML"},
		"a broken second document":    {"kinds: {a: {cost: 1}}\n---\n{", "this is not valid YAML"},
		"an anchor":                   {"kinds: {a: &x {cost: 1}}\n", "line 1: an anchor (&x)"},
		"an alias":                    {"kinds:\n  a: &x {cost: 1}\n  b: *x\n", "line 3: an alias (*x)"},
		"a merge":                     {"kinds:\n  a: {cost: 1}\n  b: {<<: {cost: 1}}\n", "kinds.b.<< is not known"},
		"a tag":                       {"defaults: {max_attempts: !!int 3}\n", "a tag (!!int)"},
		"a foreign tag":               {"defaults: !secret {max_attempts: 3}\n", "a tag (!secret)"},
		"no UTF-8":                    {"kinds:\n  a\xff: {}\n", "line 2: an invalid character"},
		"control characters":          {"kinds:\n\n  a\x00: {}\n", "line 3: an invalid character"},
		"too large":                   {"# " + strings.Repeat("x", MaxText), "line 1: the file has 1048578 bytes"},
		"a section of nothing":        {"kinds:\n", "line 1: kinds: expected names with values, such as {name: value}; found nothing"},
		"an entry of nothing":         {"kinds: {a: {}}\n", "kinds.a: it is empty"},
		"an object for a number":      {"defaults: {max_attempts: {a: b}}\n", "expected a whole number from 1 to 2147483647, found an object"},
		"a list for an object":        {"kinds: {a: [1]}\n", "found a list"},
		"a number too large":          {"defaults: {max_attempts: 3000000000}\n", "is not a whole number from 1 to 2147483647"},
		"a fraction of an attempt":    {"defaults: {max_attempts: 2.5}\n", "is not a whole number"},
		"a negative duration":         {"defaults: {give_up_after: -1h}\n", "is not a duration"},
		"a duration without end":      {"defaults: {give_up_after: 99999999d}\n", "is not a duration"},
		"a zero duration":             {"defaults: {give_up_after: 0s}\n", "0 is not allowed here"},
		"nonsense for a duration":     {"defaults: {give_up_after: soon}\n", "is not a duration"},
		"nonsense for a share":        {"dependencies: {a: {budget: {ratio: lots}}}\n", "is not a percentage"},
		"more than all":               {"dependencies: {a: {budget: {ratio: 120%}}}\n", "is not a percentage"},
		"not a number":                {"dependencies: {a: {budget: {ratio: NaN}}}\n", "is not a percentage"},
		"an infinite cost":            {"kinds: {a: {cost: .inf}}\n", "is not a number"},
		"neither true nor false":      {"kinds: {a: {learned: maybe}}\n", "neither true nor false"},
		"words of another shape":      {"defaults: {backoff: {shape: fixed, delay: 5s, factor: 2}}\n", "factor cannot be used with shape fixed"},
		"a fixed backoff without one": {"defaults: {backoff: {shape: fixed}}\n", "no delay"},
		"a table without delays":      {"defaults: {backoff: {shape: table}}\n", "no delays"},
		"a base above the cap":        {"defaults: {backoff: {base: 2h, cap: 1h}}\n", "longer than cap"},
		"strange jitter":              {"defaults: {backoff: {jitter: lots}}\n", "jitter"},
		"an unknown code":             {"dependencies: {a: {breaker: {code: FROBNICATED}}}\n", "a failure code that is not defined"},
		"a burst without a rate":      {"kinds: {a: {limit: {burst: 5}}}\n", "a burst without per_second"},
		"a useless burst":             {"kinds: {a: {limit: {per_second: 5, burst: 0.5}}}\n", "give at least 1"},
		"an enqueue rate of nothing":  {"owners: {a: {enqueue: {burst: 5}}}\n", "no per_second"},
		"a limit that cannot be":      {"owners: {\"*\": {limit: {at_most: 5}}, a: {limit: {at_most: 6}}}\n", "at_most 6 can never be reached: owners.* limits each name to 5"},
		"a local zone":                {"defaults: {no_retries: {from: \"1:00\", to: \"2:00\", zone: Local}}\n", "is not a time zone"},
		"a zone that is a path":       {"defaults: {no_retries: {from: \"1:00\", to: \"2:00\", zone: ../../etc/passwd}}\n", "is not a time zone"},
		"an empty window":             {"defaults: {no_retries: {from: \"1:00\", to: \"1:00\"}}\n", "from and to are the same"},
		"a zone without a budget":     {"owners: {a: {budget: {zone: UTC}}}\n", "a zone without a budget"},
		"a password":                  {"dependencies: {a: {probe: {url: \"http://u:hunter2@x/\"}}}\n", "a password in an address"},
		"open for two years":          {"dependencies: {a: {breaker: {open_max: 730d}}}\n", "open_max is 17520h0m0s: give a duration up to a year"},
		"a rate of all":               {"defaults: {min_success_rate: 100%}\n", "100% would stop every retry"},
		"a complex key":               {"kinds: {[a]: {cost: 1}}\n", "a name is missing, or is not a plain word"},
		"depth":                       {"kinds: " + deep, "found a list"},
	} {
		s, err := Parse([]byte(c.text))
		if s != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %.300v", what, c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in %v", what, err)
		}
	}
}

func TestAFileFullOfAliasesIsRefusedQuickly(t *testing.T) {
	text := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'q'; c++ {
		before := string(c - 1)
		text += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 9), ",") + "]\n"
	}
	if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "an alias") {
		t.Errorf("%.200v", err)
	}
}

func TestAMegabyteOfMistakesIsReadInSeconds(t *testing.T) {
	for what, line := range map[string]string{
		"patterns":      "  \"a%05d*\": {limit: {at_most: 1}}\n",
		"unknown words": "  a%05d: {max_atempts: 1}\n",
		"twice":         "  a: {cost: 1} # %d\n",
	} {
		text := []byte("kinds:\n")
		for i := range 10_000 {
			text = fmt.Appendf(text, line, i)
		}
		start := time.Now()
		_, _ = Parse(text)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
}

func TestAnApplicationsOwnCodesAreKnown(t *testing.T) {
	taxonomy, err := failure.NewTaxonomy(failure.Code{Name: "PRESS_JAM", Category: "handler", Retryable: true, Blame: failure.BlameUs, HTTPStatus: 500, Message: "The press is jammed.", Remedy: "Open it."})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("codes: {PRESS_JAM: {max_attempts: 3}}\n")
	if _, err := Parse(text); err == nil {
		t.Error("a code of another application was accepted")
	}
	if _, err := ParseFor(text, taxonomy); err != nil {
		t.Error(err)
	}
}

func FuzzWhateverTheFileParsingItNeverPanics(f *testing.F) {
	f.Add(whole)
	f.Add("kinds: {a: {backoff: {delays: []}}}")
	f.Add("? [a]\n: b\n")
	f.Add("\xef\xbb\xbfkinds: {a: {cost: 1}}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]byte(text))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v and %v", s, err)
		}
		var m Problems
		if err != nil && (!errors.As(err, &m) || len(m) == 0 || m[0].Line < 1) {
			t.Fatalf("%T: %v", err, err)
		}
		if s == nil {
			return
		}
		for _, h := range s.Holds() {
			if err := h.Check(); err != nil {
				t.Fatalf("a hold that no store accepts: %v", err)
			}
		}
		for _, d := range s.Dependencies() {
			if err := s.Breaker(d).Check(); err != nil {
				t.Fatal(err)
			}
		}
		if err := (failure.Rules{Policy: s.For("a", "b")}).Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAThrottleIsFreeOrAnAttempt(t *testing.T) {
	_, err := Parse([]byte("defaults:\n  throttle: cheap\ncodes:\n  RATE_LIMITED:\n    throttle: [free]\n    throttle_trips_breaker: perhaps\n"))
	for _, want := range []string{
		`line 2: defaults.throttle: "cheap" is not a throttle setting; use free (a throttled attempt costs nothing) or attempt (it costs an attempt)`,
		`line 5: codes.RATE_LIMITED.throttle: `, `line 6: codes.RATE_LIMITED.throttle_trips_breaker: `,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	s := parsed(t, "defaults: {throttle: free}\nkinds: {paid: {throttle: attempt, codes: {RATE_LIMITED: {throttle: free, throttle_trips_breaker: true}}}}\n")
	if got := s.For("other", ""); got.Throttle != failure.ThrottleFree || got.ThrottleTripsBreaker != nil {
		t.Errorf("other: %+v", got)
	}
	got := s.For("paid", "")
	code := got.Codes["RATE_LIMITED"]
	if got.Throttle != failure.ThrottleAttempt || code.Throttle != failure.ThrottleFree || code.ThrottleTripsBreaker == nil || !*code.ThrottleTripsBreaker {
		t.Errorf("paid: %+v", got)
	}
}
