package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// visit identifies the caller of a request. It also returns the cookie that was set, if any.
func (s *scene) visit(method string, dress func(*http.Request)) (owner string, set *http.Cookie, err error) {
	r := httptest.NewRequest(method, "/api/jobs", nil)
	if dress != nil {
		dress(r)
	}
	w := httptest.NewRecorder()
	owner, err = s.owner(w, r)
	if all := w.Result().Cookies(); len(all) > 0 {
		set = all[0]
	}
	return owner, set, err
}

func wears(values ...string) func(*http.Request) {
	return func(r *http.Request) {
		for _, v := range values {
			r.Header.Add("Cookie", sessionCookie+"="+v)
		}
	}
}

func carries(keys ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header["Authorization"] = keys }
}

func TestAFirstVisitBeginsASession(t *testing.T) {
	s := newScene(t, "")
	owner, set, err := s.visit("GET", nil)
	if err != nil || set == nil || set.Name != sessionCookie || !set.HttpOnly || set.SameSite != http.SameSiteLaxMode || set.Secure || set.Path != "/" || set.MaxAge < 30*24*3600 || len(set.Value) < 22 {
		t.Fatalf("%q %+v %v", owner, set, err)
	}
	if !strings.HasPrefix(owner, "session:") || len(owner) != len("session:")+32 || strings.Contains(owner, set.Value) {
		t.Errorf("the owner is %q", owner)
	}
	again, second, err := s.visit("POST", wears(set.Value))
	if err != nil || again != owner || second != nil {
		t.Errorf("a second visit: %q %+v %v", again, second, err)
	}
	if other, _, _ := s.visit("GET", nil); other == owner {
		t.Error("two visitors are one")
	}
	if stolen, set, _ := s.visit("GET", wears(strings.TrimPrefix(owner, "session:"))); stolen == owner || set == nil {
		t.Error("what the store holds opens the session")
	}
}

func TestACookieWithoutAValidSignatureIsReplaced(t *testing.T) {
	s := newScene(t, "")
	good, owner := newSession()
	other := sessionKey(bytes.Repeat([]byte{8}, sessionKeyBytes)).newSession() // of another store
	planted := strings.Repeat("A", 43)                                         // long enough, and without a signature
	for _, bad := range []string{"", "x", other, planted, planted + ".", planted + "." + strings.Repeat("A", 22), "../../etc/passwd", good[:42], good + "A", good[:42] + "!", "session:0123", strings.Repeat("A", 10_000), good[:42] + "="} {
		if got, set, err := s.visit("GET", wears(bad)); err != nil || set == nil || set.Value == bad || !testSessionKey.verify(set.Value) || got != ownerOf(set.Value) {
			t.Errorf("%.50q: %q %v %v", bad, got, set, err)
		}
		if got, set, err := s.visit("GET", wears(bad, good, bad)); err != nil || set != nil || got != owner {
			t.Errorf("%.50q and a good one: %q %v %v", bad, got, set, err)
		}
	}
}

func TestACookieOfATLSRequestIsSecure(t *testing.T) {
	s := newScene(t, "")
	forwarded := func(proto string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", proto) }
	}
	for _, c := range []struct {
		trust  bool
		dress  func(*http.Request)
		secure bool
	}{
		{false, nil, false}, {false, func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, true}, {false, forwarded("https"), false},
		{true, forwarded("https"), true}, {true, forwarded("HTTPS, http"), true}, {true, forwarded("http"), false}, {true, nil, false},
	} {
		s.app.set.TrustProxy = c.trust
		_, set, err := s.visit("GET", c.dress)
		if err != nil || set.Secure != c.secure || strings.HasPrefix(set.Name, "__Host-") != c.secure {
			t.Errorf("%+v: %v %v", c, set, err)
		}
	}
}

// makes creates a key and returns the header to send.
func (s *scene) makes(o apikey.Request) (id, header string) {
	s.Helper()
	o.Name = "test"
	k, text, err := s.operator.CreateKey(context.Background(), o, ops.Actor{Name: "test"})
	if err != nil {
		s.Fatal(err)
	}
	return k.ID, "Bearer " + text
}

