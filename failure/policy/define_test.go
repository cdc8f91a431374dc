package policy

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/failure"
)

const mailbox = `kinds: {mail: {codes: {MAILBOX_UNKNOWN: {max_attempts: 2}}}}
codes:
  MAILBOX_UNKNOWN:
    {message: There is no such mailbox., remedy: Ask for another address., category: input, blame: user, retryable: false, benign: true}
  NOT_FOUND: {remedy: Look into the archive.}
`

func TestAFileDefinesCodesThatAllOfItMayName(t *testing.T) {
	s := parsed(t, mailbox)
	codes := s.Taxonomy(nil)
	want := failure.Code{Name: "MAILBOX_UNKNOWN", Category: "input", Blame: failure.BlameUser, HTTPStatus: 422, Message: "There is no such mailbox.", Remedy: "Ask for another address.", Benign: true}
	if got, _ := codes.Code("MAILBOX_UNKNOWN"); got != want {
		t.Errorf("%+v", got)
	}
	got, _ := codes.Code("NOT_FOUND")
	if built, _ := (*failure.Taxonomy)(nil).Code("NOT_FOUND"); got.Remedy != "Look into the archive." || got.Message != built.Message || got.Blame != built.Blame {
		t.Errorf("%+v", got)
	}
	trial := Simulate(s, Scenario{Kind: "other", Code: "MAILBOX_UNKNOWN", Outage: Outage{To: 1 << 40}})
	if trial.Attempts != 1 {
		t.Errorf("a final code is tried %d times", trial.Attempts)
	}
}

func TestADefinitionThatMakesNoSenseIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"codes:\n  NEW_CODE: {message: Something new.}\n":              "line 2: codes.NEW_CODE: a new code also needs remedy, category, blame, retryable",
		"codes:\n  TIMEOUT: {category: input}\n":                       "line 2: codes.TIMEOUT: TIMEOUT is built in, and its category timeout",
		"codes:\n  TIMEOUT: {blame: user}\n":                           "line 2: codes.TIMEOUT: TIMEOUT is built in, and its blame us",
		"codes:\n  TIMEOUT:\n    blame: usr\n":                         "line 3: codes.TIMEOUT.blame: \"usr\" is not known; did you mean user?",
		"codes:\n  TIMEOUT:\n    http_status: 200\n":                   "line 3: codes.TIMEOUT.http_status",
		"codes:\n  TIMEOUT:\n    message: \"two\\nlines\"\n":           "line 3: codes.TIMEOUT.message: give one line",
		"codes:\n  TIMEOUT:\n    mesage: x\n":                          "line 3: codes.TIMEOUT.mesage is not known; did you mean message?",
		"codes:\n  TIMEOUT: {message: Too slow., retryable: maybe}\n":  "line 2: codes.TIMEOUT.retryable: \"maybe\" is neither true nor false",
		"kinds:\n  mail:\n    codes: {TIMEOUT: {message: not here}}\n": "line 3: kinds.mail.codes.TIMEOUT.message is not known",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

func TestAWorkerReadsADefinitionWhoseOtherHalfItDoesNotKnowYet(t *testing.T) {
	s, unknown, err := ParseLenient([]byte("codes: {THEIRS: {remedy: Call them.}}"), nil)
	if err != nil || len(unknown) != 1 {
		t.Fatalf("%v, %v", unknown, err)
	}
	theirs, _ := failure.NewTaxonomy(failure.Code{Name: "THEIRS", Category: "input", Blame: failure.BlameUser, HTTPStatus: 409, Message: "Theirs.", Remedy: "None."})
	if code, _ := s.Taxonomy(theirs).Code("THEIRS"); code.Remedy != "Call them." || code.HTTPStatus != 409 || code.Message != "Theirs." {
		t.Errorf("%+v", code)
	}
}
