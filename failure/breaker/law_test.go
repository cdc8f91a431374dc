package breaker

import (
	"cmp"
	"encoding/json"
	"math"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func anySpan(t *rapid.T, label string) time.Duration {
	return rapid.OneOf(
		rapid.Just(time.Duration(0)), rapid.Map(rapid.Int64Range(0, 1000), func(n int64) time.Duration { return time.Duration(n) * time.Second }),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }),
	).Draw(t, label)
}

func anyCount(t *rapid.T, label string) int {
	return rapid.OneOf(rapid.IntRange(0, 30), rapid.Int()).Draw(t, label)
}

func anyConfig(t *rapid.T) Config {
	share := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64(), rapid.Just(math.NaN()))
	return Config{
		Window: anyCount(t, "window"), Span: anySpan(t, "span"), MinCalls: anyCount(t, "min calls"),
		FailureRate: share.Draw(t, "failure rate"), SlowCall: anySpan(t, "slow call"), SlowRate: share.Draw(t, "slow rate"),
		OpenFor: anySpan(t, "open for"), OpenMax: anySpan(t, "open max"), Probes: anyCount(t, "probes"), Successes: rapid.IntRange(-1, 5).Draw(t, "successes"),
		Ramp: anySpan(t, "ramp"), FailFast: rapid.Bool().Draw(t, "fail fast"), Disabled: rapid.IntRange(0, 9).Draw(t, "disabled") == 0,
	}
}

func anyObservation(t *rapid.T) Observation {
	o := Observation{
		Calls: anyCount(t, "calls"), Failures: anyCount(t, "failures"), Slow: anyCount(t, "slow"),
		Code: rapid.String().Draw(t, "code"), Message: string(rapid.SliceOf(rapid.Byte()).Draw(t, "message")), Over: anySpan(t, "over"),
	}
	if rapid.Bool().Draw(t, "in order") {
		o.Sequence = rapid.SliceOfN(rapid.Bool(), 0, 40).Draw(t, "sequence")
		o.Calls = len(o.Sequence)
	}
	return o
}

// happen lets one thing happen to a circuit.
func happen(t *rapid.T, c Config, s Snapshot, now time.Time) (Snapshot, []Transition) {
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0, 1:
		return c.Observe(s, anyObservation(t), now)
	case 2:
		return c.Probed(s, rapid.Bool().Draw(t, "ok"), now)
	case 3:
		to := rapid.SampledFrom(append([]State{Auto, "", "ajar"}, states...)).Draw(t, "to")
		s, moved, _ := c.Force(s, to, rapid.SampledFrom([]string{"", "ada", "\xff"}).Draw(t, "actor"), rapid.String().Draw(t, "reason"), now)
		return s, moved
	default:
		s, _ = c.Guard(s, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "who"), anySpan(t, "lease"), now)
		return c.Tick(s, now)
	}
}

func asJSON(t *rapid.T, s Snapshot) string {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhateverHappensACircuitStaysSoundAndSurvivesAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s, now := anyConfig(t), Snapshot{}, t0
		moves := []Transition(nil)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(2*time.Hour)).Draw(t, "passes")))
			before := asJSON(t, s)
			next, moved := happen(t, c, s, now)
			if asJSON(t, s) != before {
				t.Fatal("the circuit it was given has changed")
			}
			moves = append(moves, moved...)
			if was := cmp.Or(s.State, Closed); !follows(was, next.State, moved) {
				t.Fatalf("from %s to %s by %v", was, next.State, moved)
			}
			check(t, c, next, now)
			s = next
			if rapid.Bool().Draw(t, "restart") {
				var read Snapshot
				if err := json.Unmarshal([]byte(asJSON(t, s)), &read); err != nil {
					t.Fatal(err)
				}
				if d := diff.Diff(s, read); d != "" {
					t.Fatalf("kept -, read +:\n%s", d)
				}
				s = read
			}
		}
		if d := diff.Diff(moves[max(0, len(moves)-MaxTransitions):], s.History); d != "" && len(moves) > 0 {
			t.Fatalf("returned -, in the history +:\n%s", d)
		}
	})
}

// follows reports whether the transitions tell of the step, once.
func follows(from, to State, moved []Transition) bool {
	if len(moved) == 0 {
		return from == to
	}
	return len(moved) == 1 && from != to && moved[0].From == from && moved[0].To == to
}

// check holds a circuit against the rules.
func check(t *rapid.T, c Config, to Snapshot, now time.Time) {
	if len(asJSON(t, to)) > 100_000 || len(to.Recent) > maxWindow || len(to.Slots) > maxSlots+1 {
		t.Fatal("it grows")
	}
	f := c.Flow(to, now)
	if f.AtMost < 0 || f.AtMost > 1e6 || !(f.PerSecond >= 0 && f.PerSecond <= 1e6) || f.PerSecond > 0 && !(f.Burst >= 1 && f.Burst <= 1e6) {
		t.Fatalf("a hold would refuse %+v", f)
	}
	if to.State.Refuses() && !c.FailFast && !(c.Disabled && to.State == Open) && f != (Flow{}) {
		t.Fatalf("%s lets through %+v", to.State, f)
	}
	if wait := to.Until.Sub(now); wait > max(c.filled().OpenMax, c.filled().Ramp)+clockTolerance {
		t.Fatalf("it waits for %v", wait)
	}
}

func TestEveryUnforcedBreakerClosesInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s, now := anyConfig(t), Snapshot{}, t0
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "passes")))
			s, _ = happen(t, c, s, now)
		}
		s, _, _ = c.Force(s, Auto, "ada", "", now)
		for range 6 {
			now = now.Add(max(c.filled().OpenMax, c.filled().Ramp) + clockTolerance)
			s, _ = c.Tick(s, now)
		}
		if s.State != Closed {
			t.Fatalf("stuck: %+v", s)
		}
	})
}

