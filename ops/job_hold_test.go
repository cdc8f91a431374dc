package ops

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

func TestEveryHoldIsExplainedWithARemedy(t *testing.T) {
	job := holdfast.Job{ID: holdfast.NewID(), Queue: "mail", Kind: "send", Owner: "acme", Dependency: "gateway", AsOf: noon, DueAt: at(5), Failures: 1}
	for _, c := range []struct {
		hold   jobHold
		name   string
		text   string
		remedy string
	}{
		{jobHold{hold: store.Hold{Queue: "mail", Actor: "ann", Since: noon, Until: at(60), Reason: "it moves"}}, "queue paused",
			"queue mail is paused by ann since 2026-05-04 12:00:00 until 2026-05-04 12:01:00: it moves", "lift it: holdfast resume --queue mail"},
		{jobHold{hold: store.Hold{Owner: "ac*", AtMost: 2, Source: store.SourceLimit, Actor: "policy", Since: noon}, running: 2}, "limit",
			"at most 2 jobs of each owner ac* may run at once, and as many are running, by policy since", "wait for one of them to end, or raise the limit in the policy"},
		{jobHold{hold: store.Hold{Kind: "send", Rate: &store.Rate{PerSecond: 0.5, Burst: 1}, Actor: "ann", Since: noon}}, "rate",
			"kind send is limited to 30 per minute, and the limit is used up (the next one in about 2s)", "holdfast resume --kind send"},
		{jobHold{hold: store.Hold{Dependency: "gateway", Source: store.SourceBudget, Retries: true, Rate: &store.Rate{PerSecond: 0.05, Burst: 100, Level: 0.5}, Actor: "holdfast"}}, "budget",
			"retries of dependency gateway have used up the retry budget (the next one in about 10s)", "holdfast resume --dependency gateway --source budget; or retry this job: holdfast retry " + job.ID.String()},
		{jobHold{hold: store.Hold{Queue: "mail", Source: store.SourceWindow, Retries: true, Until: at(9), Actor: "policy"}}, "window",
			"retries of queue mail must wait until a time window of the policy ends, by policy", "holdfast policy apply FILE"},
		{jobHold{hold: store.Hold{Dependency: "gateway", Source: store.SourceHandler, Until: at(9), Actor: "holdfast"}}, "handler",
			"a handler asked to hold dependency gateway", "holdfast resume --dependency gateway --source handler"},
		{jobHold{hold: store.Hold{Dependency: "gateway", Source: store.SourceBreaker, Expected: at(30), Actor: "holdfast", Since: noon, Reason: "14 of the last 20 calls failed"}}, "breaker",
			"the breaker of gateway is open, next probe 2026-05-04 12:00:30, by holdfast since 2026-05-04 12:00:00: 14 of the last 20 calls failed", "holdfast breakers close gateway"},
		{jobHold{hold: store.Hold{Dependency: "gateway", Source: store.SourceBreaker, AtMost: 2, Actor: "holdfast"}, running: 2}, "breaker",
			"the breaker of gateway is half-open: 2 of 2 probes are running", "holdfast breakers show gateway"},
		{jobHold{hold: store.Hold{Dependency: "gateway", Source: store.SourceBreaker, Rate: &store.Rate{PerSecond: 2, Burst: 1}, Actor: "holdfast"}}, "breaker",
			"the breaker of gateway is recovering and lets 2 per second through (the next one in about 500ms)", "wait"},
		{jobHold{hold: store.Hold{Dependency: "gateway", Source: store.SourceBreaker, Actor: "ann"}, circuit: &breaker.Snapshot{State: breaker.ForcedOpen}}, "breaker",
			"the breaker of gateway is forced-open", "holdfast breakers auto gateway"},
		{jobHold{hold: store.Hold{Tag: "o'neill & sons", Actor: "ann"}}, "tag paused", "tag o'neill & sons is paused", `holdfast resume --tag 'o'\''neill & sons'`},
	} {
		if !c.hold.blocks() {
			t.Errorf("%+v stops nothing", c.hold.hold)
		}
		r := c.hold.reason(job)
		if r.Name != c.name || !strings.Contains(r.Text, c.text) || !strings.Contains(r.Remedy, c.remedy) || r.Until != c.hold.hold.Until {
			t.Errorf("wanted %q %q, remedy %q; got\n%+v", c.name, c.text, c.remedy, r)
		}
	}
}

func TestAHoldThatLetsMoreThroughIsNoReason(t *testing.T) {
	for _, b := range []jobHold{
		{hold: store.Hold{Queue: "q", AtMost: 2}, running: 1},
		{hold: store.Hold{Queue: "q", Rate: &store.Rate{PerSecond: 1, Burst: 2, Level: 1}}},
	} {
		if b.blocks() {
			t.Errorf("%+v lets more through", b)
		}
	}
}

func TestAHoldIsOnAJobByItsNamesAndItsFailures(t *testing.T) {
	job := holdfast.Job{Queue: "q", Kind: "k", Owner: "acme", Dependency: "d", Tags: []string{"a", "b"}}
	failed := job
	failed.Failures = 1
	for _, c := range []struct {
		hold store.Hold
		job  holdfast.Job
		on   bool
	}{
		{store.Hold{Queue: "q"}, job, true}, {store.Hold{Queue: "p"}, job, false}, {store.Hold{Kind: "k"}, job, true},
		{store.Hold{Owner: "ac*"}, job, true}, {store.Hold{Owner: "*"}, holdfast.Job{}, false}, {store.Hold{Dependency: "d"}, job, true},
		{store.Hold{Tag: "b"}, job, true}, {store.Hold{Tag: "c"}, job, false},
		{store.Hold{Queue: "q", Retries: true}, job, false}, {store.Hold{Queue: "q", Retries: true}, failed, true},
	} {
		if covers(c.hold, c.job) != c.on {
			t.Errorf("%+v on a job with %d failures: wanted %v", c.hold, c.job.Failures, c.on)
		}
	}
}
