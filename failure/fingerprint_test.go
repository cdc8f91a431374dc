package failure

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast/store"
)

// printOf is the fingerprint a job's record gets for an error.
func printOf(err error) string {
	return Decide(Rules{}, store.Lease{}, Outcome{Err: err}).Failure.Fingerprint
}

func TestOneCauseHasOneFingerprint(t *testing.T) {
	pairs := [][2]string{
		{"user 42 not found", "user 43 not found"},
		{"job 01890a5d-ac96-774b-bcce-b302099a8057 is gone", "job 0199AAAA-0000-7000-8000-000000000000 is gone"},
		{"object 5f2b8c9d0e1a is locked", "object deadbeef0123 is locked"},
		{"order ord_8fK2xQ9aB1 refused", "order ord_Zz81LmN0pQ refused"},
		{"commit deadbeefdeadbeef missing", "commit cafebabecafebabe missing"},
		{"pointer 0xc000012345 escaped", "pointer 0xc0000999ff escaped"},
		{"GET https://a.example.org/x?y=1: refused", "GET http://b.example.org:8080/z: refused"},
		{"no mailbox ada@example.org here", "no mailbox grace.hopper@mail.example.com here"},
		{"open /var/lib/app/12/a.pdf: denied", "open /srv/b.pdf: denied"},
		{"open uploads/12/a.pdf: denied", "open uploads/77/other-name.pdf: denied"},
		{`open C:\a\b.pdf: denied`, `open D:\data\x\y.pdf: denied`},
		{`unknown field "colour"`, `unknown field "size"`},
		{"unknown field 'colour'", "unknown field 'size'"},
		{"dial tcp 10.0.0.1:5432: refused", "dial tcp 192.168.7.9:5433: refused"},
		{"dial tcp [2001:db8::1]:5432: refused", "dial tcp [fe80::aa:1]:80: refused"},
		{"at 2026-11-15T12:00:00Z it stopped", "at 2025-01-02T03:04:05.678+01:00 it stopped"},
		{"at 2026-11-15 12:00:00 it stopped", "at 2025-01-02 03:04:05 it stopped"},
		{"until Sun, 15 Nov 2026 12:01:30 GMT", "until Mon, 16 Nov 2026 08:00:00 GMT"},
		{"took 1m30s, too long", "took 250ms, too long"},
		{"took 1.5s, too long", "took 3h, too long"},
		{"got 1,024 of 2,048 bytes", "got 7 of 9 bytes"},
		{"offset -5 is bad", "offset 17 is bad"},
		{"line  one\n two", "line one two"},
		{"password=hunter2 rejected", "password=other rejected"},
	}
	for _, p := range pairs {
		if a, b := printOf(errors.New(p[0])), printOf(errors.New(p[1])); a != b {
			t.Errorf("split:\n %q -> %q\n %q -> %q", p[0], normalise(p[0]), p[1], normalise(p[1]))
		}
	}
}

func TestDifferentCausesHaveDifferentFingerprints(t *testing.T) {
	pairs := [][2]error{
		{errors.New("user 42 not found"), errors.New("order 42 not found")},
		{errors.New("connection refused"), errors.New("connection reset")},
		{errors.New("permission denied"), errors.New("no such file")},
		{errors.New("can't find user's file"), errors.New("can't read user's name")},
		{errors.New("x"), &declined{"x"}},
		{WithCode(io.EOF, "GW_5XX"), WithCode(io.EOF, "IO_ERROR")},
		{errors.New("read/write failed"), errors.New("tcp/ip failed")},
	}
	for _, p := range pairs {
		if printOf(p[0]) == printOf(p[1]) {
			t.Errorf("merged: %q and %q", p[0], p[1])
		}
	}
}

func TestMarksDoNotChangeAFingerprint(t *testing.T) {
	err := errors.New("the gateway hiccuped")
	if printOf(err) != printOf(RetryAfter(On(With(err, "a", "b"), "gw"), 5)) {
		t.Error("marks change the fingerprint")
	}
}

func TestIDsOfEveryFormAreReplaced(t *testing.T) {
	id := rapid.OneOf(
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		rapid.StringMatching(`[0-9]{1,18}`),
		rapid.StringMatching(`0x[0-9a-f]{1,16}`),
		rapid.StringMatching(`[0-9][A-Za-z][A-Za-z0-9]{6,20}`),
	)
	around := rapid.SampledFrom([]string{"job % is gone", "%: refused", "cannot find %", "(id %, again)", "id=%, x"})
	rapid.Check(t, func(t *rapid.T) {
		text := around.Draw(t, "text")
		got := normalise(strings.ReplaceAll(text, "%", id.Draw(t, "id")))
		if got != strings.ReplaceAll(text, "%", "<id>") && got != strings.ReplaceAll(text, "%", "<n>") {
			t.Fatalf("%q", got)
		}
	})
}

func stackOf(do func()) (stack string) {
	defer func() {
		_ = recover()
		stack = string(debug.Stack())
	}()
	do()
	return ""
}

//go:noinline
func nilHere() { var d *declined; _ = d.reason }

//go:noinline
func nilThere() { var d *declined; d.reason = "x" }

func TestPanicsAtDifferentPlacesHaveDifferentFingerprints(t *testing.T) {
	same := errors.New("runtime error: invalid memory address or nil pointer dereference")
	decide := func(stack string) string {
		return Decide(Rules{}, store.Lease{}, Outcome{Event: Panicked, Err: same, Stack: stack}).Failure.Fingerprint
	}
	here, again, there := stackOf(nilHere), stackOf(func() { nilHere() }), stackOf(nilThere)
	if names := stackFunctions(here); len(names) == 0 || !strings.HasSuffix(names[0], "failure.nilHere") {
		t.Fatalf("frames: %v\n%s", names, here)
	}
	if decide(here) == decide(there) {
		t.Error("two places merged")
	}
	if stackFunctions(here)[0] != stackFunctions(again)[0] {
		t.Errorf("%v and %v", stackFunctions(here), stackFunctions(again))
	}
	moved := strings.ReplaceAll(here, ".go:1", ".go:9")
	if decide(here) != decide(moved) {
		t.Error("a line number changes the fingerprint")
	}
}

func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{
		"user 42", "01890a5d-ac96-774b-bcce-b302099a8057", "http://[::1]:80/x", "2026-11-15T12:00:00Z", `"a\"b"`, "''''", "\xff1", "1m30s",
		"١٢٣", "a/1/b.c", `\\host\share\1`, "0x", "1.2.3.4:5", strings.Repeat("1 ", 5000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = Scrub(text)
		got := normalise(text)
		if strings.ContainsAny(got, digits) || !utf8.ValidString(got) || got != normalise(text) {
			t.Errorf("%q -> %q", text, got)
		}
		stackFunctions(text)
		if print := fingerprint("X", nil, text, text); len(print) != 32 {
			t.Errorf("%q", print)
		}
	})
}

func BenchmarkDecideFailure(b *testing.B) {
	err := fmt.Errorf("sending to %s: %w", "ada@example.org", errors.New("dial tcp 10.0.0.1:25: connect: connection refused"))
	for b.Loop() {
		Decide(Rules{}, store.Lease{}, Outcome{Err: err})
	}
}

func BenchmarkDecideComplete(b *testing.B) {
	for b.Loop() {
		Decide(Rules{}, store.Lease{}, Outcome{})
	}
}

func BenchmarkDecidePanic(b *testing.B) {
	stack := stackOf(nilHere)
	for b.Loop() {
		Decide(Rules{}, store.Lease{}, Outcome{Event: Panicked, Err: io.EOF, Stack: stack})
	}
}