func TestTheRampNeverFallsAndEndsAtThePeakRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Ramp: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "ramp"))}
		s := Snapshot{State: Recovering, Since: t0, Until: t0.Add(c.Ramp), Peak: rapid.OneOf(rapid.Float64Range(0, 5000), rapid.Float64(), rapid.Just(math.NaN())).Draw(t, "peak")}
		top := 10.0
		if s.Peak > top {
			top = min(s.Peak, maxRate)
		}
		last := 0.0
		for i := range 121 {
			at := t0.Add(time.Duration(float64(c.Ramp) * (float64(i) - 10) / 100))
			rate, flow := c.Rate(s, at), c.Flow(s, at)
			if rate < last || rate < top/64 || rate > top {
				t.Fatalf("%v after %v at step %d", rate, last, i)
			}
			if ideal := top * math.Exp2(doublings*(float64(i)-10)/100-doublings); i >= 10 && i < 110 && rate > ideal*1.000001 {
				t.Fatalf("step %d: %v is above the ramp's %v", i, rate, ideal)
			}
			if flow.PerSecond != rate || flow.Free {
				t.Fatalf("the flow is %+v, the rate %v", flow, rate)
			}
			last = rate
		}
		if last != top {
			t.Fatalf("it ends at %v of %v", last, top)
		}
	})
}

func TestTheGroupingOfObservationsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Window: rapid.IntRange(1, 20).Draw(t, "window"), MinCalls: rapid.IntRange(1, 20).Draw(t, "min"), FailureRate: rapid.Float64Range(0.1, 1).Draw(t, "rate")}
		all := rapid.StringMatching(`[.x]{0,60}`).Draw(t, "calls")
		whole, _ := c.Observe(Snapshot{}, calls(all), t0)
		parts := Snapshot{}
		for rest := all; rest != "" && parts.State != Open; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			parts, _ = c.Observe(parts, calls(rest[:n]), t0)
			rest = rest[n:]
		}
		if all == "" {
			parts.State = Closed
		}
		if whole.State != parts.State || whole.Recent != parts.Recent {
			t.Fatalf("%s %q, in parts %s %q", whole.State, whole.Recent, parts.State, parts.Recent)
		}
	})
}

func TestTheFailureRateNeverExceedsTheLimitWhileClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Window: 10, MinCalls: 5}
		letters := rapid.StringMatching(`[.x]{1,80}`).Draw(t, "calls")
		s, opened := Snapshot{}, -1
		for i := range letters {
			if s, _ = c.Observe(s, calls(letters[i:i+1]), t0); s.State == Open {
				opened = i
				break
			}
		}
		want := -1
		for i := range letters {
			window := letters[max(0, i-9) : i+1]
			failures := 0
			for _, letter := range window {
				if letter == 'x' {
					failures++
				}
			}
			if len(window) >= 5 && 2*failures >= len(window) {
				want = i
				break
			}
		}
		if opened != want {
			t.Fatalf("opened at call %d, want %d of %s", opened, want, letters)
		}
	})
}

func TestThePeakIsThatOfAllProcessesTogether(t *testing.T) {
	s, now := Snapshot{}, t0
	for range 600 { // two processes, 40 good calls a second each, for five minutes
		now = now.Add(500 * time.Millisecond)
		for range 2 {
			s, _ = Config{}.Observe(s, Observation{Calls: 20, Sequence: make([]bool, 20), Over: 500 * time.Millisecond}, now)
		}
	}
	if s.Peak < 78 || s.Peak > 82 {
		t.Errorf("%v calls a second", s.Peak)
	}
	quiet, _ := Config{}.Observe(s, calls("."), now.Add(time.Hour))
	if quiet.Peak > 5 {
		t.Errorf("an hour later it is still used to %v", quiet.Peak)
	}
	late, _ := Config{}.Observe(Snapshot{}, Observation{Calls: 600, Sequence: make([]bool, 600), Over: time.Minute}, now)
	if late.Peak > 11 {
		t.Errorf("a minute's calls in one observation are %v a second", late.Peak)
	}
	failing, _ := Config{Disabled: false, FailureRate: 1}.Observe(Snapshot{}, calls("."+bad(900)), now)
	if failing.Peak > 1 {
		t.Errorf("failures count for %v a second", failing.Peak)
	}
}

func TestAFailFastBreakerLetsJobsBeClaimedWhileOpen(t *testing.T) {
	for _, state := range []State{Open, ForcedOpen} {
		if !(Config{FailFast: true}).Flow(in(t, state).s, t0).Free {
			t.Errorf("%s holds jobs back", state)
		}
	}
	if got := (Config{FailFast: true}).Flow(in(t, HalfOpen).s, t0.Add(time.Minute)); got != (Flow{AtMost: 2}) {
		t.Errorf("%+v", got)
	}
}

func TestHistoryRemembersTheLastFifty(t *testing.T) {
	s := Snapshot{}
	for i := range 40 {
		s, _, _ = Config{}.Force(s, ForcedOpen, "ada", "", t0.Add(time.Duration(i)*time.Minute))
		s, _, _ = Config{}.Force(s, ForcedClosed, "ada", "", t0.Add(time.Duration(i)*time.Minute))
	}
	if len(s.History) != MaxTransitions || s.History[MaxTransitions-1].To != ForcedClosed {
		t.Errorf("%d", len(s.History))
	}
}
