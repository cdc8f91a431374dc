package failure

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

func TestAFailureRecordIsComplete(t *testing.T) {
	err := With(On(&HTTPError{Status: 502, Err: errors.New("GET https://ada:hunter2@gw.example.org/x: bad gateway")}, "gateway"), "proxy", "eu-1")
	got := Decide(Rules{}, lease(0, 0), Outcome{Err: err}).Failure
	if len(got.Fingerprint) != 32 {
		t.Errorf("fingerprint %q", got.Fingerprint)
	}
	got.Fingerprint = ""
	want := &holdfast.Failure{
		Code: "HTTP_5XX", Category: "dependency", Message: "A service answered with a server error.",
		Detail:     "HTTP status 502: GET https://***@gw.example.org/x: bad gateway",
		Context:    map[string]string{"http_status": "502", "proxy": "eu-1"},
		Dependency: "gateway",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestAStackIsScrubbedAndOnlyInTheDetail(t *testing.T) {
	stack := "goroutine 7 [running]:\nmain.work()\n\t/home/ada/secret-project/main.go:42 +0x1d\npassword=hunter2"
	got := Decide(Rules{}, lease(0, 0), Outcome{Event: Panicked, Err: errors.New("index out of range"), Stack: stack}).Failure
	want := "index out of range\n\ngoroutine 7 [running]:\nmain.work()\n\t…/main.go:42 +0x1d\npassword=***"
	if got.Detail != want {
		t.Errorf("got  %q\nwant %q", got.Detail, want)
	}
	if got.Message != builtinByName["SYSTEM_PANIC"].Message {
		t.Errorf("message %q", got.Message)
	}
}

func TestARecordIsCapped(t *testing.T) {
	err := errors.New(strings.Repeat("long ", 1<<20))
	for i := range 100 {
		err = With(err, fmt.Sprintf("key %03d %s", i, strings.Repeat("k", 100)), strings.Repeat("v", 1000))
	}
	got := Decide(Rules{}, lease(0, 0), Outcome{Event: Panicked, Err: On(err, strings.Repeat("d", 1000)), Stack: strings.Repeat("s\n", 1<<20)}).Failure
	if len(got.Detail) > maxDetail || len(got.Context) != maxContext || len(got.Dependency) > check.MaxName {
		t.Errorf("detail %d, context %d, dependency %d", len(got.Detail), len(got.Context), len(got.Dependency))
	}
	for key, value := range got.Context {
		if len(key) > maxContextKey || len(value) > maxContextValue {
			t.Errorf("%d bytes of key, %d of value", len(key), len(value))
		}
	}
}

func TestContextIsScrubbedByValueAndByName(t *testing.T) {
	err := With(With(With(errPlain, "url", "https://a:b@c/d"), "api_key", "short"), "note\n", "two\nlines\x00")
	got := Decide(Rules{}, lease(0, 0), Outcome{Err: err}).Failure.Context
	want := map[string]string{"url": "https://***@c/d", "api_key": "***", "note": `two lines\x00`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheKindsDependencyIsNamedOnlyWhenTheCodeBlamesIt(t *testing.T) {
	rules := Rules{Dependency: "smtp"}
	cases := []struct {
		outcome Outcome
		want    string
	}{
		{Outcome{Err: &HTTPError{Status: 503}}, "smtp"},
		{Outcome{Event: TimedOut}, "smtp"},
		{Outcome{Err: On(&HTTPError{Status: 503}, "gateway")}, "gateway"},
		{Outcome{Err: WithCode(errPlain, "INVALID_INPUT")}, ""},
		{Outcome{Event: Panicked}, ""},
		{Outcome{Event: Lost}, ""},
	}
	for _, c := range cases {
		if got := Decide(rules, lease(0, 0), c.outcome).Failure.Dependency; got != c.want {
			t.Errorf("%v: %q, want %q", c.outcome, got, c.want)
		}
	}
}

func TestALostWorkerIsNamedInTheRecord(t *testing.T) {
	job := lease(0, 0)
	job.Lost = "worker-7"
	if got := Decide(Rules{}, job, Outcome{Event: Lost}).Failure; got.Context["worker"] != "worker-7" {
		t.Errorf("%+v", got)
	}
}

func TestRulesAreNotChangedByWhatTheyDecide(t *testing.T) {
	shared := map[string]string{"from": "rule"}
	rules := Rules{Classify: func(error) (Class, bool) { return Class{Code: "IO_ERROR", Context: shared}, true }}
	got := Decide(rules, lease(0, 0), Outcome{Err: With(errPlain, "from", "handler")}).Failure
	if got.Context["from"] != "handler" || shared["from"] != "rule" {
		t.Errorf("record %v, rule %v", got.Context, shared)
	}
}

func TestBadRulesAreRefusedWhole(t *testing.T) {
	rules := Rules{Policy: Policy{
		MaxAttempts: -1, MaxCrashes: -2, GiveUpAfter: -time.Second, RetryAfterCap: 200 * 365 * 24 * time.Hour,
		Codes: map[string]Override{"NO_SUCH": {MaxAttempts: -3}},
	}}
	err := rules.Check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"Policy.MaxAttempts is -1", "Policy.MaxCrashes is -2", "Policy.GiveUpAfter", "Policy.RetryAfterCap", `"NO_SUCH"`, "Codes[NO_SUCH].MaxAttempts is -3"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not mention %s:\n%v", part, err)
		}
	}
	if err := (Rules{}).Check(); err != nil {
		t.Errorf("the zero value was refused: %v", err)
	}
}
