package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestAKeyIsShownOnceAndStoredNowhere(t *testing.T) {
	dir := t.TempDir()
	st, err := anystore.Open(t.Context(), filepath.Join(dir, "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := newGateScene(t, func(c *Config) { c.Store, c.Operator = st, ops.New(st, ops.Config{}) })
	s.store, s.operator = st, s.srv.cfg.Operator
	s.keys = map[string]string{"admin": s.makeKey(apikey.Request{Name: "canary", Scope: apikey.Admin})}
	made := s.ask("admin", "POST", "/v1/keys", `{"name":"second","scope":"viewer","reason":"a test"}`, "Content-Type", "application/json")
	at := strings.Index(made.body, "hf_")
	if made.status >= 300 || at < 0 {
		t.Fatal("the answer that makes a key shows it:", made.status, made.body)
	}
	s.keys["second"] = made.body[at : at+strings.IndexByte(made.body[at:], '"')]
	var answers strings.Builder
	for _, who := range []string{"admin", "second"} {
		for _, m := range s.srv.routes {
			a := s.try(who, m, strings.ReplaceAll(at2(m), "nobody", keyID(s.keys[who])))
			answers.WriteString(a.body + strings.Join(a.header.Values("Link"), ""))
		}
		for _, path := range []string{"/readyz", "/v1/jobs?key=" + s.keys[who], "/v1/jobs/" + s.keys[who], "/v1/nope/" + s.keys[who], "/v1/jobs?cursor=" + s.keys[who]} {
			answers.WriteString(strings.ReplaceAll(s.ask(who, "GET", path, "").body, path, ""))
		}
	}
	eventually(t, "the use of the key is written down", func() bool {
		keys, err := s.operator.Keys(t.Context())
		return err == nil && len(keys) == 2 && !keys[0].UsedAt.Equal(time.Time{})
	})
	places := map[string]string{"an answer": answers.String(), "the log": s.log.String()}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		places["the file "+filepath.Base(file)] = string(text)
	}
	for who, text := range s.keys {
		_, secret, _ := apikey.Parse(text)
		for place, said := range places {
			if strings.Contains(said, secret) {
				t.Errorf("the key %s is in %s", who, place)
			}
		}
	}
}

func at2(m mounted) string { return at(m, [16]byte{1}, [16]byte{2}) }

func holdfastFilter(owner string) store.Filter { return store.Filter{Owner: owner, Limit: 200} }

func TestReadOnlyFieldsCannotBeSet(t *testing.T) {
	s := newGateScene(t)
	job := s.job("bob")
	before := s.facts()
	for _, body := range []string{`{"state":"complete"}`, `{"token":9}`, `{"attempts":0}`, `{"failures":0}`, `{"owner":"eve"}`, `{"generation":7}`, `{"worker":"me"}`, `{"result":1}`, `{"finished_at":"2026-01-01T00:00:00Z"}`} {
		a := s.ask("operator", "PATCH", "/v1/jobs/"+job.String(), body, "Content-Type", "application/merge-patch+json")
		if a.status != http.StatusBadRequest {
			t.Errorf("PATCH %s: %d %s", body, a.status, a.body)
		}
		with := `{"kind":"mail",` + body[1:]
		if a := s.ask("operator", "POST", "/v1/jobs", with); a.status != http.StatusBadRequest && !strings.Contains(body, "owner") {
			t.Errorf("POST %s: %d %s", with, a.status, a.body)
		}
	}
	for _, who := range []string{"foreign"} {
		if a := s.ask(who, "POST", "/v1/jobs", `{"kind":"mail","owner":"bob"}`); a.status < 400 {
			t.Errorf("a bound key enqueued for somebody else: %d %s", a.status, a.body)
		}
		group := s.group("bob").String()
		if a := s.ask(who, "POST", "/v1/jobs", `{"kind":"mail","group":"`+group+`"}`); a.status != http.StatusNotFound {
			t.Errorf("a bound key put a job into a foreign group: %d %s", a.status, a.body)
		}
		if a := s.ask(who, "POST", "/v1/jobs/bulk", `[{"kind":"mail","group":"`+group+`"}]`); a.status < 400 {
			t.Errorf("a bound key put jobs into a foreign group: %d %s", a.status, a.body)
		}
		ndjson := `{"kind":"mail","group":"` + group + `"}` + "\n" + `{"kind":"mail","owner":"bob"}` + "\n"
		if a := s.ask(who, "POST", "/v1/jobs/bulk", ndjson, "Content-Type", "application/x-ndjson"); strings.Contains(a.body, `"id"`) {
			t.Errorf("a bound key streamed jobs into a foreign group: %d %s", a.status, a.body)
		}
	}
	jobs, _, err := s.store.Jobs(t.Context(), holdfastFilter("bob"))
	if after := s.facts(); err != nil || len(jobs) != 1 || !strings.Contains(after, strings.SplitN(before, "\n", 2)[0]) {
		t.Errorf("%v: before\n%s\nafter\n%s", err, before, after)
	}
	if a := s.ask("own", "POST", "/v1/jobs", `{"kind":"mail"}`); a.status >= 300 {
		t.Error("what is one's own may be enqueued:", a.status, a.body)
	}
	if jobs, _, _ := s.store.Jobs(t.Context(), holdfastFilter("bob")); len(jobs) != 2 {
		t.Error("a bound key's jobs belong to its owner:", len(jobs))
	}
}
