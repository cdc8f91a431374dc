package failure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

type declined struct{ reason string }

func (d *declined) Error() string { return "declined: " + d.reason }

type slow struct{ error }

func (slow) Timeout() bool { return true }

type sdkError struct{ error }

func (sdkError) HTTPStatusCode() int { return 503 }

func TestTheDefaultRuleClassifiesCommonErrors(t *testing.T) {
	_, killed := exec.Command("sh", "-c", "kill -9 $$").Output()
	_, refused := exec.Command("sh", "-c", "exit 3").Output()
	_, absent := os.Open("/nonexistent/file")
	cases := []struct {
		err        error
		code, rule string
	}{
		{&HTTPError{Status: 502}, "HTTP_5XX", "HTTP status 502"},
		{fmt.Errorf("calling: %w", &HTTPError{Status: 404}), "NOT_FOUND", "HTTP status 404"},
		{sdkError{errors.New("slow down")}, "DEPENDENCY_DOWN", "HTTP status 503"},
		{&ExitError{Code: 1}, "EXIT_CODE", "exit code 1"},
		{&ExitError{Code: 137}, "PROCESS_KILLED", "exit code 137"},
		{&ExitError{Code: 124}, "TIMEOUT", "exit code 124"},
		{killed, "PROCESS_KILLED", "exit code -1"},
		{refused, "EXIT_CODE", "exit code 3"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "TIMEOUT", "a timeout in the error"},
		{slow{errors.New("read tcp")}, "TIMEOUT", "a timeout in the error"},
		{absent, "STORAGE_NOT_FOUND", `the error "file does not exist"`},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, "STORAGE_DENIED", `the error "permission denied"`},
		{&holdfast.Error{Err: holdfast.ErrUnavailable, Message: "locked"}, "STORAGE_UNAVAILABLE", `the error "unavailable"`},
		{errors.New("write x: No space left on device"), "DISK_FULL", `the text "no space left"`},
		{errors.New("ffmpeg: Cannot allocate memory"), "OUT_OF_MEMORY", `the text "cannot allocate memory"`},
		{errors.New("dial tcp 10.0.0.1:5432: connect: connection refused"), "NETWORK_ERROR", `the text "connection refused"`},
		{errors.New("lookup db: no such host"), "NETWORK_ERROR", `the text "no such host"`},
		{errors.New("429 Too Many Requests"), "RATE_LIMITED", `the text "too many requests"`},
		{errors.New("handshake timed out"), "TIMEOUT", `the text "timed out"`},
		{errors.New("the moon is full"), "UNKNOWN", "the default, because no rule matches"},
	}
	for _, c := range cases {
		got := Rules{}.classify(c.err)
		if got.Code != c.code || got.Rule != c.rule {
			t.Errorf("%v: %s by %s, want %s by %s", c.err, got.Code, got.Rule, c.code, c.rule)
		}
	}
}

func TestOnlyFourOfThe4xxMayBeRetriedAndAllOfThe5xx(t *testing.T) {
	patient := map[int]bool{408: true, 425: true, 429: true, 499: true}
	for _, rule := range []Rule{ByHTTPStatus(), ByHTTPStatusTable(map[int]string{4: "GW_4XX", 5: "GW_5XX"})} {
		for status := 400; status <= 599; status++ {
			class, ok := rule(&HTTPError{Status: status})
			code, known := (*Taxonomy)(nil).Code(class.Code)
			if !ok || !known || code.Retryable != (status >= 500 || patient[status]) {
				t.Errorf("status %d: %s, retryable %v", status, class.Code, code.Retryable)
			}
		}
	}
	for _, status := range []int{0, -1, 200, 302, 600, 5000} {
		if class, ok := ByHTTPStatus()(&HTTPError{Status: status}); ok {
			t.Errorf("status %d was taken for %s", status, class.Code)
		}
	}
}

func TestAnApplicationsTablesComeBeforeTheBuiltInOnes(t *testing.T) {
	http := ByHTTPStatusTable(map[int]string{4: "GW_4XX", 5: "GW_5XX", 504: "GW_TIMEOUT", 429: "GW_5XX", 404: "NOT_READY"})
	for status, want := range map[int]string{400: "GW_4XX", 415: "GW_4XX", 404: "NOT_READY", 429: "GW_5XX", 408: "HTTP_TIMEOUT", 503: "GW_5XX", 504: "GW_TIMEOUT"} {
		if class, _ := http(&HTTPError{Status: status}); class.Code != want {
			t.Errorf("status %d: %s, want %s", status, class.Code, want)
		}
	}
	rules := Rules{Classify: ByExitCode(map[int]string{1: "INVALID_INPUT"})}
	if got := rules.classify(&ExitError{Code: 1}); got.Code != "INVALID_INPUT" {
		t.Errorf("exit code 1: %s", got.Code)
	}
	if got := rules.classify(&ExitError{Code: 2}); got.Code != "EXIT_CODE" {
		t.Errorf("exit code 2: %s", got.Code)
	}
}

