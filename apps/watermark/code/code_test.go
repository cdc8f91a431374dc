package code_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/child"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

func rules() failure.Rules {
	return failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: code.Policy()}
}

func decide(failures int, err error) failure.Verdict {
	lease := store.Lease{}
	lease.Failures = failures
	return failure.Decide(rules(), lease, failure.Outcome{Event: failure.Returned, Err: err})
}

func TestEachCodeIsCompleteAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range code.All() {
		if err := c.Check(); err != nil || seen[c.Name] {
			t.Errorf("%s: %v", c.Name, err)
		}
		seen[c.Name] = true
	}
	if err := rules().Check(); err != nil {
		t.Error(err)
	}
	if code.Of("POISON").Name != code.SystemWorkerLost || code.Of("NO_SUCH_CODE").Name != code.SystemError {
		t.Error("an unknown code")
	}
}

// 004 section 3.2 and milestone M1: a transient failure is retried three times, after 1, 5 and 15 minutes.
func TestATransientFailureIsRetriedAfter1And5And15MinutesAndThenFails(t *testing.T) {
	for failures, delay := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		if v := decide(failures, errors.New("exit status 137")); v.To != holdfast.Queued || v.Delay != delay {
			t.Errorf("after %d failures: %s after %v, want queued after %v", failures, v.To, v.Delay, delay)
		}
	}
	if v := decide(3, errors.New("exit status 137")); v.To != holdfast.Failed {
		t.Errorf("after the last retry: %s", v.To)
	}
}

// 004 section 4.5.
func TestErrorsAreClassifiedAsTheSpecificationSays(t *testing.T) {
	for text, want := range map[string]string{
		"ffmpeg: Invalid data found when processing input": code.InputDamaged, "[mov] moov atom not found": code.InputDamaged,
		"open input /assets/1: No such file or directory": code.InputMissing, "unknown job type: zip": code.UnknownJobType,
	} {
		if v := decide(0, errors.New(text)); v.To != holdfast.Failed || v.Failure.Code != want {
			t.Errorf("%q is %s with %s, want failed with %s", text, v.To, v.Failure.Code, want)
		}
	}
	killed := &child.Error{Reason: child.Killed, Program: "ffmpeg", ExitCode: -1, Signal: 9, Err: errors.New("signal: killed")}
	full := &child.Error{Reason: child.Failed, Program: "ffmpeg", ExitCode: 1, Stderr: "av_interleaved_write_frame(): No space left on device", Err: errors.New("exit status 1")}
	for want, err := range map[string]error{
		code.FFmpegKilled: killed, code.FFmpegTimeout: fmt.Errorf("marking: %w", context.DeadlineExceeded), code.DiskFull: full,
		code.FFmpegStalled: &child.Error{Reason: child.Stalled, Err: context.DeadlineExceeded}, code.FFmpegMissing: &child.Error{Reason: child.NotStarted, Err: fs.ErrNotExist},
		code.DiskError: &fs.PathError{Op: "write", Path: "x", Err: syscall.EIO}, code.SystemError: errors.New("no such file or directory: /venv/bin/python"),
	} {
		if v := decide(0, err); v.To != holdfast.Queued || v.Failure.Code != want {
			t.Errorf("%v is %s with %s, want queued with %s", err, v.To, v.Failure.Code, want)
		}
	}
	if v := decide(0, code.New(code.InputHDR, nil)); v.To != holdfast.Failed || v.Failure.Code != code.InputHDR {
		t.Error(v)
	}
}

// 004 section 9: a lost worker spends no retry.
func TestALostWorkerSpendsNoRetryUntilTheCap(t *testing.T) {
	for crashes := range code.MaxCrashes {
		lease := store.Lease{}
		lease.Crashes = crashes
		v := failure.Decide(rules(), lease, failure.Outcome{Event: failure.Lost})
		want := holdfast.Queued
		if crashes+1 == code.MaxCrashes {
			want = holdfast.Failed
		}
		if v.To != want || v.Charge == store.ChargeFailure {
			t.Errorf("after %d lost workers: %s, charge %v", crashes, v.To, v.Charge)
		}
	}
}

var update = flag.Bool("update", false, "write the table of docs/failures.md")

const document = "../docs/failures.md"

func TestTheDocumentHasTheTable(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "<!-- codes -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end of codes -->\n")
	if !found || !ended {
		t.Fatal("the document lacks the comments around the codes")
	}
	var rows strings.Builder
	rows.WriteString("| code | retried | message | what to do |\n|---|---|---|---|\n")
	for _, c := range code.All() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", c.Name, map[bool]string{true: "yes", false: "no"}[c.Retryable], c.Message, c.Remedy)
	}
	want := before + "<!-- codes -->\n" + rows.String() + "<!-- end of codes -->\n" + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/failures.md differs from the table: run go test ./watermark/code -run TheDocument -update")
	}
}
