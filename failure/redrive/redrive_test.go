package redrive

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func careful() Spec {
	return Spec{Filter: store.Filter{Code: "GW_5XX"}, Canary: 5, PerSecond: 10, InFlight: 20, StopAbove: 0.2, StopAfter: 10, Actor: "ada"}
}

// An operator is a store with dead letters: the jobs that it gives are in flight for some steps and end as configured.
type operator struct {
	left    int
	counts  store.RedriveCounts
	running []int // steps to go
	fails   func(n int) bool
	takes   int // steps that a job is under way
	ended   int
}

func (d *operator) take(n int) (got int, last bool) {
	got = min(n, d.left)
	d.left -= got
	d.counts.Taken += got
	for range got {
		d.running = append(d.running, d.takes)
	}
	d.counts.InFlight = len(d.running)
	return got, d.left == 0
}

func (d *operator) pass() {
	var still []int
	for _, togo := range d.running {
		if togo > 1 {
			still = append(still, togo-1)
			continue
		}
		if d.fails(d.ended) {
			d.counts.Failed++
		} else {
			d.counts.Complete++
		}
		d.ended++
	}
	d.running = still
	d.counts.InFlight = len(still)
}

// drive runs a redrive to its end, keeping it as JSON between any two steps, and answers with what each second took.
func drive(t interface {
	Fatalf(format string, args ...any)
}, o Spec, d *operator) (Progress, []int) {
	p, now := Start(holdfast.NewID(), o, noon), noon
	var taken []int
	for range 10_000 {
		take, next, why := Next(p, d.counts, now)
		if why == "" {
			t.Fatalf("a step without a reason: %+v", next)
		}
		got, last := 0, next.Exhausted
		if take > 0 {
			got, last = d.take(take)
		}
		taken = append(taken, got)
		next = next.Plan(nil, "", last).AfterStep(nil)
		body, err := json.Marshal(next)
		if err != nil {
			t.Fatalf("progress cannot be kept: %v", err)
		}
		p = Progress{}
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatalf("progress cannot be read: %v", err)
		}
		if p.State != Running {
			return p, taken
		}
		now = now.Add(time.Second)
		d.pass()
	}
	t.Fatalf("the redrive never ended: %+v", p)
	return p, nil
}

func TestTheCanaryEndsBeforeAnythingElseIsTaken(t *testing.T) {
	d := &operator{left: 100, takes: 4, fails: func(int) bool { return false }}
	p, taken := drive(t, careful(), d)
	if p.State != Done || d.counts.Complete != 100 || p.EndedAt.IsZero() {
		t.Fatalf("%s, %+v", p.Why, d.counts)
	}
	if fmt.Sprint(taken[:6]) != "[5 0 0 0 10 10]" {
		t.Errorf("the first seconds took %v", taken[:6])
	}
}

func TestACanaryThatFailsAgainStopsTheRest(t *testing.T) {
	d := &operator{left: 100, takes: 2, fails: func(n int) bool { return n < 2 }}
	p, _ := drive(t, careful(), d)
	if p.State != Stopped || d.counts.Taken != 5 || !strings.Contains(p.Why, "2 of the canary's 5 failed again, more than 20%") {
		t.Errorf("%s: %s, %+v", p.State, p.Why, d.counts)
	}
	d = &operator{left: 100, takes: 2, fails: func(n int) bool { return n < 1 }}
	if p, _ = drive(t, careful(), d); p.State != Done {
		t.Errorf("one of five is not more than 20%%, yet: %s: %s", p.State, p.Why)
	}
}

func TestACanaryWithoutResultsStopsTheRest(t *testing.T) {
	p := Start(holdfast.NewID(), careful(), noon)
	_, p, why := Next(p, store.RedriveCounts{Taken: 5, Cancelled: 5}, noon)
	if p.State != Stopped || !strings.Contains(why, "completed or failed") {
		t.Errorf("%s: %s", p.State, why)
	}
}

func TestTooManyFailuresStopItLaterToo(t *testing.T) {
	d := &operator{left: 1000, takes: 1, fails: func(n int) bool { return n >= 50 }}
	p, _ := drive(t, careful(), d)
	if p.State != Stopped || d.counts.Taken > 100 || d.counts.Taken < 60 {
		t.Errorf("%s: %s, %+v", p.State, p.Why, d.counts)
	}
	p, err := Resume(p, "ada", "repaired", noon.Add(time.Hour))
	if err != nil || p.State != Running {
		t.Fatalf("%v, %+v", err, p)
	}
	take, p, why := Next(p, d.counts, noon.Add(time.Hour+time.Second))
	if take == 0 || p.State != Running {
		t.Errorf("earlier results stop a resumed redrive: %d, %s", take, why)
	}
}

