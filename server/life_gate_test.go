package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// waitLocked waits until callers without a key are refused, which must be so within a second.
func (s *gateScene) waitLocked(what string) {
	s.t.Helper()
	for begun := time.Now(); ; {
		asked := time.Now()
		if a := s.ask("", "GET", "/v1/keys", ""); a.status == http.StatusUnauthorized {
			return
		}
		if asked.Sub(begun) > time.Second {
			s.t.Fatalf("%s: a caller without a key is still let in after %v", what, asked.Sub(begun))
		}
	}
}

func openUntilKeys(c *Config) { c.Open = true }

func TestTheFirstKeyLocksAServerThatRuns(t *testing.T) {
	for what, makeFirst := range map[string]func(s *gateScene){
		"made on the machine of the store": func(s *gateScene) { s.makeKey(apikey.Request{Name: "ada", Scope: apikey.Admin}) },
		"made over HTTP": func(s *gateScene) {
			if a := s.ask("", "POST", "/v1/keys", `{"name":"ada","scope":"admin"}`); a.status != http.StatusCreated {
				s.t.Fatal(a.status, a.body)
			}
			if a := s.ask("", "GET", "/v1/keys", ""); a.status != http.StatusUnauthorized {
				s.t.Error("the server that made the key does not ask for it at once:", a.status)
			}
		},
	} {
		s := newBareScene(t, openUntilKeys)
		if a := s.ask("", "GET", "/v1/keys", ""); a.status != http.StatusOK {
			t.Fatal(a.status, a.body)
		}
		if who, err := s.srv.Authenticate(t.Context(), "127.0.0.1:9", ""); err != nil || who.Scope != apikey.Admin {
			t.Fatal("a visitor of the pages:", who, err)
		}
		makeFirst(s)
		s.waitLocked(what)
		if _, err := s.srv.Authenticate(t.Context(), "127.0.0.1:9", ""); err == nil {
			t.Error(what + ": a visitor of the pages is let in without a key")
		}
		if !strings.Contains(s.log.String(), "every request needs one") {
			t.Error(what+": the log does not say it:", s.log.String())
		}
	}
}

func TestAServerThatWasLockedStaysLockedWhenItsKeysAreGone(t *testing.T) {
	s := newBareScene(t, openUntilKeys)
	id := keyID(s.makeKey(apikey.Request{Name: "ada", Scope: apikey.Admin}))
	s.waitLocked("after the first key")
	if err := s.operator.RevokeKey(t.Context(), id, me); err != nil {
		t.Fatal(err)
	}
	records, err := s.store.Records(t.Context(), apikey.Namespace)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	records[0].Body = nil
	if err := s.store.Apply(t.Context(), store.Change{Records: records}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.srv.keys.readSince(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if a := s.ask("", "GET", "/v1/keys", ""); a.status != http.StatusUnauthorized {
		t.Error("without its keys the server is open again:", a.status, a.body)
	}
}

func TestAnOpenServerAdmitsNoCallerWhileKeysCannotBeRead(t *testing.T) {
	var blind *blindStore
	s := newBareScene(t, openUntilKeys, func(c *Config) { blind = &blindStore{Store: c.Store}; c.Store = blind })
	blind.blind.Store(true)
	if a := s.ask("", "GET", "/v1/jobs", ""); a.status != http.StatusServiceUnavailable {
		t.Error(a.status, a.body)
	}
}

func TestWithoutKeysRequestsThroughAProxyAreRefused(t *testing.T) {
	s := newBareScene(t, openUntilKeys)
	proxies := []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "x-forwarded-proto", "X-Forwarded", "Via", "X-Real-Ip", "x-real-ip", "True-Client-IP", "CF-Connecting-IP", "Client-IP", "Forwarded-For",
		"X-ProxyUser-Ip", "CDN-Loop"}
	for _, name := range proxies {
		for _, path := range []string{"/v1/jobs", "/livez", "/docs"} {
			a := s.ask("", "GET", path, "", name, "for=192.0.2.1")
			if a.status != http.StatusForbidden || !strings.Contains(a.body, "holdfast keys create") {
				t.Errorf("%s with %s: %d %s", path, name, a.status, a.body)
			}
		}
	}
	s.keys["ada"] = s.makeKey(apikey.Request{Name: "ada", Scope: apikey.Admin})
	s.waitLocked("after the first key")
	for _, name := range proxies {
		if a := s.ask("ada", "GET", "/v1/jobs", "", name, "for=192.0.2.1"); a.status != http.StatusOK {
			t.Errorf("with a key, through a proxy (%s): %d %s", name, a.status, a.body)
		}
	}
}

func TestBehindATLSProxyBrowsersUseOnlyTLS(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		s := newGateScene(t, func(c *Config) { c.TrustProxy = trusted })
		for proto, want := range map[string]bool{"https": trusted, "http": false, "": false} {
			a := s.ask("viewer", "GET", "/v1/jobs", "", "X-Forwarded-Proto", proto)
			if got := a.header.Get("Strict-Transport-Security") != ""; got != want {
				t.Errorf("trusted %v, X-Forwarded-Proto %q: Strict-Transport-Security is there: %v, want %v", trusted, proto, got, want)
			}
		}
	}
}

