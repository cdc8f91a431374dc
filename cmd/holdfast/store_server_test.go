package main

import (
	"bytes"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// startTestServer serves a store like 'holdfast serve', without an engine, and returns its URL.
func startTestServer(t *testing.T, address string) string {
	t.Helper()
	s, err := anystore.Open(t.Context(), address)
	ok(t, err)
	srv, err := server.New(server.Config{Store: s, Operator: newOperator(s, ops.Config{}, nil), Enqueue: enqueuerOf(s, nil), Open: true, IgnoreKeys: true})
	ok(t, err)
	web := httptest.NewServer(srv)
	t.Cleanup(func() {
		web.Close()
		_ = srv.Close()
		_ = s.Close()
	})
	return web.URL
}

// volatile matches the parts of an answer that differ between two requests: the store's clock, and the id of a request.
var volatile = regexp.MustCompile(`"as_of": "[^"]*"|,\s*"request": "[^"]*"`)

func TestACommandPrintsTheSameOnAStoreAndThroughAServer(t *testing.T) {
	address, failed, waiting := newTestStore(t)
	url := startTestServer(t, address)
	for _, line := range []string{
		"jobs", "jobs --json", "jobs --limit 1", "job " + failed.String(), "job --json " + waiting.String(), "jobs --state failed --json", "jobs --code GW_5XX", "jobs --retrying", "jobs --worker nobody", "jobs --state nonsense",
		"story " + failed.String(), "story --json " + failed.String(), "explain " + waiting.String(), "explain --json " + waiting.String(), "explain " + holdfast.NewID().String(),
		"codes", "codes --json", "codes --custom", "codes show TIMEOUT", "codes show TIMEOUTT", "policy show", "policy explain mail", "policy explain mail TIMEOUT acme --json", "policy explain mail TIMEOUTT", "policy explain", "policy explain --job " + waiting.String(), "policy remove --actor ada --reason trial",
		"dead-letters", "dead-letters --json", "holds", "holds --json", "breakers", "breakers --json", "breakers show gateway", "breakers show nothing",
		"redrive list", "redrive list --json", "redrive preview --code GW_5XX --actor ada", "redrive preview --all --actor ada --json", "redrive preview --actor ada",
		"errors", "errors --json", "errors show f1", "errors show f1 --json", "errors show f9", "analytics", "analytics --json", "shares", "shares --json",
		"groups", "groups --json", "groups show " + failed.String(), "events", "events --json --after 0", "audit", "audit --json", "subscriptions", "subscriptions --json",
		"deliveries", "schedules", "schedules --json", "retention", "retention --json", "retention tombstones", "duties", "duties --json", "policy show",
		"workers", "workers --json", "queues", "queues --json", "stuck", "stuck --json", "keys", "keys --json", "doctor", "doctor --json",
		"retry " + waiting.String() + " --actor ada", "retry --actor ada " + holdfast.NewID().String(), "discard --actor ada " + failed.String(), "pause --actor ada", "cancel --actor ada " + failed.String(),
	} {
		nearCode, near, nearTalk := command(t, append(splitArgs(line), "--store", address)...)
		farCode, far, farTalk := command(t, append(splitArgs(line), "--server", url)...)
		near, far = volatile.ReplaceAllString(near, ""), volatile.ReplaceAllString(far, "")
		if nearCode != farCode || near != far || nearTalk != farTalk {
			t.Errorf("holdfast %s\nnear: exit %d\n%s%s\nfar: exit %d\n%s%s", line, nearCode, near, nearTalk, farCode, far, farTalk)
		}
	}
}

func TestOperatorCommandsWorkThroughAServer(t *testing.T) {
	address, failed, waiting := newTestStore(t)
	url := startTestServer(t, address)
	file := policyFile(t, "defaults: {max_attempts: 4}\n")
	for _, s := range []step{
		{"pause --queue default --actor ada --reason maintenance --for 1h", exitOK, "paused for 1h0m0s"},
		{"explain " + waiting.String(), exitOK, "maintenance"},
		{"resume --queue default --actor ada", exitOK, "resumed"},
		{"pause --kind mail --per-second 2 --actor ada", exitOK, "limited until resumed"},
		{"holds", exitOK, "2/s, 2 available"},
		{"breakers open gateway --actor ada --reason 'it burns'", exitOK, "the breaker of gateway: open"},
		{"breakers show gateway", exitOK, "it burns"},
		{"breakers close gateway --actor ada", exitOK, "rises gradually"},
		{"errors note f1 --actor ada --reason 'only at night'", exitOK, "noted"},
		{"policy apply " + file + " --actor ada", exitOK, "applied as version 1"},
		{"policy apply " + file + " --actor ada", exitOK, "unchanged"},
		{"policy show", exitOK, "max_attempts: 4"},
		{"policy explain mail TIMEOUT acme", exitOK, "order: the job > Go: KindOptions.Policy > codes > defaults > Go: Config.Policy > built in"},
		{"policy explain holdfast.webhook", exitOK, "order: the job > Go: KindOptions.Policy > Go: Config.Policy > built in"},
		{"policy whatif", exitOK, "3 jobs looked at"},
		{"retention apply --rule name=rest,for=forever --actor ada", exitOK, "applied: 1 rules"},
		{"retention", exitOK, "rest"},
		{"shares set acme 3 --actor ada", exitOK, "acme now has weight 3"},
		{"edit " + waiting.String() + " --queue slow --actor ada", exitOK, "slow"},
		{"story " + waiting.String(), exitOK, `queue: "default" → "slow"`},
		{"story " + waiting.String(), exitOK, "to restore: holdfast edit JOB --restore 2"},
		{"edit " + waiting.String() + " --restore yesterday --actor ada", exitUsage, ""},
		{"edit " + waiting.String() + " --restore 2001-02-03T04:05:06Z --actor ada", exitUsage, ""},
		{"edit " + waiting.String() + " --restore last --actor ada --reason 'wrong job'", exitOK, "default"},
		{"story " + waiting.String(), exitOK, "wrong job; restored what was there before"},
		{"edit " + failed.String() + " --restore last --actor ada", exitConflict, ""},
		{"retry " + failed.String() + " --actor ada --reason fixed", exitOK, "queued again"},
		{"story " + failed.String(), exitOK, "by ada"},
		{"cancel " + waiting.String() + " --actor ada", exitOK, "cancelled"},
		{"keys create --name bob --scope viewer --actor ada", exitOK, "hf_"},
		{"keys", exitOK, "bob"},
		{"enqueue mail --args '{\"n\": 9007199254740993}' --owner acme --idempotency-key k1 --delay 1h", exitOK, "enqueued "},
		{"enqueue mail --args '{\"n\": 9007199254740993}' --owner acme --idempotency-key k1 --delay 1h", exitOK, "already exists: "},
		{"enqueue mail --args '{\"n\": 2}' --owner acme --idempotency-key k1 --delay 1h", exitConflict, ""},
		{"enqueue http --args '{\"url\": \"nonsense\"}'", exitUsage, ""},
		{"enqueue http --args '{\"url\": \"https://example.com/x\"}' --json", exitOK, `"id"`},
		{"jobs --kind http", exitOK, "http"},
		{"doctor", exitOK, "no invariant is broken"},
	} {
		code, out, stderr := command(t, append(splitArgs(s.line), "--server", url)...)
		if code != s.code || !strings.Contains(out, s.says) {
			t.Errorf("holdfast %s: exit %d, want %d with %q\n%s%s", s.line, code, s.code, s.says, out, stderr)
		}
	}
}

func TestManyJobsAreEnqueuedFromAFile(t *testing.T) {
	address, _, _ := newTestStore(t)
	var file bytes.Buffer
	for range 250 {
		file.WriteString(`{"kind": "mail", "queue": "bulk", "args": {"to": "ada"}, "delay": "1h"}` + "\n")
	}
	file.WriteString("{oops\n\n" + `{"kind": "no spaces"}` + "\n" + `{"kind": "mail", "state": "complete"}` + "\n")
	drafts := policyFile(t, file.String())
	for _, where := range [][]string{{"--store", address}, {"--server", startTestServer(t, address)}} {
		code, out, stderr := command(t, append([]string{"enqueue", "--ndjson", drafts}, where...)...)
		if code != exitError || out != "250 enqueued, 0 already existed, 3 lines rejected\n" {
			t.Errorf("%v: exit %d\n%s", where, code, out)
		}
		for _, line := range []string{"line 251: ", "line 253: ", "line 254: "} {
			if strings.Count(stderr, line) != 1 {
				t.Errorf("%v: %q is missing from\n%s", where, line, stderr)
			}
		}
	}
	if _, out, _ := command(t, "queues", "--store", address); !strings.Contains(out, "500") {
		t.Error(out)
	}
}

func TestStoreAndServerAreFoundInFlagsAndEnvironment(t *testing.T) {
	address, _, _ := newTestStore(t)
	t.Setenv("DATABASE_URL", "")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	refused := func(code int, says string, args ...string) {
		t.Helper()
		got, _, stderr := command(t, args...)
		if got != code || !strings.Contains(oneLine(stderr), says) {
			t.Errorf("%v: exit %d and %q, want %d and one line with %q", args, got, stderr, code, says)
		}
	}
	refused(exitUsage, "--store and --server cannot be used together", "jobs", "--store", address, "--server", "http://127.0.0.1:1")
	refused(exitUsage, "HOLDFAST_SERVER", "jobs")
	refused(exitUsage, "give one such as", "jobs", "--server", "127.0.0.1:4747")
	t.Setenv("HOLDFAST_STORE", address)
	if code, out, stderr := command(t, "jobs"); code != exitOK || !strings.Contains(out, "GW_5XX") {
		t.Error(code, out, stderr)
	}
	t.Setenv("HOLDFAST_SERVER", startTestServer(t, address))
	refused(exitUsage, "both set", "jobs")
	t.Setenv("HOLDFAST_STORE", "")
	if code, out, stderr := command(t, "jobs"); code != exitOK || !strings.Contains(out, "GW_5XX") {
		t.Error(code, out, stderr)
	}
	t.Setenv("HOLDFAST_SEVRER", "x")
	refused(exitUsage, "did you mean HOLDFAST_SERVER?", "jobs")
}
