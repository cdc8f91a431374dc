package ops

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

func TestEveryHoldIsExplainedWithARemedy(t *testing.T) {
	job := holdfast.Job{ID: holdfast.NewID(), Queue: "mail", Kind: "send", Owner: "acme", Dependency: "gateway", AsOf: noon, DueAt: at(5), Failures: 1}
	for _, c := range []struct {
		hold   jobHold
		name   string
		text   string
		remedy string
	}{
		{jobHold{hold: holdfast.Hold{Queue: "mail", Actor: "ann", Since: noon, Until: at(60), Reason: "it moves"}}, "queue paused",
			"queue mail is paused by ann since 2026-05-04 12:00:00 until 2026-05-04 12:01:00: it moves", "lift it: holdfast resume --queue mail"},
		{jobHold{hold: holdfast.Hold{Owner: "ac*", AtMost: 2, Source: holdfast.SourceLimit, Actor: "policy", Since: noon}, running: 2}, "limit",
			"at most 2 jobs of each owner ac* may run at once, and as many are running, by policy since", "wait for one of them to end, or raise the limit in the policy"},
		{jobHold{hold: holdfast.Hold{Kind: "send", Rate: &holdfast.Rate{PerSecond: 0.5, Burst: 1}, Actor: "ann", Since: noon}}, "rate",
			"kind send is limited to 30 per minute, and the limit is used up (the next one in about 2s)", "holdfast resume --kind send"},
		{jobHold{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBudget, Retries: true, Rate: &holdfast.Rate{PerSecond: 0.05, Burst: 100, Level: 0.5}, Actor: "holdfast"}}, "budget",
			"retries of dependency gateway have used up the retry budget (the next one in about 10s)", "holdfast resume --dependency gateway --source budget; or retry this job: holdfast retry " + job.ID.String()},
		{jobHold{hold: holdfast.Hold{Queue: "mail", Source: holdfast.SourceWindow, Retries: true, Until: at(9), Actor: "policy"}}, "window",
			"retries of queue mail must wait until a time window of the policy ends, by policy", "holdfast policy apply FILE"},
		{jobHold{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceHandler, Until: at(9), Actor: "holdfast"}}, "handler",
			"a handler asked to hold dependency gateway", "holdfast resume --dependency gateway --source handler"},
		{jobHold{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, Expected: at(30), Actor: "holdfast", Since: noon, Reason: "14 of the last 20 calls failed"}}, "breaker",
			"the breaker of gateway is open, next probe 2026-05-04 12:00:30, by holdfast since 2026-05-04 12:00:00: 14 of the last 20 calls failed", "holdfast breakers close gateway"},
		{jobHold{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, AtMost: 2, Actor: "holdfast"}, running: 2}, "breaker",
			"the breaker of gateway is half-open: 2 of 2 probes are running", "holdfast breakers show gateway"},
		{jobHold{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, Rate: &holdfast.Rate{PerSecond: 2, Burst: 1}, Actor: "holdfast"}}, "breaker",
			"the breaker of gateway is recovering and lets 2 per second through (the next one in about 500ms)", "wait"},
		{jobHold{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, Actor: "ann"}, circuit: &breaker.Circuit{State: breaker.ForcedOpen}}, "breaker",
			"the breaker of gateway is forced-open", "holdfast breakers auto gateway"},
		{jobHold{hold: holdfast.Hold{Tag: "o'neill & sons", Actor: "ann"}}, "tag paused", "tag o'neill & sons is paused", `holdfast resume --tag 'o'\''neill & sons'`},
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
		{hold: holdfast.Hold{Queue: "q", AtMost: 2}, running: 1},
		{hold: holdfast.Hold{Queue: "q", Rate: &holdfast.Rate{PerSecond: 1, Burst: 2, Level: 1}}},
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
		hold holdfast.Hold
		job  holdfast.Job
		on   bool
	}{
		{holdfast.Hold{Queue: "q"}, job, true}, {holdfast.Hold{Queue: "p"}, job, false}, {holdfast.Hold{Kind: "k"}, job, true},
		{holdfast.Hold{Owner: "ac*"}, job, true}, {holdfast.Hold{Owner: "*"}, holdfast.Job{}, false}, {holdfast.Hold{Dependency: "d"}, job, true},
		{holdfast.Hold{Tag: "b"}, job, true}, {holdfast.Hold{Tag: "c"}, job, false},
		{holdfast.Hold{Queue: "q", Retries: true}, job, false}, {holdfast.Hold{Queue: "q", Retries: true}, failed, true},
	} {
		if covers(c.hold, c.job) != c.on {
			t.Errorf("%+v on a job with %d failures: wanted %v", c.hold, c.job.Failures, c.on)
		}
	}
}
