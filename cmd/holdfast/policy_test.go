package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func policyFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	ok(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

const fiveMistakes = `defaults:
  max_attempts: 0
  give_up_after: 24
kinds:
  mail: {max_atempts: 4}
codes:
  RATE_LIMITD: {max_attempts: 3}
queues: {bulk: {no_retries: [{from: "9", to: "17:00"}]}}
`

func TestAPolicyWithFiveMistakesNamesAllFiveAndAppliesNothing(t *testing.T) {
	address, _, _ := newTestStore(t)
	file := policyFile(t, fiveMistakes)
	for _, args := range [][]string{
		{"policy", "check", file}, {"policy", "apply", file, "--actor", "ada", "--store", address},
		{"policy", "simulate", "--file", file}, {"policy", "whatif", "--file", file, "--store", address},
	} {
		code, out, stderr := command(t, args...)
		if code != exitUsage || out != "" {
			t.Errorf("%v: exit %d\n%s", args, code, out)
		}
		for _, line := range []string{"line 2: ", "line 3: ", "line 5: ", "line 7: ", "line 8: "} {
			if strings.Count(stderr, line) != 1 {
				t.Errorf("%v: %q is missing from\n%s", args, line, stderr)
			}
		}
	}
	if code, _, stderr := command(t, "policy", "show", "--store", address); code != exitNotFound || !strings.Contains(stderr, "no policy is applied") {
		t.Errorf("something was applied: exit %d, %s", code, stderr)
	}
}

func TestAPolicyIsCheckedAppliedShownAndTriedOut(t *testing.T) {
	address, _, _ := newTestStore(t)
	file := policyFile(t, "defaults: {max_attempts: 4, backoff: {shape: fixed, delay: 10s}}\ncodes: {PRESS_JAM: {max_attempts: 2}}\n")
	allowed := []string{"--allow-code", "PRESS_JAM"}
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"policy", "check", file}, exitOK, "is valid"},
		{[]string{"policy", "apply", file, "--store", address, "--actor", "ada", "--reason", "trial"}, exitOK, "applied as version 1"},
		{[]string{"policy", "apply", file, "--store", address, "--actor", "ada"}, exitOK, "unchanged: this policy is already applied as version 1"},
		{[]string{"policy", "show", "--store", address}, exitOK, "max_attempts: 4"},
		{[]string{"policy", "show", "--store", address, "--json"}, exitOK, `"version": 1`},
		{[]string{"policy", "simulate", "--store", address, "--outage", "15s"}, exitOK, "complete after 23s and 3 attempts"},
		{[]string{"policy", "simulate", "--file", file, "--code", "PRESS_JAM"}, exitOK, "failed after 12s and 2 attempts"},
		{[]string{"policy", "simulate", "--file", file, "--code", "PRESS_JAM"}, exitOK, "warning: nothing defines the code PRESS_JAM"},
		{[]string{"policy", "simulate", "--file", file, "--json"}, exitOK, `"what": "gives up"`},
		{[]string{"policy", "whatif", "--store", address, "--file", file}, exitOK, "3 jobs looked at, 1 had failed at least once"},
		{[]string{"policy", "whatif", "--store", address, "--kind", "mail"}, exitOK, "1 -> 4"},
		{[]string{"policy", "simulate", "--store", ""}, exitUsage, ""},
		{[]string{"policy", "simulate", "--file", file, "--at", "noon"}, exitUsage, ""},
		{[]string{"policy", "simulate", "--file", file, "--outage", "-1s"}, exitUsage, ""},
		{[]string{"policy", "whatif", "--file", file, "--jobs", "0", "--store", address}, exitUsage, ""},
		{[]string{"policy", "check", file + ".missing"}, exitUsage, ""},
		{[]string{"policy", "apply", file, "--store", address, "--actor", ""}, exitUsage, ""},
		{[]string{"policy", "remove", "--store", address, "--actor", "ada", "--if-version", "7"}, exitConflict, ""},
		{[]string{"policy", "remove", "--store", address, "--actor", "ada", "--if-version", "1", "--reason", "trial over"}, exitOK, "removed"},
		{[]string{"policy", "remove", "--store", address, "--actor", "ada"}, exitNotFound, ""},
		{[]string{"policy", "show", "--store", address}, exitNotFound, ""},
		{[]string{"policy", "frobnicate"}, exitUsage, ""},
	} {
		code, out, stderr := command(t, append(step.args, allowed...)...)
		if code != step.code || !strings.Contains(out, step.says) {
			t.Errorf("holdfast %s: exit %d, want %d with %q\n%s%s", strings.Join(step.args, " "), code, step.code, step.says, out, stderr)
		}
		if step.code != exitOK && oneLine(stderr) == "" {
			t.Errorf("holdfast %s: wanted one clear line, got %q", strings.Join(step.args, " "), stderr)
		}
	}
}

func TestApplyRecordsTheActorAndRefusesAConcurrentChange(t *testing.T) {
	address, _, _ := newTestStore(t)
	ctx := t.Context()
	jobs, err := anystore.Open(ctx, address)
	ok(t, err)
	defer jobs.Close()
	set, err := policy.Parse([]byte("defaults: {max_attempts: 4}\n"))
	ok(t, err)
	_, err = applyPolicy(ctx, newOperator(jobs, ops.Config{}, nil), set, ops.PolicyRequest{Text: set.Text()}, ops.Actor{Name: "ada", Reason: "calmer"})
	ok(t, err)
	events, err := jobs.Events(ctx, "policy", 10)
	ok(t, err)
	if len(events) != 1 || events[0].Actor != "ada" || events[0].Reason != "calmer" || events[0].Name != "applied" {
		t.Errorf("%+v", events)
	}
	late := staleReader{jobs}
	if _, err := applyPolicy(ctx, newOperator(late, ops.Config{}, nil), set, ops.PolicyRequest{Text: set.Text()}, ops.Actor{Name: "bob"}); exitCode(err) != exitConflict {
		t.Errorf("the concurrent change was not refused: %v", err)
	}
}

