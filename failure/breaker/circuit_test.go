package breaker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// calls makes an observation of letters: . good, x bad.
func calls(letters string) Observation {
	o := Observation{Calls: len(letters), Code: "GW_5XX", Message: "bad gateway", Over: time.Second}
	for _, letter := range letters {
		o.Sequence = append(o.Sequence, letter == 'x')
		if letter == 'x' {
			o.Failures++
		}
	}
	return o
}

// A scene is a circuit and the time that passes for it.
type scene struct {
	t   *testing.T
	cfg Config
	s   Snapshot
	now time.Time
}

func (c *scene) took(moved []Transition, want ...State) {
	c.t.Helper()
	var got []State
	for _, m := range moved {
		got = append(got, m.To)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("at %v, want -, got +:\n%s", c.now.Sub(t0), diff)
	}
}

func (c *scene) see(letters string, want ...State) {
	c.t.Helper()
	var moved []Transition
	c.s, moved = c.cfg.Observe(c.s, calls(letters), c.now)
	c.took(moved, want...)
}

func (c *scene) pass(d time.Duration, want ...State) {
	c.t.Helper()
	c.now = c.now.Add(d)
	var moved []Transition
	c.s, moved = c.cfg.Tick(c.s, c.now)
	c.took(moved, want...)
}

func begin(t *testing.T, cfg Config) *scene { return &scene{t: t, cfg: cfg, now: t0} }

func bad(n int) string  { return strings.Repeat("x", n) }
func good(n int) string { return strings.Repeat(".", n) }

func TestACircuitOpensIsProbedRampsUpAndCloses(t *testing.T) {
	c := begin(t, Config{})
	c.see(good(20) + bad(9))
	c.see("x", Open)
	if got := c.s.History[0].Why; got != "10 of the last 20 calls failed, last GW_5XX: bad gateway" {
		t.Errorf("why: %s", got)
	}
	if got := c.cfg.Flow(c.s, c.now); got != (Flow{}) {
		t.Errorf("an open circuit lets something through: %+v", got)
	}
	c.pass(29 * time.Second)
	c.pass(time.Second, HalfOpen)
	if got := c.cfg.Flow(c.s, c.now); got != (Flow{AtMost: 2}) {
		t.Errorf("half-open: %+v", got)
	}
	c.see(".")
	c.see(".", Recovering)
	c.pass(29 * time.Second)
	c.pass(time.Second, Closed)
	if got := c.cfg.Flow(c.s, c.now); got != (Flow{Free: true}) || c.s.Opens != 0 {
		t.Errorf("closed: %+v, %d opens", got, c.s.Opens)
	}
	for _, m := range c.s.History {
		if m.Actor != System || m.Why == "" || m.At.IsZero() {
			t.Errorf("incomplete: %+v", m)
		}
	}
}

func TestTheWindowJudgesSoManyCallsAndNoFewerThanTheMinimum(t *testing.T) {
	cases := []struct {
		name  string
		cfg   Config
		calls string
		opens bool
	}{
		{"nine failures are too few to judge", Config{}, bad(9), false},
		{"ten failures of ten", Config{}, bad(10), true},
		{"five of ten", Config{}, ".x.x.x.x.x", true},
		{"four of ten", Config{}, ".x.x.x.x..", false},
		{"nine of the last twenty", Config{}, good(11) + bad(9), false},
		{"failures that have left the window", Config{}, good(20) + bad(9) + good(11) + bad(9), false},
		{"a window of four", Config{Window: 4, MinCalls: 4}, "..xx", true},
		{"a minimum that cannot be reached is the window", Config{Window: 4, MinCalls: 400}, "..xx", true},
		{"every call has to fail", Config{FailureRate: 1}, "." + bad(19), false},
		{"every call fails", Config{FailureRate: 1}, bad(10), true},
		{"switched off", Config{Disabled: true}, bad(100), false},
		{"nothing but good", Config{}, good(1000), false},
		{"it opens in the middle of an observation", Config{}, bad(10) + good(1000), true},
	}
	for _, tc := range cases {
		s, moved := tc.cfg.Observe(Snapshot{}, calls(tc.calls), t0)
		if (s.State == Open) != tc.opens || len(moved) > 1 || (len(moved) == 1) != tc.opens {
			t.Errorf("%s: %s after %v", tc.name, s.State, moved)
		}
	}
}

