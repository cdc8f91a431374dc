package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/internal/fixture"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A scene is a console over a store with failures.
type scene struct {
	*fixture.Scene
	t    *testing.T
	site *httptest.Server
}

// newScene opens a console for a visitor with a scope.
func newScene(t *testing.T, scope apikey.Scope, say func(column, text string) string) *scene {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "holdfast.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	made, err := fixture.Make(t.Context(), store, say)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Scene: made, t: t}
	s.site = s.serve(console.Config{Who: func(*http.Request) (console.Visitor, error) { return console.Visitor{Name: "ada", Scope: scope}, nil }})
	return s
}

// serve opens another console over the same store.
func (s *scene) serve(cfg console.Config) *httptest.Server {
	s.t.Helper()
	cfg.Operator = s.Operator
	c, err := console.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	site := httptest.NewServer(c)
	s.t.Cleanup(func() { c.Close(); site.Close() })
	return site
}

// get fetches a page, and answers with its status and text.
func (s *scene) get(path string) (int, string) {
	s.t.Helper()
	response, err := s.site.Client().Get(s.site.URL + path)
	return s.read(response, err)
}

// post sends a form, and answers with the page that it led to.
func (s *scene) post(path string, form url.Values) (int, string) {
	s.t.Helper()
	client := *s.site.Client()
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		for _, cookie := range r.Response.Cookies() { // as a browser would
			r.AddCookie(cookie)
		}
		return nil
	}
	response, err := client.PostForm(s.site.URL+path, form)
	return s.read(response, err)
}

func (s *scene) read(response *http.Response, err error) (int, string) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// shows fails unless a page has all the words.
func (s *scene) shows(path string, words ...string) string {
	s.t.Helper()
	status, text := s.get(path)
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d", path, status)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			s.t.Errorf("%s does not show %q", path, word)
		}
	}
	return text
}
