package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A step is one command line, with its expected exit code and a text that its output must contain.
type step struct {
	line string
	code int
	says string
}

// runSteps runs steps on one store. A step that fails must print exactly one line on standard error.
func runSteps(t *testing.T, address string, steps []step) {
	t.Helper()
	for _, s := range steps {
		code, out, stderr := command(t, append(splitArgs(s.line), "--store", address)...)
		if code != s.code || !strings.Contains(out, s.says) {
			t.Errorf("holdfast %s: exit %d, want %d with %q\n%s%s", s.line, code, s.code, s.says, out, stderr)
		}
		if s.code != exitOK && oneLine(stderr) == "" {
			t.Errorf("holdfast %s: wanted one clear line, got %q", s.line, stderr)
		}
	}
}

// splitArgs splits a line as a shell would, with single quotes only.
func splitArgs(line string) (list []string) {
	for n, part := range strings.Split(line, "'") {
		if n%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

func TestHoldsAreListedAndEnded(t *testing.T) {
	address, failed, waiting := newTestStore(t)
	runSteps(t, address, []step{
		{"holds", exitOK, "no holds"},
		{"pause --actor ada", exitUsage, ""},
		{"pause --owner acme --tag vip --actor ada", exitUsage, ""},
		{"pause --kind mail --at-most 2 --actor ada --reason slowly", exitOK, "limited until resumed"},
		{"pause --dependency gateway --retries-only --for 1h --actor ada", exitOK, "paused for 1h0m0s"},
		{"pause --owner acme --per-second 0.5 --actor ada", exitOK, "limited until resumed"},
		{"pause --owner '*' --at-most 3 --actor ada", exitError, ""},
		{"pause --owner '*' --at-most 3 --yes --actor ada", exitOK, "limited until resumed"},
		{"resume --owner '*' --actor ada", exitOK, "resumed"},
		{"pause --tag vip --actor ada", exitOK, "paused until resumed"},
		{"holds", exitOK, "nothing (retries only)"},
		{"holds", exitOK, "2 at once"},
		{"holds", exitOK, "0.5/s, 1 available"},
		{"holds --json", exitOK, `"behind": 1`},
		{"resume --kind mail --actor ada", exitOK, "resumed"},
		{"resume --dependency gateway --source breaker --actor ada", exitConflict, ""},
		{"explain " + waiting.String(), exitOK, "no live worker"},
		{"explain " + failed.String(), exitOK, "failed for good"},
	})
}

func TestBreakersAreOpenedAndClosedByCommand(t *testing.T) {
	address, failed, _ := newTestStore(t)
	runSteps(t, address, []step{
		{"breakers", exitOK, "no dependency is known"},
		{"breakers open gatewya --actor ada", exitNotFound, ""},
		{"breakers open gateway --actor ada --reason 'it burns'", exitOK, "the breaker of gateway: open"},
		{"retry " + failed.String() + " --actor ada", exitOK, "queued again"},
		{"breakers", exitOK, "it burns"},
		{"breakers list --json", exitOK, `"behind": 1`},
		{"explain " + failed.String(), exitOK, "the breaker of gateway is open, next probe"},
		{"explain " + failed.String(), exitOK, "holdfast breakers close gateway"},
		{"breakers force-open gateway --actor ada", exitOK, "open until 'auto'"},
		{"breakers auto gateway --actor ada", exitOK, "automatic state restored"},
		{"breakers show gateway", exitOK, "half-open"},
		{"breakers close gateway --actor ada", exitOK, "rises gradually"},
		{"breakers force-closed gateway --actor ada", exitOK, "closed until 'auto'"},
		{"breakers show gateway", exitOK, "recovering"},
		{"breakers show printer", exitNotFound, ""},
		{"breakers open", exitUsage, ""},
		{"holds", exitOK, "no holds"},
		{"analytics", exitOK, "recoveries of dependencies"},
		{"doctor", exitOK, "no invariant is broken"},
	})
}

func TestARedriveIsPreviewedStartedAndControlled(t *testing.T) {
	address, failed, _ := newTestStore(t)
	runSteps(t, address, []step{
		{"redrive list", exitOK, "no redrives"},
		{"redrive preview --actor ada", exitUsage, ""},
		{"redrive preview --code GW_5XX --stop-above many", exitUsage, ""},
		{"redrive preview --code GW_5XX --actor ada", exitOK, "1 dead letters would be redriven"},
		{"redrive preview --code GW_5XX --actor ada", exitOK, "no worker is alive"},
		{"redrive preview --kind mail --actor ada", exitOK, "2 jobs would not: not failed"},
		{"redrive start --code GW_5XX --dry-run --actor ada --json", exitOK, `"eligible": 1`},
		{"redrive list", exitOK, "no redrives"},
		{"redrive show " + failed.String(), exitNotFound, ""},
	})
	if code, _, stderr := command(t, "redrive", "start", "--code", "GW_5XX", "--actor", "ada", "--store", address); code != exitError || !strings.Contains(stderr, "not confirmed: answer yes, or pass --yes") {
		t.Errorf("without confirmation it ended with %d: %s", code, stderr)
	}
	code, out, stderr := command(t, "redrive", "start", "--all", "--yes", "--canary", "1", "--stop-above", "20%", "--patch", `{"a": 1}`, "--actor", "ada", "--json", "--store", address)
	var started struct{ ID string }
	if err := json.Unmarshal([]byte(out), &started); err != nil || code != exitOK {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, stderr)
	}
	runSteps(t, address, []step{
		{"redrive list", exitOK, "running"},
		{"redrive show " + started.ID, exitOK, "no worker is alive"},
		{"redrive show --json " + started.ID, exitOK, `"stop_above": 0.2`},
		{"redrive resume --actor ada " + started.ID, exitConflict, ""},
		{"redrive pause --actor ada --reason lunch " + started.ID, exitOK, "paused"},
		{"redrive show --watch " + started.ID, exitOK, "paused by ada: lunch"},
		{"redrive resume --actor ada " + started.ID, exitOK, "resumed"},
		{"redrive cancel --actor ada " + started.ID, exitOK, "cancelled"},
		{"redrive show " + started.ID, exitOK, "0 of 1 ended"},
	})
}

func TestErrorGroupsAreTriaged(t *testing.T) {
	address, _, _ := newTestStore(t)
	runSteps(t, address, []step{
		{"errors", exitOK, "GW_5XX"},
		{"errors list --status resolved", exitOK, "no error groups match"},
		{"errors show f1", exitOK, "1 dead letters; to redrive them: holdfast redrive start --fingerprint f1"},
		{"errors show f2", exitNotFound, ""},
		{"errors note f1 --actor ada", exitUsage, ""},
		{"errors note f1 --actor ada --reason 'only at night'", exitOK, "noted"},
		{"errors ack f1 --actor ada", exitOK, "acknowledged"},
		{"errors show f1", exitOK, "only at night"},
		{"errors ignore f1 --actor ada --for 1h", exitOK, "ignored"},
		{"errors resolve f1 --actor ada --version v2", exitOK, "resolved"},
		{"errors list --status resolved --json", exitOK, `"resolved_in": "v2"`},
		{"errors reopen f1 --actor ada", exitOK, "open"},
	})
}

func TestFiguresAndSharesArePrinted(t *testing.T) {
	address, _, _ := newTestStore(t)
	runSteps(t, address, []step{
		{"analytics", exitOK, "AMPLIFICATION"},
		{"analytics --within 0s", exitUsage, ""},
		{"analytics --json", exitOK, `"gave_up": 1`},
		{"shares", exitOK, "every owner has weight 1"},
		{"shares set acme many", exitUsage, ""},
		{"shares set acme 3 --actor ada", exitOK, "acme now has weight 3"},
		{"shares", exitOK, "acme"},
		{"shares set acme 1 --actor ada", exitOK, "acme now has weight 1"},
		{"shares --json", exitOK, "[]"},
	})
}