func TestAKeyActsForItsOwnerOrForItself(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		for _, c := range []struct {
			order       apikey.Request
			looks, acts bool
		}{
			{apikey.Request{Scope: apikey.Viewer, Owner: "bob"}, true, false}, {apikey.Request{Scope: apikey.Operator, Owner: "bob"}, true, true}, {apikey.Request{Scope: apikey.Viewer}, true, false},
			{apikey.Request{Scope: apikey.Operator}, true, true}, {apikey.Request{Scope: apikey.Admin}, true, true}, {apikey.Request{Scope: apikey.Worker}, false, false},
		} {
			id, header := s.makes(c.order)
			want := c.order.Owner
			if want == "" {
				want = "key:" + id
			}
			for method, allowed := range map[string]bool{"GET": c.looks, "HEAD": c.looks, "POST": c.acts, "DELETE": c.acts} {
				owner, set, err := s.visit(method, carries(header))
				if allowed && (err != nil || owner != want) || !allowed && (err == nil || owner != "" || apiErrorOf(err).status != http.StatusForbidden) || set != nil {
					t.Errorf("%s with %+v: %q %v %v", method, c.order, owner, set, err)
				}
			}
		}
	})
}

func TestAnInvalidKeyIsRefusedAndStartsNoSession(t *testing.T) {
	s := newScene(t, "")
	_, good := s.makes(apikey.Request{Scope: apikey.Operator, Owner: "bob"})
	_, unknown := apikey.New(apikey.Request{Name: "x", Scope: apikey.Admin}, time.Now())
	session, _ := newSession()
	for _, given := range [][]string{
		{""}, {"Bearer"}, {"Bearer "}, {"Basic dXNlcjpwYXNz"}, {strings.TrimPrefix(good, "Bearer ")}, {good + "0"}, {good[:len(good)-1]}, {"Bearer " + unknown}, {good, good}, {"Bearer hf_a_b_c"},
		{"Bearer " + strings.Repeat("x", 100_000)},
	} {
		owner, set, err := s.visit("GET", func(r *http.Request) { wears(session)(r); carries(given...)(r) })
		if answer := apiErrorOf(err); owner != "" || set != nil || answer.status != http.StatusUnauthorized || answer.code != codeForbidden || strings.Contains(answer.line, "hf_a") {
			t.Errorf("%.60q: %q %v %v", given, owner, set, err)
		}
	}
	if owner, _, err := s.visit("GET", carries(strings.Replace(good, "Bearer ", "bearer  ", 1))); err != nil || owner != "bob" {
		t.Errorf("spelled differently: %q %v", owner, err)
	}
}

func TestAKeyThatIsRevokedOrHasExpiredIsRefusedWithinASecond(t *testing.T) {
	tell(t, func(s *scene) {
		id, header := s.makes(apikey.Request{Scope: apikey.Operator, Owner: "bob"})
		_, brief := s.makes(apikey.Request{Scope: apikey.Operator, Owner: "eve", ExpireIn: time.Minute})
		for _, h := range []string{header, brief} {
			if _, _, err := s.visit("POST", carries(h)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.operator.RevokeKey(context.Background(), id, ops.Actor{Name: "test"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if _, _, err := s.visit("POST", carries(header)); apiErrorOf(err).status != http.StatusUnauthorized {
			t.Errorf("revoked: %v", err)
		}
		_, fresh := s.makes(apikey.Request{Scope: apikey.Operator, Owner: "zoe"})
		if owner, _, err := s.visit("POST", carries(fresh)); err != nil || owner != "zoe" {
			t.Errorf("made a moment ago: %q %v", owner, err)
		}
		<-time.After(time.Minute)
		if _, _, err := s.visit("POST", carries(brief)); apiErrorOf(err).status != http.StatusUnauthorized {
			t.Errorf("expired: %v", err)
		}
	})
}

func TestUnreadableKeysAreRefused(t *testing.T) {
	s := newScene(t, "")
	_, header := s.makes(apikey.Request{Scope: apikey.Operator, Owner: "bob"})
	s.faulty.Plan(storetest.Fault{Verb: "Records", Always: true})
	owner, _, err := s.visit("GET", carries(header))
	if answer := apiErrorOf(err); owner != "" || !errors.Is(err, holdfast.ErrUnavailable) || answer.status != http.StatusServiceUnavailable {
		t.Errorf("%q %v", owner, err)
	}
	s.faulty.Plan()
	if owner, _, err = s.visit("GET", carries(header)); err != nil || owner != "bob" {
		t.Errorf("afterwards: %q %v", owner, err)
	}
}