func TestASpanJudgesTheCallsOfThatTimeOnly(t *testing.T) {
	c := begin(t, Config{Span: time.Minute, MinCalls: 10})
	c.see(bad(9))
	c.pass(61 * time.Second) // they have left the minute
	c.see(bad(9))
	c.pass(61 * time.Second)
	c.see(good(30))
	c.pass(30 * time.Second)
	c.see(bad(29))
	c.pass(40 * time.Second) // the good ones leave, and the next call, whatever it comes to, is the thirtieth
	c.see(".", Open)
	if why := c.s.History[0].Why; !strings.HasPrefix(why, "29 of 30 calls in the last 1m0s failed") {
		t.Error(why)
	}
	if len(c.s.Slots) != 0 || c.s.Recent != "" {
		t.Error("the window outlived its state")
	}
}

func TestSlowCallsOpenABreakerIfConfigured(t *testing.T) {
	slow := Observation{Calls: 20, Slow: 16, Sequence: make([]bool, 20)}
	if s, _ := (Config{}).Observe(Snapshot{}, slow, t0); s.State != Closed {
		t.Error("slow calls are counted although SlowCall is not set")
	}
	minds := Config{SlowCall: 5 * time.Second}
	s, moved := minds.Observe(Snapshot{}, slow, t0)
	if s.State != Open || !strings.HasPrefix(moved[0].Why, "16 of the last 20 calls took longer than 5s") {
		t.Errorf("%s: %v", s.State, moved)
	}
	slow.Slow = 15
	if s, _ := minds.Observe(Snapshot{}, slow, t0); s.State != Closed {
		t.Error("15 of 20 are no 80 %")
	}
	s, _ = minds.Tick(s, t0.Add(time.Minute))
	s, moved = minds.Observe(s, Observation{Calls: 2, Slow: 2, Sequence: make([]bool, 2)}, t0.Add(time.Minute))
	if s.State != Open || s.Opens != 2 {
		t.Errorf("slow probes: %s, %v", s.State, moved)
	}
}

func TestAFailedProbeOpensTheCircuitForTwiceAsLongUpToTheLimit(t *testing.T) {
	c := begin(t, Config{OpenFor: 10 * time.Second, OpenMax: time.Minute})
	c.see(bad(10), Open)
	for _, wait := range []time.Duration{10, 20, 40, 60, 60, 60} {
		wait *= time.Second
		if got := c.s.Until.Sub(c.now); got != wait {
			t.Fatalf("open for %v, want %v", got, wait)
		}
		c.pass(wait-1, []State(nil)...)
		c.pass(1, HalfOpen)
		c.see("."+"x", Open)
	}
	c.pass(time.Minute, HalfOpen)
	c.see("..", Recovering)
	c.pass(time.Minute, Closed)
	c.see(bad(20), Open)
	if got := c.s.Until.Sub(c.now); got != 10*time.Second {
		t.Errorf("after it was well it opens for %v", got)
	}
}

func TestARecoveringCircuitIsJudgedAfreshAndSooner(t *testing.T) {
	c := begin(t, Config{OpenFor: 10 * time.Second})
	c.see(bad(20), Open)
	c.pass(10*time.Second, HalfOpen)
	c.see("..", Recovering)
	c.see("xxxx")
	c.see("x", Open)
	if c.s.Opens != 2 || c.s.Until.Sub(c.now) != 20*time.Second {
		t.Errorf("%d opens, for %v", c.s.Opens, c.s.Until.Sub(c.now))
	}
	c.pass(20*time.Second, HalfOpen)
	c.see("..", Recovering)
	c.see("..x.x.")
	c.pass(30*time.Second, Closed)
	c.see("xx")
	c.see("xx", Open) // two of six, and the four since make six of ten
}

