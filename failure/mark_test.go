package failure

import (
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast/internal/check"
)

func TestMarksComposeAndSurviveWrapping(t *testing.T) {
	err := With(On(WithCode(Benign(NeverRetry(RetryAfter(io.EOF, time.Minute))), "GW_5XX"), "gateway"), "proxy", "eu-1")
	for name, wrapped := range map[string]error{
		"plain":  err,
		"%w":     fmt.Errorf("while sending: %w", fmt.Errorf("twice: %w", err)),
		"joined": errors.Join(errors.New("other"), err),
		"two %w": fmt.Errorf("%w and %w", errors.New("other"), err),
	} {
		m := readMarks(wrapped)
		if !m.never || !m.benign || m.code != "GW_5XX" || m.dependency != "gateway" || m.after == nil || *m.after != time.Minute {
			t.Errorf("%s: %+v", name, m)
		}
		if diff := cmp.Diff(map[string]string{"proxy": "eu-1"}, m.context); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !errors.Is(wrapped, io.EOF) {
			t.Errorf("%s: the cause is gone", name)
		}
	}
	if err.Error() != "EOF" {
		t.Errorf("marks show in the text: %q", err)
	}
}

func TestTheOutermostMarkOfASortWins(t *testing.T) {
	inner := With(With(On(WithCode(RetryAfter(io.EOF, time.Hour), "INNER"), "inner"), "proxy", "inner"), "only", "inner")
	outer := With(On(WithCode(RetryAfter(fmt.Errorf("%w", inner), time.Second), "OUTER"), "outer"), "proxy", "outer")
	m := readMarks(outer)
	if m.code != "OUTER" || m.dependency != "outer" || *m.after != time.Second {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff(map[string]string{"proxy": "outer", "only": "inner"}, m.context); diff != "" {
		t.Error(diff)
	}
}

func TestAMarkOnNoErrorIsNoError(t *testing.T) {
	for i, err := range []error{NeverRetry(nil), RetryAfter(nil, 1), Benign(nil), WithCode(nil, "X"), On(nil, "x"), With(nil, "a", "b")} {
		if err != nil {
			t.Errorf("mark %d made an error of nil", i)
		}
	}
	if Snooze(time.Second) == nil {
		t.Error("a snooze is nil")
	}
}

func TestAbsurdDurationsInMarksAreClamped(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{-time.Hour: 0, math.MinInt64: 0, math.MaxInt64: check.MaxDelay, time.Second: time.Second} {
		if got := *readMarks(RetryAfter(io.EOF, given)).after; got != want {
			t.Errorf("RetryAfter %v: %v", given, got)
		}
		if got := *readMarks(Snooze(given)).snooze; got != want {
			t.Errorf("Snooze %v: %v", given, got)
		}
	}
}

type selfish struct{}

func (s selfish) Error() string { return "me" }
func (s selfish) Unwrap() error { return s }

func TestAnErrorThatWrapsItselfIsReadAllTheSame(t *testing.T) {
	if m := readMarks(WithCode(selfish{}, "IO_ERROR")); m.code != "IO_ERROR" {
		t.Errorf("%+v", m)
	}
	rules := Rules{Classify: ByError(io.EOF, "IO_ERROR")} // errors.Is would search for ever
	if class := rules.classify(selfish{}); class.Code != "UNKNOWN" {
		t.Errorf("%+v", class)
	}
}