func TestALoneFailureAmongFewIsNoReasonToStop(t *testing.T) {
	o := careful()
	o.Canary = 0
	_, p, _ := Next(Start(holdfast.NewID(), o, noon), store.RedriveCounts{Taken: 20, InFlight: 11, Complete: 5, Failed: 4}, noon)
	if p.State != Running {
		t.Errorf("judged after 9 of 10: %s", p.Why)
	}
	_, p, _ = Next(p, store.RedriveCounts{Taken: 20, InFlight: 10, Complete: 6, Failed: 4}, noon)
	if p.State != Stopped {
		t.Errorf("not judged after 10: %s", p.Why)
	}
}

// Whatever the order and however slow the jobs: never more in flight than it says, never faster than a second's worth plus
// what time gives, never more than the limit, and it ends.
func TestNoOrderIsExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Spec{
			All: true, Actor: "ada", Canary: rapid.IntRange(0, 20).Draw(t, "canary"), InFlight: rapid.IntRange(1, 50).Draw(t, "in flight"),
			PerSecond: rapid.Float64Range(0.3, 60).Draw(t, "rate"), StopAbove: 1, Limit: rapid.IntRange(0, 120).Draw(t, "limit"),
		}
		p, now := Start(holdfast.NewID(), o, noon), noon
		d := &operator{left: rapid.IntRange(0, 150).Draw(t, "dead letters"), takes: rapid.IntRange(1, 5).Draw(t, "takes"), fails: func(int) bool { return true }}
		there, latest := d.left, noon
		for step := 0; p.State == Running; step++ {
			take, next, _ := Next(p, d.counts, now)
			last := next.Exhausted
			if take > 0 {
				_, last = d.take(take)
			}
			p = next.Plan(nil, "", last)
			if now.After(latest) {
				latest = now
			}
			within := o.PerSecond*latest.Sub(noon).Seconds() + max(1, o.PerSecond) + 1e-6
			switch {
			case d.counts.InFlight > o.InFlight:
				t.Fatalf("%d in flight, %d may be", d.counts.InFlight, o.InFlight)
			case float64(d.counts.Taken) > within:
				t.Fatalf("%d taken after %v at %v a second", d.counts.Taken, now.Sub(noon), o.PerSecond)
			case o.Limit > 0 && d.counts.Taken > o.Limit:
				t.Fatalf("%d taken, the limit is %d", d.counts.Taken, o.Limit)
			case !p.Passed && o.Canary > 0 && d.counts.Taken > o.Canary:
				t.Fatalf("%d taken before the canary of %d had ended", d.counts.Taken, o.Canary)
			case step > 100_000:
				t.Fatalf("it never ends: %+v, %+v", p, d.counts)
			}
			// A clock that stands still or goes backwards now and then is harmless.
			now = now.Add(time.Duration(rapid.IntRange(-200, 3000).Draw(t, "passes")) * time.Millisecond)
			d.pass()
		}
		want := there
		if o.Limit > 0 {
			want = min(there, o.Limit)
		}
		if p.State != Done || d.counts.Taken != want {
			t.Fatalf("%s: %s; %d of %d taken", p.State, p.Why, d.counts.Taken, want)
		}
	})
}

func TestPausedCancelledAndEndedOnesTakeNothing(t *testing.T) {
	p := Start(holdfast.NewID(), careful(), noon)
	paused, err := Pause(p, "ada", "lunch", noon)
	if err != nil || paused.Why != "paused by ada: lunch" {
		t.Fatalf("%v, %q", err, paused.Why)
	}
	cancelled, err := Cancel(paused, "ada", "", noon)
	if err != nil || !cancelled.State.Ended() {
		t.Fatalf("%v, %+v", err, cancelled)
	}
	for _, still := range []Progress{paused, cancelled} {
		if take, _, why := Next(still, store.RedriveCounts{}, noon.Add(time.Hour)); take != 0 || why != still.Why {
			t.Errorf("%s took %d: %s", still.State, take, why)
		}
	}
	if _, err := Resume(cancelled, "ada", "", noon); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a cancelled one was resumed: %v", err)
	}
	if _, err := Pause(paused, "ada", "", noon); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a paused one was paused again: %v", err)
	}
	if _, err := Cancel(cancelled, "ada", "", noon); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a cancelled one was cancelled again: %v", err)
	}
	resumed, err := Resume(paused, "bob", "", noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if take, _, _ := Next(resumed, store.RedriveCounts{}, noon.Add(time.Hour)); take != 0 {
		t.Errorf("an hour's pause was worth %d at once", take)
	}
}