// A staleReader does not see records that were kept in the meantime.
type staleReader struct{ store.Store }

func (r staleReader) Records(context.Context, string) ([]store.Record, error) { return nil, nil }

// publishCodes publishes failure codes as a worker does when it starts.
func publishCodes(t *testing.T, address string, codes ...failure.Code) {
	t.Helper()
	jobs, err := anystore.Open(t.Context(), address)
	ok(t, err)
	defer jobs.Close()
	own, err := failure.NewTaxonomy(codes...)
	ok(t, err)
	ok(t, jobs.Apply(t.Context(), store.Change{Records: catalog.Publish(own, policy.GoSettings{}, "v1", nil)}))
}

func TestPublishedCodesAreKnownToEveryCommand(t *testing.T) {
	address, _, _ := newTestStore(t)
	publishCodes(t, address, failure.Code{Name: "PRESS_JAM", Category: "handler", Blame: failure.BlameUs, HTTPStatus: 500, Message: "The press is stuck.", Remedy: "Open the lid."})
	file := policyFile(t, "defaults: {max_attempts: 4, backoff: {shape: fixed, delay: 10s}}\nkinds: {print: {codes: {PRESS_JAM: {max_attempts: 2}}}}\n")
	for _, at := range [][]string{{"--store", address}, {"--server", startTestServer(t, address)}} {
		for _, step := range []struct {
			line string
			code int
			says string
		}{
			{"codes --custom", exitOK, "Open the lid."},
			{"codes show PRESS_JAM", exitOK, "worker v1, last seen"},
			{"codes show PRES_JAM", exitNotFound, "did you mean PRESS_JAM?"},
			{"policy check " + file, exitOK, "is valid"},
			{"policy simulate --kind mail --code PRESS_JAM --file " + file, exitOK, "failed after 1s and 1 attempts"},
			{"policy apply " + file + " --actor ada", exitOK, ""},
			{"policy simulate --kind mail --code PRESS_JAM", exitOK, "failed after 1s and 1 attempts"},
			{"policy show", exitOK, "# followed by 0 of 0 live workers"},
		} {
			code, out, stderr := command(t, append(splitArgs(step.line), at...)...)
			if code != step.code || !strings.Contains(out+stderr, step.says) {
				t.Errorf("holdfast %s %s: exit %d, want %d with %q\n%s%s", step.line, at[0], code, step.code, step.says, out, stderr)
			}
		}
	}
	if code, _, stderr := command(t, "policy", "check", file); code != exitUsage || !strings.Contains(stderr, "is a failure code that is not defined") {
		t.Errorf("without a store: exit %d, %s", code, stderr)
	}
}

func TestWhatIfUsesPublishedCodesAndWarnsOfUndefinedOnes(t *testing.T) {
	address, _, _ := newTestStore(t)
	publishCodes(t, address, failure.Code{Name: "SMTP_REFUSED", Category: "input", Blame: failure.BlameUser, HTTPStatus: 422, Message: "The address was refused.", Remedy: "Ask for another."})
	file := policyFile(t, "defaults: {max_attempts: 6}\n")
	for _, c := range []struct{ code, attempts, warning string }{
		{"SMTP_REFUSED", "1 -> 1", ""},
		{"NO_LONGER_DEFINED", "1 -> 6", "warning: nothing defines the code NO_LONGER_DEFINED (jobs that failed with it: 1)"},
	} {
		failJob(t, address, strings.ToLower(c.code), c.code)
		for _, from := range []string{"--store", "HOLDFAST_STORE"} {
			line := []string{"policy", "whatif", "--file", file, "--kind", strings.ToLower(c.code)}
			if from == "--store" {
				line = append(line, from, address)
			} else {
				t.Setenv(from, address)
			}
			code, out, stderr := command(t, line...)
			if code != exitOK || !strings.Contains(out, c.attempts) || !strings.Contains(out, c.warning) || (c.warning == "") == strings.Contains(out, "warning") {
				t.Errorf("store from %s: exit %d\n%s%s", from, code, out, stderr)
			}
		}
	}
}

// failJob enqueues a job of a kind in a queue of the same name and lets its first attempt fail for good with a failure code.
func failJob(t *testing.T, address, kind, code string) {
	t.Helper()
	jobs, err := anystore.Open(t.Context(), address)
	ok(t, err)
	defer jobs.Close()
	_, err = jobs.Enqueue(t.Context(), []holdfast.Draft{{Kind: kind, Queue: kind}})
	ok(t, err)
	leases, err := jobs.Claim(t.Context(), store.Claim{Worker: "w", Queues: []string{kind}, Limit: 1, Start: 1, Lease: time.Minute})
	ok(t, err)
	_, err = jobs.Settle(t.Context(), []store.Settlement{{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 3,
		Failure: &holdfast.Failure{Code: code, Category: "input", Message: "refused", Fingerprint: "f7"}}})
	ok(t, err)
}
