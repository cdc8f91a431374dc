package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/internal/api"
)

// FuzzRoutes sends any path, query and body to every route. None may be answered with an internal error.
func FuzzRoutes(f *testing.F) {
	for i, seed := range []string{`{}`, `[]`, `{"actor":"a","reason":"b"}`, `{"kind":"a"}`, `{"queue":"a","for":"1h"}`, `{"name":"x","scope":"viewer"}`, `{"renewals":[]}`, `{"settlements":[{}]}`, `null`, `"x"`, `{"limit":-1}`} {
		f.Add(uint(i*7), "nobody", "limit=5&cursor=x", seed)
	}
	s := newGateScene(f)
	f.Fuzz(func(t *testing.T, route uint, name, query, body string) {
		m := s.srv.routes[route%uint(len(s.srv.routes))]
		if m.long {
			return
		}
		path := api.Prefix + pathName.ReplaceAllLiteralString(m.path, "%s")
		r := httptest.NewRequest(m.method, "http://localhost/", strings.NewReader(body))
		r.URL.Path, r.URL.RawQuery = strings.ReplaceAll(path, "%s", name), query
		r.Header.Set("Authorization", "Bearer "+s.keys["admin"])
		w := httptest.NewRecorder()
		s.srv.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s %s?%q %q: %s", m.method, r.URL.Path, query, body, w.Body)
		}
	})
}

// FuzzBodies decodes any text as the body of every route.
func FuzzBodies(f *testing.F) {
	s := newGateScene(f)
	for _, seed := range []string{`{}`, `[]`, `[{}]`, `{"actor":"a"}`, `{"drafts":[{"kind":"a"}]}`, `{"delay":"1s","at":"2026-03-01T12:00:00Z"}`, `{"id":"01890a5d-ac96-774b-bcce-b302099a8057"}`, `1`, `{"body":{"a":[1]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, m := range s.srv.routes {
			in := reflect.New(reflect.TypeOf(m.in).Elem())
			body := in.Elem().FieldByName("Body")
			if !body.IsValid() {
				continue
			}
			if err := api.Unmarshal(text, body.Addr().Interface()); err != nil {
				if p := api.ProblemOf(err); p.Status != http.StatusBadRequest {
					t.Errorf("%s: %q: %v", m.name, text, err)
				}
				continue
			}
			if narrow, ok := in.Interface().(api.Narrower); ok {
				_ = narrow.Narrow("bob")
			}
			if joiner, ok := in.Interface().(api.Joiner); ok {
				_ = joiner.Joins()
			}
		}
	})
}

// FuzzCursors sends cursors that no page has returned.
func FuzzCursors(f *testing.F) {
	s := newGateScene(f)
	for range 3 {
		s.job("bob")
	}
	for _, seed := range []string{"", "x", "AAAA", "01890a5d-ac96-774b-bcce-b302099a8057", "9223372036854775807", "-1", "2026-03-01T12:00:00Z", "a,b", "%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, path := range []string{"jobs", "dead-letters", "groups", "tombstones", "errors", "audit", "deliveries"} {
			r := httptest.NewRequest("GET", "http://localhost/v1/"+path+"?limit=2&cursor="+url.QueryEscape(cursor), nil)
			r.Header.Set("Authorization", "Bearer "+s.keys["admin"])
			w := httptest.NewRecorder()
			s.srv.ServeHTTP(w, r)
			if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
				t.Errorf("%s after %q: %d %s", path, cursor, w.Code, w.Body)
			}
		}
	})
}