func TestAStepThatIsRepeatedRefusesNothingTwice(t *testing.T) {
	p := Start(holdfast.NewID(), careful(), noon)
	ids := []holdfast.ID{holdfast.NewID(), holdfast.NewID()}
	p = p.Plan(ids, "next", false)
	if len(p.Pending) != 2 || p.Filter(noon).Cursor != "next" || !p.Filter(noon).DeadLetters {
		t.Fatalf("%+v", p)
	}
	again := p.AfterStep([]Refusal{{ids[0], "gone"}}).AfterStep([]Refusal{{ids[0], "gone"}})
	if again.RefusedJobs != 1 || len(again.Refused) != 1 || len(again.Pending) != 0 {
		t.Errorf("%+v", again)
	}
	for range 2 * MaxRefused {
		again = again.AfterStep([]Refusal{{holdfast.NewID(), "gone"}})
	}
	if again.RefusedJobs != 1+2*MaxRefused || len(again.Refused) != MaxRefused {
		t.Errorf("%d refused, %d kept", again.RefusedJobs, len(again.Refused))
	}
}

func TestAgesInTheFilterCountFromTheStart(t *testing.T) {
	o := careful()
	o.Filter.OlderThan, o.Filter.NewerThan = time.Hour, 24*time.Hour
	f := Start(holdfast.NewID(), o, noon).Filter(noon.Add(10 * time.Minute))
	if f.OlderThan != 70*time.Minute || f.NewerThan != 24*time.Hour+10*time.Minute {
		t.Errorf("older than %v, younger than %v", f.OlderThan, f.NewerThan)
	}
}

func TestAnInvalidOrderIsRefusedWithEveryProblem(t *testing.T) {
	if err := careful().Check(); err != nil {
		t.Fatalf("a sound order was refused: %v", err)
	}
	bad := Spec{
		Filter: store.Filter{State: holdfast.Complete, Limit: 3, OlderThan: -1}, Canary: -1, PerSecond: 1e9, InFlight: -1, StopAbove: 20, StopAfter: -1, Limit: -1,
		Patch: json.RawMessage(`[1]`), Queue: "a b", Discard: true, Reason: strings.Repeat("x", 2000),
	}
	err := bad.Check()
	for _, part := range []string{"complete jobs", "a cursor or a limit", "negative age", "canary of -1", "1e+09 a second", "in flight", "stop above 20", "after -1", "limit of -1", "not a JSON object", "queue \"a b\"", "discarded: remove", "actor", "reason of 2000"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not mentioned in:\n%v", part, err)
		}
	}
	if !errors.Is(err, holdfast.ErrInvalid) {
		t.Error("it is not invalid")
	}
	everything := Spec{Actor: "ada"}
	if err := everything.Check(); err == nil || !strings.Contains(err.Error(), "redrive of every dead letter") {
		t.Errorf("everything was taken without asking: %v", err)
	}
	if everything.All = true; everything.Check() != nil {
		t.Errorf("all was refused: %v", everything.Check())
	}
	if err := (Spec{All: true, Actor: "ada", Discard: true}).Check(); err == nil || !strings.Contains(err.Error(), "why the jobs are discarded") {
		t.Errorf("discarded without a reason: %v", err)
	}
}

// A step that the store refuses is tried again for ever, so such an order may not begin.
func TestAnOrderIsRefusedIfTheStoreWouldRefuseItsSteps(t *testing.T) {
	for part, change := range map[string]func(*Spec){
		`queue "holdfast": it is reserved`: func(o *Spec) { o.Queue = "holdfast" },
		`queue "HoldFast": it is reserved`: func(o *Spec) { o.Queue = "HoldFast" },
		"without control characters":       func(o *Spec) { o.Reason = "repaired\nand tested" },
		"actor \"ann\\x1b[2J\"":            func(o *Spec) { o.Actor = "ann\x1b[2J" },
		"not valid JSON":                   func(o *Spec) { o.Patch = json.RawMessage("{\"size\": \"\xff\"}") },
	} {
		o := careful()
		change(&o)
		if err := o.Check(); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the order was answered with %v", part, err)
		}
	}
}
