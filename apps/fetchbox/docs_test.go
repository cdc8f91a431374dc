package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// The commands of the README are run as they are; only the address and the home directory are those of the test.
func TestTheSessionOfTheReadmeWorks(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("this test needs bash: install it (Debian: apt-get install bash)")
	}
	if _, err := testprograms.Curl.Ensure(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, session, _ := strings.Cut(string(text), "## With curl")
	_, session, _ = strings.Cut(session, "```sh\n")
	session, _, _ = strings.Cut(session, "```")
	s := newScene(t)
	home := t.TempDir()
	key := filepath.Join(home, ".local", "share", "fetchbox", "key")
	if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte(s.key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(session, "http://127.0.0.1:4760") {
		t.Fatalf("the session does not name the address:\n%s", session)
	}
	command := exec.CommandContext(t.Context(), bash, "-c", strings.ReplaceAll(session, "http://127.0.0.1:4760", s.at))
	command.Env = append(os.Environ(), "HOME="+home)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for _, want := range []string{
		`"resources":2`, `"status":"failed"`, `"dead_letter":1`, `"state":"failed"`, `"state":"complete"`, "index,id,url", "health.json", `"dead_letters":[{"sequence":1`, `"letters":1,"eligible":1`,
		`"retried":1`, `"line":1`, `"line":2`, "AUTH_MISSING",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing, or too early, in:\n%s", want, out)
		}
		rest = after
	}
}

// docs/api.md has every field that a client sends or receives.
func TestTheDocumentOfTheAPIHasEveryField(t *testing.T) {
	text, err := os.ReadFile("docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, of := range []any{intake.Accepted{}, view.Job{}, view.Resource{}, view.Letter{}, replay.Request{}, replay.Preview{}, view.Replay{}, proxy.Status{}, failure.Code{}} {
		for _, name := range fieldsOf(reflect.TypeOf(of), nil) {
			if !strings.Contains(string(text), "`"+name+"`") {
				missing = append(missing, reflect.TypeOf(of).String()+"."+name)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/api.md does not have `%s`", strings.Join(missing, "`, `"))
	}
}

// fieldsOf returns the names that the fields of a type, and of the structs in it, have in JSON.
func fieldsOf(of reflect.Type, seen []reflect.Type) (names []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || slices.Contains(seen, of) || of.Implements(reflect.TypeFor[json.Marshaler]()) || of == reflect.TypeFor[holdfast.ID]() {
		return nil
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name != "" {
			names = append(names, name)
		}
		names = append(names, fieldsOf(field.Type, append(seen, of))...)
	}
	return names
}

// The table in the README has each setting once, with its default and meaning.
func TestTheReadmeListsEverySetting(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range settingTable {
		if line := k.Row(); strings.Count(string(text), line) != 1 {
			t.Errorf("README.md must have this line once:\n%s", line)
		}
	}
}

func TestEveryBadSettingIsNamed(t *testing.T) {
	bad := map[string]string{
		"ADDR": "nonsense", "SPOOL_BYTES": "1", "NATS_ADDR": "x", "DOWNLOAD_RETRY_LIMIT": "0", "STORAGE_RETRY_LIMIT": "101", "PROXY_EXHAUSTED": "perhaps", "ALLOW_NETWORKS": "10.0.0.0",
		"RETENTION_RECORD": "1ms", "HOSTS": "http://x", "WORKER_CONCURRENCY": "-1",
	}
	_, err := readSettings(func(name string) string { return bad[name] })
	if err == nil {
		t.Fatal("all of it was taken")
	}
	for name := range bad {
		if !strings.Contains(err.Error(), name+"=") {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}
