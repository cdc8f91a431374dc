package code_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

func TestTheTableIsATaxonomyWithTheStagesOfTheSeed(t *testing.T) {
	taxonomy := code.Taxonomy()
	seen := map[string]int{}
	for _, c := range code.All() {
		if known, ok := taxonomy.Code(c.Name); !ok || known != c {
			t.Errorf("%s is not in the taxonomy as it is in the table", c.Name)
		}
		stage := code.Stage(c.Name)
		if !slices.Contains(code.Stages, stage) || !strings.HasPrefix(c.Name, stage) {
			t.Errorf("%s has the stage %q", c.Name, stage)
		}
		seen[stage]++
	}
	for _, stage := range code.Stages {
		if seen[stage] == 0 {
			t.Errorf("no code begins with %s", stage)
		}
	}
	for _, example := range []string{"VALIDATION_MISSING_FIELD", "DOWNLOAD_TIMEOUT", "DOWNLOAD_HTTP_4XX", "DOWNLOAD_PROXY_EXHAUSTED", "UPLOAD_S3_ERROR", "SYSTEM_PANIC"} {
		if code.Of(example).Name != example {
			t.Errorf("the example of 002 section 1, %s, is missing", example)
		}
	}
}

// 002 section 5: given an error code, the classification is correct. The expectations are those of 002 section 2.
func TestEachCodeIsRetriedAsTheSeedSays(t *testing.T) {
	retried := []string{
		"DOWNLOAD_TIMEOUT", "DOWNLOAD_DNS_ERROR", "DOWNLOAD_HTTP_5XX", "DOWNLOAD_HTTP_408", "DOWNLOAD_HTTP_429", "DOWNLOAD_HTTP_499", "DOWNLOAD_PROXY_EXHAUSTED",
		"UPLOAD_NETWORK_ERROR", "UPLOAD_S3_ERROR", "UPLOAD_THROTTLED", "STORAGE_UNAVAILABLE", "STORAGE_STREAM_ERROR",
	}
	final := []string{
		"DOWNLOAD_HTTP_4XX", "DOWNLOAD_INVALID_URL", "UPLOAD_ACCESS_DENIED", "UPLOAD_INVALID_BUCKET", "HANDLER_REFUSED", "HANDLER_MISSING_METADATA", "SYSTEM_PANIC", "SYSTEM_ERROR",
		"VALIDATION_MISSING_FIELD", "AUTH_INVALID",
	}
	limits := code.Limits{Downloads: 4, Storage: 3}
	rules := failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: limits.Policy()}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	attempts := func(name string) (n int) {
		for ; n < 100; n++ {
			v := failure.Decide(rules, leaseAfter(n), failure.Outcome{Event: failure.Returned, Err: failure.WithCode(errors.New("x"), name)})
			if v.To == holdfast.Failed {
				return n + 1
			}
		}
		return n
	}
	for _, name := range retried {
		want := limits.Storage
		if strings.HasPrefix(name, "DOWNLOAD_") {
			want = limits.Downloads
		}
		if got := attempts(name); got != want {
			t.Errorf("%s: %d attempts, want %d", name, got, want)
		}
	}
	for _, name := range final {
		if got := attempts(name); got != 1 {
			t.Errorf("%s: %d attempts, want 1", name, got)
		}
	}
	for _, c := range code.All() {
		stage := code.Stage(c.Name)
		if never := stage == "VALIDATION_" || stage == "AUTH_" || stage == "HANDLER_" || stage == "SYSTEM_" && c.Name != code.SystemOverloaded; never && c.Retryable {
			t.Errorf("%s is retried", c.Name)
		}
	}
}

func TestErrorsWithoutACodeAreFinalAndCodesOfTheEngineHaveOneOfTheTable(t *testing.T) {
	rules := failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: code.Limits{}.Policy()}
	v := failure.Decide(rules, store.Lease{}, failure.Outcome{Event: failure.Returned, Err: errors.New("connection refused")})
	if v.To != holdfast.Failed || v.Failure.Code != code.SystemError {
		t.Errorf("%+v", v)
	}
	for engine, want := range map[string]string{
		"LOST_WORKER": code.SystemWorkerLost, "POISON": code.SystemWorkerLost, "SYSTEM_PANIC": code.SystemPanic, "JOB_EXPIRED": code.SystemExpired, "UNKNOWN": code.SystemError,
		"NO_SUCH_CODE": code.SystemError, "": code.SystemError, "TIMEOUT": code.DownloadTimeout,
	} {
		if got := code.Of(engine).Name; got != want {
			t.Errorf("%s is shown as %s, want %s", engine, got, want)
		}
	}
}

var update = flag.Bool("update", false, "write the tables of docs/failures.md")

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
	want := before + "<!-- codes -->\n" + tables() + "<!-- end of codes -->\n" + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/failures.md differs from the table: run go test ./fetchbox/code -run TheDocument -update")
	}
}

// tables returns the codes as the document shows them.
func tables() string {
	blames := map[failure.Blame]string{failure.BlameUser: "sender of the request", failure.BlameDependency: "source, proxy or storage", failure.BlameUs: "operators"}
	var all strings.Builder
	for _, stage := range code.Stages {
		fmt.Fprintf(&all, "\n### %s\n\n| code | retried | HTTP | caused by | message | what to do |\n|---|---|---|---|---|---|\n", strings.TrimSuffix(stage, "_"))
		for _, c := range code.All() {
			if code.Stage(c.Name) == stage {
				retried := map[bool]string{true: "yes", false: "no"}[c.Retryable]
				fmt.Fprintf(&all, "| `%s` | %s | %d | %s | %s | %s |\n", c.Name, retried, c.HTTPStatus, blames[c.Blame], c.Message, c.Remedy)
			}
		}
	}
	return all.String() + "\n"
}

// leaseAfter is the lease of a job that has failed n times.
func leaseAfter(n int) (l store.Lease) {
	l.Failures = n
	return l
}
