package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// runParts runs parts and returns what is printed and how many failed.
func runParts(t *testing.T, at int, args ...string) (string, int) {
	t.Helper()
	parts, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &runner{out: &out, began: time.Now()}
	r.run(t.Context(), parts, at)
	failed := r.table(parts)
	return out.String(), failed
}

func TestAFailedPartIsShownInFullAndTheOthersRun(t *testing.T) {
	out, failed := runParts(t, 1, "first: echo quiet words", "second: echo loud words; exit 3", "third: true")
	if failed != 1 || strings.Contains(out, "quiet words") || !strings.Contains(out, "FAILED  second") || !strings.Contains(out, "\nloud words\n") || !strings.Contains(out, "ok      third") {
		t.Fatalf("%d failed:\n%s", failed, out)
	}
}

// Each of two parts waits for the other.
func TestPartsRunAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	meet := func(mine, theirs string) string {
		return mine + ": cd " + dir + " && touch " + mine + " && until [ -e " + theirs + " ]; do :; done"
	}
	if out, failed := runParts(t, 2, meet("one", "two"), meet("two", "one")); failed != 0 {
		t.Fatal(out)
	}
}

func TestTheTableListsThePackagesThatTookLong(t *testing.T) {
	out, _ := runParts(t, 1, `tests: printf 'ok  \ta/short\t0.4s\nok  \ta/long\t61.0s\nok  \ta/longer\t12 tests, each in a process of its own\t75.5s\nok  \ta/known\t(cached)\n'`)
	_, table, _ := strings.Cut(out, "\npart ")
	longer, long := strings.Index(table, "a/longer"), strings.Index(table, "a/long ")
	if longer < 0 || long < longer || strings.Contains(table, "a/short") || strings.Contains(table, "a/known") {
		t.Fatal(out)
	}
}

func TestAnInterruptedPartHasFailed(t *testing.T) {
	parts, err := parse([]string{"one: true"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &runner{out: &bytes.Buffer{}, began: time.Now()}
	r.run(ctx, parts, 1)
	if r.table(parts) != 1 {
		t.Fatal("a part that did not run counts as passed")
	}
}

func TestAnArgumentThatIsNoPartIsRefused(t *testing.T) {
	for _, bad := range [][]string{nil, {"lint"}, {": true"}, {"lint: "}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