func TestFewerCallsThanFiveJudgeARecoveringCircuitOnlyWhenTheyAlwaysDo(t *testing.T) {
	c := begin(t, Config{MinCalls: 2, Successes: 1})
	c.see("xx", Open)
	c.pass(time.Minute, HalfOpen)
	c.see(".", Recovering)
	c.see("x")
	c.see("x", Open)
}

func TestHalfOpenNeverLastsForEver(t *testing.T) {
	c := begin(t, Config{OpenMax: 5 * time.Minute})
	c.see(bad(10), Open)
	c.pass(time.Minute, HalfOpen)
	c.see(".") // and then there are no more calls
	c.pass(5*time.Minute - 1)
	c.pass(1, Recovering)
	c.pass(30*time.Second, Closed)
}

func TestWithoutASequenceFailedProbesCountFirst(t *testing.T) {
	c := begin(t, Config{})
	c.see(bad(10), Open)
	c.pass(time.Minute, HalfOpen)
	s, _ := c.cfg.Observe(c.s, Observation{Calls: 10, Failures: 1}, c.now)
	if s.State != Open {
		t.Error(s.State)
	}
}

func TestAHealthProbeReplacesJobsAsProbes(t *testing.T) {
	c := begin(t, Config{})
	c.see(bad(10), Open)
	var watching bool
	if c.s, watching = c.cfg.Guard(c.s, "a", time.Minute, c.now); !watching {
		t.Fatal("refused although no process probes")
	}
	if _, watching := c.cfg.Guard(c.s, "b", time.Minute, c.now); watching {
		t.Error("two watch at once")
	}
	c.pass(31 * time.Second)
	var moved []Transition
	c.s, moved = c.cfg.Probed(c.s, false, c.now)
	c.took(moved)
	if got := c.s.Until.Sub(c.now); got != 30*time.Second {
		t.Errorf("the next try is in %v", got)
	}
	c.s, _ = c.cfg.Probed(c.s, true, c.now)
	c.s, moved = c.cfg.Probed(c.s, true, c.now)
	c.took(moved, Recovering)
	if c.s.Probing != "" {
		t.Error("the process still probes")
	}
	for _, ok := range []bool{true, false} {
		if _, moved := c.cfg.Probed(c.s, ok, c.now); moved != nil {
			t.Error("a health probe knows better than calls")
		}
	}
}

func TestJobsProbeAgainAfterTheProberDied(t *testing.T) {
	c := begin(t, Config{})
	c.see(bad(10), Open)
	c.s, _ = c.cfg.Guard(c.s, "a", 40*time.Second, c.now)
	c.pass(39 * time.Second)
	if _, ok := c.cfg.Guard(c.s, "b", time.Minute, c.now.Add(time.Second)); !ok {
		t.Error("no other process can take over")
	}
	c.pass(time.Second, HalfOpen)
	if _, ok := c.cfg.Guard(c.s, "a", time.Minute, c.now); ok {
		t.Error("jobs probe already")
	}
	var moved []Transition
	c.s, moved = c.cfg.Probed(c.s, false, c.now)
	c.took(moved, Open)
}

func TestTheClockMayGoBackwards(t *testing.T) {
	c := begin(t, Config{Span: time.Minute})
	c.see(bad(5))
	c.now = c.now.Add(-time.Second)
	c.see(bad(5), Open)
	c.now = c.now.Add(-24 * time.Hour)
	c.pass(0)
	if wait := c.s.Until.Sub(c.now); wait > c.cfg.filled().OpenMax {
		t.Errorf("it waits for %v", wait)
	}
	c.pass(10*time.Minute, HalfOpen)
	c.now = c.now.Add(-24 * time.Hour)
	c.see("..", Recovering)
	c.now = c.now.Add(-24 * time.Hour)
	c.pass(0)
	c.pass(40*time.Second, Closed)
}

func TestSwitchingABreakerOffClosesIt(t *testing.T) {
	c := begin(t, Config{})
	c.see(bad(10), Open)
	c.cfg.Disabled = true
	if !c.cfg.Flow(c.s, c.now).Free {
		t.Error("it still holds")
	}
	c.pass(0, Closed)
	c.pass(time.Hour)
}