func TestTheFirstMatchingRuleApplies(t *testing.T) {
	sentinel := errors.New("moov atom not found")
	rule := Chain(
		nil,
		ByType[*declined]("AUTH_DENIED"),
		ByError(sentinel, "INVALID_INPUT"),
		ByText("(?i)invalid data found", "TOO_LARGE"),
		Always("HANDLER_ERROR"),
		ByText(".", "IO_ERROR"),
	)
	cases := []struct {
		err        error
		code, rule string
	}{
		{fmt.Errorf("paying: %w", &declined{"no money"}), "AUTH_DENIED", "the error type *failure.declined"},
		{fmt.Errorf("x: %w", sentinel), "INVALID_INPUT", `the error "moov atom not found"`},
		{errors.New("Invalid data found when processing input"), "TOO_LARGE", `the text "Invalid data found"`},
		{errors.New("else"), "HANDLER_ERROR", "the default"},
	}
	for _, c := range cases {
		if got, ok := rule(c.err); !ok || got.Code != c.code || got.Rule != c.rule {
			t.Errorf("%v: %s by %s", c.err, got.Code, got.Rule)
		}
	}
	if _, ok := Chain()(sentinel); ok {
		t.Error("an empty chain knew something")
	}
}

func TestAPanicInARuleOrAnErrorOnlyLosesItsClassification(t *testing.T) {
	broken := Rules{Classify: func(error) (Class, bool) { panic("rule") }}
	if got := broken.classify(errors.New("x")); got.Code != "UNKNOWN" || !strings.Contains(got.Rule, "panicked") {
		t.Errorf("%+v", got)
	}
	var null *declined
	v := Decide(Rules{}, store.Lease{}, Outcome{Err: fmt.Errorf("x: %w", WithCode(null, "IO_ERROR"))})
	if v.Failure == nil || v.Failure.Code != "IO_ERROR" {
		t.Errorf("%+v", v)
	}
	v = Decide(Rules{}, store.Lease{}, Outcome{Err: null})
	if v.Failure == nil || v.Failure.Code != "UNKNOWN" || !strings.Contains(v.Failure.Detail, "*failure.declined") {
		t.Errorf("%+v", v.Failure)
	}
}

func TestRetryAfterIsReadAsSecondsOrDate(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"120", 2 * time.Minute, true},
		{" 5 ", 5 * time.Second, true},
		{"0", 0, true},
		{"99999999999999999999999999", check.MaxDelay, true},
		{"9223372036854775807", check.MaxDelay, true},
		{"Sun, 15 Nov 2026 12:01:30 GMT", 90 * time.Second, true},
		{"Sunday, 15-Nov-26 12:01:30 GMT", 90 * time.Second, true},
		{"Sun Nov 15 12:01:30 2026", 90 * time.Second, true},
		{"Sun, 15 Nov 2026 11:00:00 GMT", 0, true},
		{"", 0, false}, {"-5", 0, false}, {"1.5", 0, false}, {"soon", 0, false}, {strings.Repeat("9", 1000), 0, false},
	}
	for _, c := range cases {
		if got, ok := parseRetryAfter(c.value, now); got != c.want || ok != c.ok {
			t.Errorf("%.40q: %v %v, want %v %v", c.value, got, ok, c.want, c.ok)
		}
	}
	if got := askedToWait(fmt.Errorf("x: %w", NewHTTPError(503, http.Header{"Retry-After": {"Sun, 15 Nov 2026 12:01:30 GMT"}, "Date": {now.Format(http.TimeFormat)}}, nil))); got != 90*time.Second {
		t.Errorf("%v", got)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "Sun, 15 Nov 2026 12:01:30 GMT", "-1", "1e9", "", "\x00", "99999999999999999999"} {
		f.Add(seed, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		at := time.Unix(now%math.MaxInt32, 0)
		if d, ok := parseRetryAfter(value, at); d < 0 || d > check.MaxDelay || !ok && d != 0 {
			t.Errorf("%q: %v %v", value, d, ok)
		}
	})
}
