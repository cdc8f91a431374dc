package ops

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

func TestABreakersHistoryShowsTheOutages(t *testing.T) {
	history := []breaker.Transition{
		{To: breaker.HalfOpen, At: at(0)}, // what came before is forgotten
		{To: breaker.Recovering, At: at(1)},
		{To: breaker.Closed, At: at(2)},
		{To: breaker.Open, At: at(10), Why: "10 of 20"},
		{To: breaker.HalfOpen, At: at(40)},
		{To: breaker.Open, At: at(41)},
		{To: breaker.HalfOpen, At: at(101)},
		{To: breaker.Recovering, At: at(102)},
		{To: breaker.Open, At: at(110)},
		{To: breaker.HalfOpen, At: at(230)},
		{To: breaker.Recovering, At: at(232)},
		{To: breaker.Closed, At: at(262)},
		{To: breaker.ForcedOpen, At: at(300), Why: "maintenance"},
	}
	want := []Recovery{
		{Dependency: "gateway", Opened: at(10), Why: "10 of 20", Reopened: 2, Back: at(232), Closed: at(262), Away: 222 * time.Second},
		{Dependency: "gateway", Opened: at(300), Why: "maintenance"},
	}
	if diff := cmp.Diff(want, episodes("gateway", history)); diff != "" {
		t.Error(diff)
	}
}

func TestFiguresOfAKindAddUp(t *testing.T) {
	experience := []store.RetryStats{
		{Kind: "mail", Attempts: 10, Complete: 6},
		{Kind: "mail", Code: "TIMEOUT", Number: 1, Attempts: 3, Complete: 1, Again: 2, Took: 3 * time.Second, Wasted: time.Second},
		{Kind: "mail", Code: "TIMEOUT", Number: 2, Attempts: 2, Complete: 1, GaveUp: 1, Took: 2 * time.Second, Wasted: time.Second},
		{Kind: "mail", Code: "BAD_INPUT", Number: 1, Attempts: 1, GaveUp: 1, Took: time.Second, Wasted: time.Second},
		{Kind: "report", Attempts: 1, Complete: 1},
	}
	cost := func(kind string) float64 { return map[string]float64{"mail": 2.5}[kind] }
	want := []KindStats{
		{Kind: "mail", Jobs: 10, FirstTry: 6, Later: 2, GaveUp: 2, Attempts: 14, Retries: 4, Amplification: 1.4, Took: 6 * time.Second, Wasted: 3 * time.Second, Cost: 35, RetryCost: 10},
		{Kind: "report", Jobs: 1, FirstTry: 1, Attempts: 1, Amplification: 1},
	}
	if diff := cmp.Diff(want, kindFigures(experience, cost)); diff != "" {
		t.Error(diff)
	}
	list := retried(experience)
	if len(list) != 3 || list[0].Code != "BAD_INPUT" || list[0].Success != 0 || list[1].Success != 1.0/3 || list[2].Success != 1 {
		t.Errorf("what came of trying again: %+v", list)
	}
}

func TestVaryingAndEqualPropertiesAreSeparated(t *testing.T) {
	job := func(owner string, context map[string]string) holdfast.Job {
		return holdfast.Job{Queue: "q", Kind: "k", Owner: owner, LastFailure: &holdfast.Failure{Context: context}}
	}
	varies, same := compareJobs([]holdfast.Job{
		job("a", map[string]string{"status": "500", "proxy": "p1"}), job("b", map[string]string{"status": "500"}), job("c", map[string]string{"status": "500", "proxy": "p1"}),
	})
	want := []Variation{
		{Name: "owner", Distinct: 3, Values: []Value{{"a", 1}, {"b", 1}, {"c", 1}}},
		{Name: "proxy", Distinct: 2, Values: []Value{{"p1", 2}, {"", 1}}},
	}
	if diff := cmp.Diff(want, varies); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"kind": "k", "queue": "q", "status": "500"}, same); diff != "" {
		t.Error(diff)
	}
}

func TestACircuitIsDescribedWithItsWindow(t *testing.T) {
	b := describe("gateway", breaker.Snapshot{
		State: breaker.Open, Since: at(1), Until: at(31), Recent: "..xsX", Opens: 2, Code: "GW_5XX",
		History: []breaker.Transition{{To: breaker.Open, Why: "first"}, {To: breaker.Open, Why: "then"}},
	})
	if b.Calls != 5 || b.Failures != 2 || b.Slow != 2 || b.NextProbe != at(31) || b.Why != "then" || b.History[1].Why != "first" {
		t.Errorf("described as %+v", b)
	}
	if b = describe("gateway", breaker.Snapshot{State: breaker.Closed, Slots: []breaker.Slot{{Calls: 3, Failures: 1}, {Calls: 2, Slow: 1}}}); b.Calls != 5 || b.Failures != 1 || b.Slow != 1 {
		t.Errorf("described as %+v", b)
	}
	if c := decode(store.Record{Version: 1, Body: []byte(`{"state": 7}`)}); c.State != breaker.Closed {
		t.Errorf("what cannot be read is %+v", c)
	}
}

func TestForcingABreakerKeepsOtherFieldsOfItsRecord(t *testing.T) {
	r := store.Record{Version: 3, Body: []byte(`{"state":"open","until":"2026-05-04T12:00:00Z","code":"GW_5XX","budget":{"per_second":1},"by":"w1#7","flow":{"Free":false}}`)}
	body, err := encode(r, breaker.Snapshot{State: breaker.ForcedOpen})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"budget":{"per_second":1},"by":"w1#7","state":"forced-open"}`, string(body)); diff != "" {
		t.Error(diff)
	}
	if body, err = encode(store.Record{}, breaker.Snapshot{State: breaker.Open}); err != nil || string(body) != `{"state":"open"}` {
		t.Errorf("a new circuit is written as %s, %v", body, err)
	}
}
