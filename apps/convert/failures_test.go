package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// defaultSettings returns the settings of an empty environment.
func defaultSettings(t testing.TB) settings {
	t.Helper()
	set, err := readSettings(func(name string) string { return map[string]string{"DATA_DIR": t.TempDir()}[name] })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// rulesOf returns the rules by which the engine decides about conversions.
func rulesOf(t testing.TB, set settings) failure.Rules {
	t.Helper()
	taxonomy, err := failure.NewTaxonomy(set.codes()...)
	if err != nil {
		t.Fatal(err)
	}
	rules := failure.Rules{Taxonomy: taxonomy, Classify: classify, Policy: set.policy(), Dependency: dependencyGateway}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	return rules
}

// after returns the verdict on a conversion whose n-th attempt ended with an error.
func after(t testing.TB, set settings, n int, err error, roll float64) failure.Verdict {
	t.Helper()
	lease := store.Lease{Job: holdfast.Job{ID: holdfast.NewID(), Kind: "conversion", Failures: n - 1, Generation: 1}}
	return failure.Decide(rulesOf(t, set), lease, failure.Outcome{Event: failure.Returned, Err: err, Roll: roll})
}

func answered(n int) error { return gatewayError{&failure.HTTPError{Status: n}} }

var errTrouble = errors.New("some trouble")

// C8; 000 sections 1 and 6: ten codes, their messages to the letter, and the API's answers.
func TestTheTenCodesAndTheirLinesAreThoseOfDocument000(t *testing.T) {
	want := map[string]string{
		"NOT_PDF": "400 Only PDF files are supported.", "TOO_LARGE": "413 File exceeds 50 MB limit.",
		"GW_4XX": "422 Couldn’t convert this file with the selected mapping.", "GW_5XX": "502 Converter service is having an issue. We’ll retry shortly.",
		"GW_TIMEOUT": "504 Conversion is taking too long. We’ll retry.", "IO_ERROR": "500 Temporary storage issue. We’ll retry.",
		"NOT_READY": "409 Conversion not finished yet.", "EXPIRED": "404 File was removed by retention. Re-upload to regenerate.",
		"FORBIDDEN": "403 This file isn’t yours.", "UNKNOWN": "500 Something unexpected went wrong.",
	}
	set, got := defaultSettings(t), map[string]string{}
	for _, c := range set.codes() {
		got[c.Name] = fmt.Sprint(c.HTTPStatus, " ", c.Message)
		if c.Remedy == "" {
			t.Errorf("%s: it has no remedy", c.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	set.MaxUpload = 3 << 20
	expect(t, "another limit", set.code(codeTooLarge).Message, "File exceeds 3 MB limit.")
}

// 001 section 3.1: users see one of the ten codes, whatever code the engine or a gateway uses.
func TestEveryOtherCodeShowsAsOneOfTheTen(t *testing.T) {
	set := defaultSettings(t)
	ten := map[string]bool{}
	for _, c := range set.codes() {
		ten[c.Name] = true
	}
	expect(t, "codes", len(ten), 10)
	for _, c := range rulesOf(t, set).Taxonomy.Codes() {
		if shown := set.code(c.Name).Name; !ten[shown] {
			t.Errorf("%s shows as %s", c.Name, shown)
		}
	}
	for code, want := range map[string]string{
		"GW_UNAVAILABLE": codeGW5XX, "INVALID_MAPPING": codeGW4XX, "PARSE_ERROR": codeGW4XX, "VALIDATION_ERROR": codeGW4XX, "MEMORY_ERROR": codeUnknown,
		"NETWORK_ERROR": codeGW5XX, "DEPENDENCY_DOWN": codeGW5XX, "RATE_LIMITED": codeGW5XX, "HTTP_TIMEOUT": codeGWTimeout, "TIMEOUT": codeGWTimeout,
		"DISK_FULL": codeIO, "STORAGE_UNAVAILABLE": codeIO, "LOST_WORKER": codeUnknown, "POISON": codeUnknown, "SYSTEM_PANIC": codeUnknown,
		"JOB_EXPIRED": codeUnknown, "UNREADABLE_JOB": codeUnknown, "OUT_OF_MEMORY": codeUnknown, "": codeUnknown, "what?": codeUnknown,
	} {
		expect(t, code, set.code(code).Name, want)
	}
}

// C3; 000 section 2B; 001 section 5, unit: retryability by code.
func TestAnErrorBecomesACodeAndTheCodeSaysWhetherItIsTriedAgain(t *testing.T) {
	const again, final = true, false
	cases := []struct {
		name  string
		err   error
		code  string
		again bool
		call  failure.Call
	}{
		{"400", answered(400), codeGW4XX, final, failure.NoCall},
		{"406", answered(406), codeGW4XX, final, failure.NoCall},
		{"413", answered(413), codeGW4XX, final, failure.NoCall},
		{"415", answered(415), codeGW4XX, final, failure.NoCall},
		{"422", answered(422), codeGW4XX, final, failure.NoCall},
		{"404: not the gateway answers", answered(404), codeGW5XX, again, failure.BadCall},
		{"401: it does not know us", answered(401), codeGW5XX, again, failure.BadCall},
		{"408", answered(408), codeGW5XX, again, failure.BadCall},
		{"425", answered(425), codeGW5XX, again, failure.BadCall},
		{"429", answered(429), codeGW5XX, again, failure.BadCall},
		{"500", answered(500), codeGW5XX, again, failure.BadCall},
		{"502", answered(502), codeGW5XX, again, failure.BadCall},
		{"503", answered(503), codeGW5XX, again, failure.BadCall},
		{"504", answered(504), codeGW5XX, again, failure.BadCall},
		{"a redirect", answered(302), codeGW5XX, again, failure.BadCall},
		{"an answer without XML", answered(204), codeGW5XX, again, failure.BadCall},
		{"the network", gatewayError{fmt.Errorf("dial: %w", syscall.ECONNREFUSED)}, codeGW5XX, again, failure.BadCall},
		{"an answer that breaks off", gatewayError{io.ErrUnexpectedEOF}, codeGW5XX, again, failure.BadCall},
		{"a timeout", gatewayError{fmt.Errorf("asking: %w", context.DeadlineExceeded)}, codeGWTimeout, again, failure.BadCall},
		{"our disk", storageFailure(errTrouble), codeIO, again, failure.NoCall},
		{"our disk, slow", storageFailure(context.DeadlineExceeded), codeIO, again, failure.NoCall},
		{"our disk, full", storageFailure(fmt.Errorf("write: %w", syscall.ENOSPC)), codeIO, final, failure.NoCall},
		{"our disk, full in words", storageFailure(errors.New("the disk is full")), codeIO, final, failure.NoCall},
		{"the PDF is gone", errSourceGone, codeExpired, final, failure.NoCall},
		{"anything else", errTrouble, codeUnknown, again, failure.NoCall},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := after(t, defaultSettings(t), 1, c.err, 0)
			expect(t, "code", v.Failure.Code, c.code)
			expect(t, "again", v.To == holdfast.Queued, c.again)
			expect(t, "call", v.Call, c.call)
		})
	}
	for _, code := range []string{codeNotPDF, codeTooLarge, codeGW4XX} { // 000 section 3: terminal
		if c := (&settings{}).code(code); c.Retryable {
			t.Errorf("%s would be tried again", code)
		}
	}
}

// C6; 001 section 3.2 and section 5, unit: 5000 ms * 2^attempt + random(0..5000), attempt from 0, three attempts.
func TestTheDelayDoublesAndChanceAddsUpToFiveSeconds(t *testing.T) {
	set := defaultSettings(t)
	for n, base := range []time.Duration{5 * time.Second, 10 * time.Second} {
		for _, roll := range []float64{0, 0.25, 0.5, 0.999999} {
			v := after(t, set, n+1, answered(502), roll)
			want := base + time.Duration(roll*float64(5*time.Second))
			if v.To != holdfast.Queued || v.Delay < want-time.Millisecond || v.Delay > want+time.Millisecond {
				t.Errorf("attempt %d, roll %v: %s in %v, want %v", n, roll, v.To, v.Delay, want)
			}
		}
	}
	expect(t, "after the third", after(t, set, 3, answered(502), 0).To, holdfast.Failed)
	set.RetryMaxAttempts, set.RetryBaseDelay, set.RetryJitterMax = 5, time.Second, 0
	expect(t, "fourth of five", after(t, set, 4, answered(502), 0.9).Delay, 8*time.Second)
	expect(t, "fifth of five", after(t, set, 5, answered(502), 0.9).To, holdfast.Failed)
}

// 000 section 3: 5, 15, 45 s, 20 % more or less, by configuration.
func TestTheTableOf51545SecondsCanBeConfigured(t *testing.T) {
	set := defaultSettings(t)
	set.RetryTable, set.RetryMaxAttempts = true, 5
	for n, want := range []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 45 * time.Second} {
		low, high := after(t, set, n+1, answered(502), 0).Delay, after(t, set, n+1, answered(502), 0.999999).Delay
		if low != want*8/10 || high < want*119/100 || high > want*12/10 {
			t.Errorf("attempt %d: from %v to %v, want %v and 20 %% to either side", n+1, low, high, want)
		}
	}
}

// 000 section 2B: a failed write is tried again once.
func TestAStorageErrorIsRetriedOnce(t *testing.T) {
	set := defaultSettings(t)
	expect(t, "first", after(t, set, 1, storageFailure(errTrouble), 0).To, holdfast.Queued)
	expect(t, "second", after(t, set, 2, storageFailure(errTrouble), 0).To, holdfast.Failed)
	set.RetryMaxAttempts = 1
	expect(t, "first of one", after(t, set, 1, storageFailure(errTrouble), 0).To, holdfast.Failed)
}

func TestRetryAfterIsHonouredAndCapped(t *testing.T) {
	set := defaultSettings(t)
	for header, want := range map[string]time.Duration{"30": 30 * time.Second, "1": 5 * time.Second, "86400": time.Hour, "soon": 5 * time.Second} {
		v := after(t, set, 1, gatewayError{failure.NewHTTPError(503, http.Header{"Retry-After": {header}}, nil)}, 0)
		expect(t, "Retry-After "+header, v.Delay, want)
	}
}

// 001 section 3.3 and section 5, unit: breaker open and close thresholds.
func TestTheBreakerOpensAtItsThresholdAndClosesByProbes(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	cfg := (&settings{CircuitWindow: 20, CircuitFailThreshold: 0.5, CircuitCooldown: 30 * time.Second}).breaker()
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	calls := func(s breaker.Snapshot, good, bad int) breaker.Snapshot {
		s, _ = cfg.Observe(s, breaker.Observation{Calls: good + bad, Failures: bad, Code: codeGW5XX}, now)
		return s
	}
	nine := calls(breaker.Snapshot{}, 11, 9)
	expect(t, "9 of 20", nine.State, breaker.Closed)
	open := calls(nine, 0, 1)
	expect(t, "10 of 20", open.State, breaker.Open)
	expect(t, "nothing passes", cfg.Flow(open, now), breaker.Flow{})
	once, _ := cfg.Probed(open, true, now.Add(time.Minute))
	expect(t, "one good probe", once.State, breaker.Open)
	twice, _ := cfg.Probed(once, true, now.Add(time.Minute))
	expect(t, "two good probes", twice.State, breaker.Recovering)
	closed, _ := cfg.Tick(twice, now.Add(2*time.Minute))
	expect(t, "in the end", closed.State, breaker.Closed)
	for _, set := range []settings{{CircuitWindow: 1, CircuitFailThreshold: 1, CircuitCooldown: time.Millisecond}, {CircuitWindow: 1000, CircuitFailThreshold: 0.01, CircuitCooldown: 24 * time.Hour}} {
		if err := set.breaker().Check(); err != nil {
			t.Error(err)
		}
	}
}

// E9: an error shows while a job has failed or awaits its retry, and at no other time; a refused file has failed from the first moment.
func TestAJobSaysWhyItFailedOnlyWhileItHas(t *testing.T) {
	a := &app{set: defaultSettings(t)}
	trouble := &holdfast.Failure{Code: codeGW4XX, Context: map[string]string{gatewayMessage: "Unsupported mapping."}}
	for state, want := range map[holdfast.State]string{
		holdfast.Queued: codeGW4XX, holdfast.Failed: codeGW4XX, holdfast.Processing: "", holdfast.Complete: "", holdfast.Cancelled: "",
	} {
		code, line := a.publicFailure(holdfast.Job{Kind: "conversion", State: state, LastFailure: trouble})
		expect(t, string(state), code, want)
		if want != "" {
			expect(t, "line", line, "Couldn’t convert this file with the selected mapping. Unsupported mapping.")
		}
	}
	code, line := a.publicFailure(holdfast.Job{Kind: "conversion", State: holdfast.Queued})
	expect(t, "a job that never failed", code+line, "")
	code, line = a.publicFailure(holdfast.Job{Kind: "refusal", State: holdfast.Queued, Args: json.RawMessage(`{"code":"NOT_PDF"}`)})
	expect(t, "a refused file", code+" "+line, "NOT_PDF Only PDF files are supported.")
	code, _ = a.publicFailure(holdfast.Job{Kind: "conversion", State: holdfast.Failed, LastFailure: &holdfast.Failure{Code: "POISON", Message: "/home/x"}})
	expect(t, "the engine's own", code, codeUnknown)
	expect(t, "without the promise", withoutRetryPromise(a.set.code(codeGW5XX).Message), "Converter service is having an issue.")
	expect(t, "without the promise", withoutRetryPromise(a.set.code(codeGW4XX).Message), a.set.code(codeGW4XX).Message)
}

func TestAnAPIErrorHasCodeLineAndStatusAndNeverItsCause(t *testing.T) {
	id := holdfast.NewID()
	secret := errors.New("open /srv/secret/x.pdf: password=hunter2")
	cases := []struct {
		err    error
		status int
		body   map[string]any
		after  string
	}{
		{apiError{code: codeNotPDF, id: id}, 400, map[string]any{"error_code": "NOT_PDF", "error_message": "Only PDF files are supported.", "id": id.String()}, ""},
		{apiError{code: codeIO, cause: secret}, 500, map[string]any{"error_code": "IO_ERROR", "error_message": "Temporary storage issue. We’ll retry."}, ""},
		{fmt.Errorf("wrapped: %w", apiError{code: codeForbidden}), 403, map[string]any{"error_code": "FORBIDDEN", "error_message": "This file isn’t yours."}, ""},
		{apiError{code: "POISON", status: 503, line: "Busy.", after: 1500 * time.Millisecond}, 503, map[string]any{"error_code": "UNKNOWN", "error_message": "Busy."}, "2"},
		{secret, 500, map[string]any{"error_code": "UNKNOWN", "error_message": "Something unexpected went wrong."}, ""},
		{nil, 500, map[string]any{"error_code": "UNKNOWN", "error_message": "Something unexpected went wrong."}, ""},
		{&holdfast.Error{Err: holdfast.ErrNotFound, Message: "x"}, 404, map[string]any{"error_code": "UNKNOWN", "error_message": "There is no such file. Check the link, or go back to your list of files."}, ""},
		{&holdfast.Error{Err: holdfast.ErrPurged, Message: "x"}, 404, map[string]any{"error_code": "EXPIRED", "error_message": "File was removed by retention. Re-upload to regenerate."}, ""},
		{blob.ErrNotFound, 404, map[string]any{"error_code": "EXPIRED", "error_message": "File was removed by retention. Re-upload to regenerate."}, ""},
		{&holdfast.Error{Err: holdfast.ErrConflict, Message: "x"}, 409, map[string]any{"error_code": "NOT_READY", "error_message": "Conversion not finished yet."}, ""},
		{&holdfast.Error{Err: holdfast.ErrThrottled, RetryAfter: 3 * time.Second}, 429, map[string]any{"error_code": "UNKNOWN", "error_message": "Too many requests. Please try again in a few seconds."}, "3"},
		{&holdfast.Error{Err: holdfast.ErrUnavailable, Cause: secret}, 503, map[string]any{"error_code": "IO_ERROR", "error_message": "Temporary storage issue. Please try again in a few seconds."}, "5"},
	}
	a := &app{set: defaultSettings(t)}
	for _, c := range cases {
		w := httptest.NewRecorder()
		a.writeError(w, apiErrorOf(c.err))
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		expect(t, fmt.Sprint(c.err), w.Code, c.status)
		expect(t, "Retry-After", w.Header().Get("Retry-After"), c.after)
		if diff := cmp.Diff(c.body, body); diff != "" {
			t.Errorf("%v: want -, got +:\n%s", c.err, diff)
		}
	}
}

// 000 section 6: the gateway's message is appended if it is safe.
func TestAGatewaysMessageIsShownOnlyIfItIsSafe(t *testing.T) {
	for said, want := range map[string]string{
		"Unsupported mapping.": "Unsupported mapping.", "Unsupported mapping": "Unsupported mapping.", "  two\n lines ": "two lines.", "": "",
		"cannot open /var/lib/gateway/tmp/x.pdf": "", `C:\gateway\x.pdf is locked`: "", "password=hunter2 was refused": "", "<b>bold</b>": "",
		"at main.convert() {goroutine 1}": "", strings.Repeat("long ", 60): "", "bell\x07": "", "right\u202eleft": "",
	} {
		expect(t, said, displayable(said), want)
	}
	response := func(body string) *http.Response {
		return &http.Response{StatusCode: 406, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	}
	v := after(t, defaultSettings(t), 1, gatewayFailure(response(`{"code":"INVALID_MAPPING","message":"There is no mapping \"x\"."}`)), 0)
	want := map[string]string{"http_status": "406", "gateway_http_status": "406", "gateway_code": "INVALID_MAPPING", gatewayMessage: `There is no mapping "x".`}
	if diff := cmp.Diff(want, v.Failure.Context); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	v = after(t, defaultSettings(t), 1, gatewayFailure(response("<html>nginx</html>")), 0)
	expect(t, "markup", v.Failure.Context[gatewayMessage], "")
}

// Issue 7, acceptance: everything about failures is in one file under 250 lines.
func TestFailuresAreHandledInOneShortFile(t *testing.T) {
	text, err := os.ReadFile("failures.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 250 {
		t.Errorf("failures.go has %d lines: under 250 are allowed", n)
	}
	others, _ := filepath.Glob("*.go")
	for _, name := range others {
		if name == "failures.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range (&settings{}).codes() {
			if strings.Contains(string(text), `"`+c.Name+`"`) {
				t.Errorf("%s contains the code %s: it belongs in failures.go", name, c.Name)
			}
		}
	}
}
