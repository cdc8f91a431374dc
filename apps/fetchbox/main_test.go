package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
)

// An ended command is its exit code and what it printed.
type ended struct {
	code int
	said string
}

// runs runs the program with its command line. Pairs of environment variables are its settings.
func runs(t *testing.T, args []string, env ...string) ended {
	t.Helper()
	all := map[string]string{}
	for i := 0; i+1 < len(env); i += 2 {
		all[env[i]] = env[i+1]
	}
	var out bytes.Buffer
	code := run(t.Context(), args, func(name string) string { return all[name] }, &out, &out)
	return ended{code, out.String()}
}

func (e ended) is(t *testing.T, code int, said ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit code %d, want %d: %s", e.code, code, e.said)
	}
	for _, text := range said {
		if !strings.Contains(e.said, text) {
			t.Errorf("it does not say %q: %s", text, e.said)
		}
	}
}

func TestHelpListsCommandsAndSettings(t *testing.T) {
	e := runs(t, []string{"help"})
	e.is(t, 0, "fetchbox replay", "fetchbox ledger rebuild", "fetchbox key create")
	for _, k := range settingTable {
		e.is(t, 0, k.Name)
	}
}

func TestAWrongCommandLineOrSettingIsRefusedWithExitCode2(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"ledger"}, {"ledger", "delete"}, {"replay", "-nonsense"}, {"replay", "more"}, {"replay", "-seq", "x"}, {"replay", "-since", "soon"}, {"replay", "-job", "x"}, {"key"}, {"key", "make"}} {
		runs(t, args, "DATA_DIR", t.TempDir()).is(t, 2, "fetchbox: ")
	}
	runs(t, nil, "DATA_DIR", t.TempDir(), "ADDR", "nonsense", "SPOOL_BYTES", "1").is(t, 2, "ADDR=", "SPOOL_BYTES=")
}

func TestTheKeyCommandMakesListsAndRevokesKeys(t *testing.T) {
	data := t.TempDir()
	made := runs(t, []string{"key", "create", "--name", "ci", "--scope", "viewer"}, "DATA_DIR", data)
	made.is(t, 0, "hf_", "shown only once")
	_, id, _ := strings.Cut(made.said, "This is key ")
	id, _, _ = strings.Cut(id, ".")
	runs(t, []string{"key", "list"}, "DATA_DIR", data).is(t, 0, id, "ci", "viewer")
	runs(t, []string{"key", "revoke", id}, "DATA_DIR", data).is(t, 0, "is revoked")
}

// F7: the command line of replays.
func TestTheReplayCommandReplaysWhatItSelects(t *testing.T) {
	s := newScene(t)
	s.origin.down = true
	job := s.submits("/ok/a", "/ok/b")
	s.becomes(job, ledger.Failed)
	s.lettersOnce(2)
	s.origin.mu.Lock()
	s.origin.down = false
	s.origin.mu.Unlock()
	replays := func(args ...string) ended {
		t.Helper()
		return runs(t, append([]string{"replay", "-server", s.at}, args...), "DATA_DIR", s.set.Data, "FETCHBOX_KEY", s.key)
	}
	replays("-code", "DOWNLOAD_", "-dry-run").is(t, 0, "2 dead letters match; 2 of their resources", "DOWNLOAD_HTTP_5XX", "127.0.0.1")
	replays("-code", "UPLOAD_", "-dry-run").is(t, 0, "0 dead letters match")
	replays("-seq", "1", "-reason", "one first").is(t, 0, "has started, up to dead letter 1")
	s.until("the first one is stored", func() bool {
		complete := 0
		for _, r := range s.resourcesOf(job) {
			if r.State == holdfast.Complete {
				complete++
			}
		}
		return complete == 1
	})
	replays("-host", "127.0.0.1", "-since", "1h", "-canary", "1", "-rate", "50").is(t, 0, "has started")
	s.becomes(job, ledger.Complete)
	replays("-canary", "-1").is(t, 1, "VALIDATION_INVALID_FIELD")
	runs(t, []string{"replay", "-server", s.at}, "DATA_DIR", s.set.Data, "FETCHBOX_KEY", "nonsense").is(t, 1, "AUTH_INVALID")
	runs(t, []string{"replay", "-server", "http://127.0.0.1:1"}, "DATA_DIR", s.set.Data, "FETCHBOX_KEY", s.key).is(t, 1, "does not answer")
	runs(t, []string{"replay", "-server", s.at}, "DATA_DIR", t.TempDir()).is(t, 1, "there is no API key")
}

func TestTheLedgerCommandNeedsTheLedgerForItself(t *testing.T) {
	runs(t, []string{"ledger", "rebuild"}, "DATA_DIR", t.TempDir()).is(t, 0, "The ledger has all events up to number")
	s := idleScene(t)
	runs(t, []string{"ledger", "rebuild"}, "DATA_DIR", s.set.Data).is(t, 1, "another process")
}
