package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/internal/keyring"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A7: new sessions do not make a visitor's uploads more.
func TestUploadsAreLimitedForEachSessionAndAddress(t *testing.T) {
	d := openDoor(t, "", func(s *settings) { s.UploadsPerMinute = 3 })
	first, _ := newSession()
	taken := 0
	for i := range 5 {
		response, text := d.posts(t, first, strings.NewReader(smallPDF), "text")
		switch {
		case i < 3 && response.StatusCode >= 300:
			t.Errorf("upload %d: %d %s", i, response.StatusCode, text)
		case i >= 3 && (response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" || decode[refusalAnswer](t, text).Line == ""):
			t.Errorf("upload %d: %d %v %s", i, response.StatusCode, response.Header, text)
		}
	}
	for range 20 {
		session, _ := newSession()
		if response, _ := d.posts(t, session, strings.NewReader(smallPDF), "text"); response.StatusCode == http.StatusCreated {
			taken++
		}
	}
	if want := 3*addressFactor - 3; taken != want {
		t.Errorf("%d uploads of new sessions from one address were taken, want %d", taken, want)
	}
}

func TestOneVisitorCannotUseAllSlots(t *testing.T) {
	s := newScene(t, "", func(s *settings) { s.MaxUploads = 8 })
	join := func(owner, remote string) error {
		_, err := s.admitUpload(owner, remote)
		return err
	}
	for range 2 {
		if err := join("a", "192.0.2.1:1"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "a third upload of a session", join("a", "192.0.2.2:1"), error(tooManyOfOwner))
	for _, owner := range []string{"b", "c"} {
		if err := join(owner, "192.0.2.1:1"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "a fifth upload of an address", join("d", "192.0.2.1:1"), error(tooManyOfOwner))
	for _, owner := range []string{"e", "f", "g", "h"} {
		if err := join(owner, "192.0.2."+owner+":1"); err != nil { // addresses that cannot be read are one
			t.Fatal(err)
		}
	}
	expect(t, "a ninth upload", join("i", "192.0.2.9:1"), error(tooBusy))
}

func TestBadKeysAreSlowedAndGoodOnesAreNot(t *testing.T) {
	s := newScene(t, "")
	_, good := s.makes(apikey.Request{Scope: apikey.Operator, Owner: "bob"})
	_, unknown := apikey.New(apikey.Request{Name: "x", Scope: apikey.Admin}, time.Now())
	for _, bad := range []string{"Bearer " + unknown, "Bearer nonsense", "Basic x"} {
		s.keys = keyring.NewGate()
		owner, _, err := s.visit("GET", carries(good))
		last := 0
		for range keyring.BadKeysPerMinute + 5 {
			_, _, err := s.visit("GET", carries(bad))
			last = apiErrorOf(err).status
		}
		expect(t, "after many times "+bad, last, http.StatusTooManyRequests)
		if again, _, err2 := s.visit("GET", carries(good)); err != nil || err2 != nil || owner != "bob" || again != "bob" {
			t.Errorf("a good key from the same address: %q %v, and after that %q %v", owner, err, again, err2)
		}
	}
}

func TestOnlyKnownHostNamesAreServed(t *testing.T) {
	for _, c := range []struct {
		addr, hosts, host string
		known             bool
	}{
		{"127.0.0.1:4750", "", "127.0.0.1:4750", true}, {"127.0.0.1:4750", "", "localhost", true}, {"127.0.0.1:4750", "", "[::1]:4750", true}, {"127.0.0.1:4750", "", "LOCALHOST.:1", true},
		{"127.0.0.1:4750", "", "evil.example", false}, {"127.0.0.1:4750", "", "", false}, {"localhost:4750", "", "evil.example:4750", false}, {"[::1]:4750", "", "192.0.2.1", false},
		{"0.0.0.0:4750", "", "convert.example", true}, {":4750", "", "192.0.2.1", true},
		{":4750", "convert.example", "convert.example", true}, {":4750", "convert.example", "Convert.Example:443", true}, {":4750", "convert.example", "evil.example", false},
		{":4750", "convert.example", "evil.convert.example", false}, {":4750", "convert.example", "localhost", true}, {"127.0.0.1:4750", "convert.example", "convert.example", true},
	} {
		var hosts []string
		if c.hosts != "" {
			hosts = []string{c.hosts}
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if r.Host = c.host; web.KnownHost(r, hosts, c.addr) != c.known {
			t.Errorf("%+v: %v", c, !c.known)
		}
	}
	c := newCaller(t, newScene(t, "").served())
	for path, status := range map[string]int{"/": http.StatusMisdirectedRequest, "/api/jobs": http.StatusMisdirectedRequest, "/healthz": http.StatusOK, "/readyz": http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", c.at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "evil.example"
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status || len(response.Cookies()) > 0 {
			t.Errorf("%s: %d %v", path, response.StatusCode, response.Cookies())
		}
	}
}

func TestBehindATrustedProxyTheVisitorsAddressCounts(t *testing.T) {
	s := newScene(t, "", func(s *settings) { s.TrustProxy = true })
	handler, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	site := handler.(*webHandler)
	defer site.Close()
	seen := ""
	site.mux.HandleFunc("GET /address", func(_ http.ResponseWriter, r *http.Request) { seen = limit.Network(r.RemoteAddr).String() })
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/address", nil)
	r.Host = "localhost"
	r.Header.Set("X-Forwarded-For", "10.0.0.1, 198.51.100.7")
	site.ServeHTTP(httptest.NewRecorder(), r)
	expect(t, "the address", seen, "198.51.100.7")
}

// All processes on one store know each other's sessions.
func TestTheSessionKeyIsCreatedOncePerStore(t *testing.T) {
	jobs, err := anystore.Open(context.Background(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	var all [4]sessionKeyCache
	keys := make(chan sessionKey, len(all))
	for i := range all {
		go func() {
			s, err := all[i].read(context.Background(), jobs)
			if err != nil {
				t.Error(err)
			}
			keys <- s
		}()
	}
	first := <-keys
	for range len(all) - 1 {
		if s := <-keys; len(s) != sessionKeyBytes || !s.verify(first.newSession()) {
			t.Error("two processes have different session keys")
		}
	}
}
