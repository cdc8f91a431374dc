package ops

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

func TestEveryHoldIsPutIntoWordsWithWhatCanBeDone(t *testing.T) {
	job := holdfast.Job{ID: holdfast.NewID(), Queue: "mail", Kind: "send", Owner: "acme", Dependency: "gateway", AsOf: noon, DueAt: at(5), Failures: 1}
	for _, c := range []struct {
		barrier barrier
		name    string
		text    string
		remedy  string
	}{
		{barrier{hold: holdfast.Hold{Queue: "mail", Actor: "ann", Since: noon, Until: at(60), Reason: "it moves"}}, "queue paused",
			"queue mail is paused by ann since 2026-05-04 12:00:00 until 2026-05-04 12:01:00: it moves", "lift it: holdfast resume --queue mail"},
		{barrier{hold: holdfast.Hold{Owner: "ac*", AtMost: 2, Source: holdfast.SourceLimit, Actor: "policy", Since: noon}, inHand: 2}, "limit",
			"at most 2 of owner ac* may be in workers' hands, and as many are, by policy since", "wait for one of them to end, or raise the limit in the policy"},
		{barrier{hold: holdfast.Hold{Kind: "send", Rate: &holdfast.Rate{PerSecond: 0.5, Burst: 1}, Actor: "ann", Since: noon}}, "rate",
			"kind send is let through at 30 a minute, and the bucket is empty (the next in about 2s)", "holdfast resume --kind send"},
		{barrier{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBudget, Retries: true, Rate: &holdfast.Rate{PerSecond: 0.05, Burst: 100, Level: 0.5}, Actor: "holdfast"}}, "budget",
			"retries of dependency gateway have used up their budget (the next in about 10s)", "holdfast resume --dependency gateway --source budget; or start this job afresh: holdfast retry " + job.ID.String()},
		{barrier{hold: holdfast.Hold{Queue: "mail", Source: holdfast.SourceWindow, Retries: true, Until: at(9), Actor: "policy"}}, "window",
			"retries of queue mail must wait for the end of a window of the policy, by policy", "holdfast policy apply FILE"},
		{barrier{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceHandler, Until: at(9), Actor: "holdfast"}}, "handler",
			"a handler was told to leave dependency gateway alone", "holdfast resume --dependency gateway --source handler"},
		{barrier{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, Expected: at(30), Actor: "holdfast", Since: noon, Reason: "14 of the last 20 calls failed"}}, "breaker",
			"the breaker of gateway is open, next probe 2026-05-04 12:00:30, by holdfast since 2026-05-04 12:00:00: 14 of the last 20 calls failed", "holdfast breakers close gateway"},
		{barrier{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, AtMost: 2, Actor: "holdfast"}, inHand: 2}, "breaker",
			"the breaker of gateway is half-open: 2 of 2 probes are under way", "holdfast breakers show gateway"},
		{barrier{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, Rate: &holdfast.Rate{PerSecond: 2, Burst: 1}, Actor: "holdfast"}}, "breaker",
			"the breaker of gateway is recovering and lets 2 a second through (the next in about 500ms)", "wait"},
		{barrier{hold: holdfast.Hold{Dependency: "gateway", Source: holdfast.SourceBreaker, Actor: "ann"}, circuit: &breaker.Circuit{State: breaker.ForcedOpen}}, "breaker",
			"the breaker of gateway is forced-open", "holdfast breakers auto gateway"},
		{barrier{hold: holdfast.Hold{Tag: "o'neill & sons", Actor: "ann"}}, "tag paused", "tag o'neill & sons is paused", `holdfast resume --tag 'o'\''neill & sons'`},
	} {
		if !c.barrier.stops() {
			t.Errorf("%+v stops nothing", c.barrier.hold)
		}
		r := c.barrier.reason(job)
		if r.Name != c.name || !strings.Contains(r.Text, c.text) || !strings.Contains(r.Remedy, c.remedy) || r.Until != c.barrier.hold.Until {
			t.Errorf("wanted %q %q, remedy %q; got\n%+v", c.name, c.text, c.remedy, r)
		}
	}
}

func TestAHoldWithRoomIsNoReason(t *testing.T) {
	for _, b := range []barrier{
		{hold: holdfast.Hold{Queue: "q", AtMost: 2}, inHand: 1},
		{hold: holdfast.Hold{Queue: "q", Rate: &holdfast.Rate{PerSecond: 1, Burst: 2, Level: 1}}},
	} {
		if b.stops() {
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