// keyEndings are the ways in which a key loses its rights.
func (s *gateScene) keyEndings() map[string]func(text string) {
	once := func(text string, do func(k *apikey.Key)) error {
		records, err := s.store.Records(s.t.Context(), apikey.Namespace)
		for _, r := range records {
			var k apikey.Key
			if r.Name == keyID(text) && json.Unmarshal(r.Body, &k) == nil {
				do(&k)
				r.Body, _ = json.Marshal(k)
				err = s.store.Apply(s.t.Context(), store.Change{Records: []store.Record{r}})
			}
		}
		return err
	}
	change := func(do func(k *apikey.Key)) func(string) {
		return func(text string) {
			eventually(s.t, "the key is changed", func() bool { return once(text, do) == nil }) // the time of use may be written at the same moment
		}
	}
	return map[string]func(string){
		"revoked": func(text string) {
			if err := s.operator.RevokeKey(s.t.Context(), keyID(text), me); err != nil {
				s.t.Fatal(err)
			}
		},
		"expired":            change(func(k *apikey.Key) { k.ExpireAt = k.CreatedAt }),
		"of another scope":   change(func(k *apikey.Key) { k.Scope = apikey.Viewer }),
		"bound to a new one": change(func(k *apikey.Key) { k.Queues = []string{"other"} }),
	}
}

// openStream sends a request that waits or streams, and returns the response.
func (s *gateScene) openStream(text, method, path, kind string, body io.Reader) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if r.Header.Set("Content-Type", kind); text != "" {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// An event stream never ends by itself: the test passes when the read ends.
func TestAStreamOfEventsEndsWithItsKey(t *testing.T) {
	s := newBareScene(t)
	for how, end := range s.keyEndings() {
		text := s.makeKey(apikey.Request{Name: "streams", Scope: apikey.Operator})
		response := s.openStream(text, "GET", "/v1/events", "", nil)
		if response.StatusCode != http.StatusOK {
			t.Fatal(how, response.Status)
		}
		end(text)
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Error(how, err)
		}
	}
}

func TestABulkStreamEnqueuesNothingAfterItsKeyHasEnded(t *testing.T) {
	s := newBareScene(t)
	for how, end := range s.keyEndings() {
		text := s.makeKey(apikey.Request{Name: "bulk", Scope: apikey.Worker})
		from, to := io.Pipe()
		go func() { _, _ = io.WriteString(to, `{"kind":"mail"}`+"\n") }()
		response := s.openStream(text, "POST", "/v1/jobs/bulk", "application/x-ndjson", from)
		lines := bufio.NewReader(response.Body)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"id"`) {
			t.Fatal(how, line, err)
		}
		end(text)
		rest, _ := io.ReadAll(lines)
		if !strings.Contains(string(rest), "unauthenticated") {
			t.Errorf("%s: the stream ends with %s", how, rest)
		}
		_ = to.Close()
	}
}

func TestWaitingForWorkEndsWithTheKey(t *testing.T) {
	s := newBareScene(t)
	for how, end := range s.keyEndings() {
		text := s.makeKey(apikey.Request{Name: "waits", Scope: apikey.Worker})
		answered := make(chan answerSeen, 1)
		s.keys["waits"] = text
		go func() {
			answered <- s.ask("waits", "POST", "/v1/wakes", `{"queues":["none"],"patience":"1h"}`)
		}()
		eventually(t, "it waits", func() bool { return s.srv.streams.count() == 1 })
		end(text)
		if a := <-answered; a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s %v", how, a.status, a.body, a.err)
		}
		eventually(t, "it waits no more", func() bool { return s.srv.streams.count() == 0 })
	}
}

func TestStreamsOfCallersWithoutAKeyEndWhenTheFirstKeyIsCreated(t *testing.T) {
	s := newBareScene(t, openUntilKeys)
	response := s.openStream("", "GET", "/v1/events", "", nil)
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	s.makeKey(apikey.Request{Name: "ada", Scope: apikey.Admin})
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
}

// A slow body is refused if its key was revoked while it arrived.
func TestASlowBodyIsRefusedIfItsKeyHasEnded(t *testing.T) {
	s := newBareScene(t)
	text := s.makeKey(apikey.Request{Name: "slow", Scope: apikey.Worker})
	s.keys["slow"] = text
	from, to := io.Pipe()
	answered, begun := make(chan int, 1), time.Now()
	go func() { answered <- s.openStream(text, "POST", "/v1/jobs", "application/json", from).StatusCode }()
	if _, err := io.WriteString(to, `{"kind":`); err != nil {
		t.Fatal(err)
	}
	if err := s.operator.RevokeKey(t.Context(), keyID(text), me); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server knows", func() bool { return s.ask("slow", "GET", "/v1/jobs", "").status == http.StatusUnauthorized })
	eventually(t, "the body is late", func() bool { return time.Since(begun) > 3*keysMaxAge })
	_, _ = io.WriteString(to, `"mail"}`)
	_ = to.Close()
	if status := <-answered; status != http.StatusUnauthorized {
		t.Error("it was taken:", status)
	}
}

func TestTheLifetimeOfAVisitorEndsWithTheKey(t *testing.T) {
	s := newBareScene(t)
	text := s.makeKey(apikey.Request{Name: "looks", Scope: apikey.Viewer})
	who, err := s.srv.Authenticate(t.Context(), "192.0.2.1:1", text)
	if err != nil {
		t.Fatal(err)
	}
	life := s.srv.SessionContext(who)
	if life.Err() != nil {
		t.Fatal(context.Cause(life))
	}
	if err := s.operator.RevokeKey(t.Context(), keyID(text), me); err != nil {
		t.Fatal(err)
	}
	<-life.Done()
	if cause := context.Cause(life); !strings.Contains(cause.Error(), "revoked") {
		t.Error(cause)
	}
	eventually(t, "nothing is read for nobody", func() bool {
		s.srv.keys.mu.Lock()
		defer s.srv.keys.mu.Unlock()
		return len(s.srv.keys.lifetimes) == 0
	})
}
