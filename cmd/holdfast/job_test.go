package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestAJobIsShownWithTheNumberOfItsAttemptAndAReadableStack(t *testing.T) {
	var out bytes.Buffer
	printJob(&out, holdfast.Job{ID: holdfast.NewID(), Kind: "mail", State: holdfast.Processing, Token: 4, Generation: 1, Failures: 1, Crashes: 1,
		LastFailure: &holdfast.Failure{Code: "SYSTEM_PANIC", Message: "It broke.", Detail: "nil map\n\ngoroutine 7 [running]:\nmain.send()\n\t/app/send.go:12\x1b[31m\n"}})
	for _, want := range []string{"attempt 3 of generation 1", "nil map\n", "goroutine 7 [running]:\n", "main.send()\n", "    /app/send.go:12\ufffd[31m\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "\t") {
		t.Errorf("control characters are printed:\n%q", out.String())
	}
}

func TestErrorGroupsShowWhatTheErrorsSaid(t *testing.T) {
	group := store.ErrorGroup{Fingerprint: "f1", Status: store.StatusOpen, Code: "UNKNOWN", Message: "Something unexpected went wrong.", Detail: "dial tcp: refused\n\ngoroutine 1"}
	failed := func(detail string) holdfast.Job {
		return holdfast.Job{ID: holdfast.NewID(), State: holdfast.Failed, LastFailure: &holdfast.Failure{Code: "UNKNOWN", Detail: detail}}
	}
	var list, one bytes.Buffer
	printErrorGroups(&list, []store.ErrorGroup{group}, "")
	if !strings.Contains(list.String(), "ERROR") || !strings.Contains(list.String(), "dial tcp: refused") || strings.Contains(list.String(), "goroutine") {
		t.Errorf("the list:\n%s", list.String())
	}
	printErrorGroup(&one, ops.ErrorGroupDetail{Group: group, Jobs: []holdfast.Job{failed("dial tcp: refused"), failed("dial tcp: no route"), failed("dial tcp: refused")}})
	if text := one.String(); strings.Count(text, "sample ") != 2 || !strings.Contains(text, "dial tcp: no route") {
		t.Errorf("the group:\n%s", text)
	}
}
