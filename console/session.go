package console

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// sessions are the visitors who signed in here. They are kept in memory: who meets another server, or the same after a restart, signs in again.
type sessions struct {
	mu  sync.Mutex
	all map[[32]byte]*session // by the hash of what is in the cookie
}

// A session is one visitor's. The key is looked at again at every request, so that a revoked one opens nothing.
type session struct {
	key   string
	begun time.Time
	used  time.Time
}

const (
	sessionIdle  = 2 * time.Hour
	sessionWhole = 12 * time.Hour
	mostSessions = 10_000
)

// who finds out who asks.
func (c *Console) who(r *http.Request) (Visitor, error) {
	switch {
	case c.cfg.Who != nil:
		visitor, err := c.cfg.Who(r)
		if err != nil {
			return Visitor{}, &forbidden{text: asSentence(err.Error()), kept: err}
		}
		return visitor, nil
	case c.cfg.Open == nil:
		return Visitor{Name: "local", Scope: apikey.Admin}, nil
	}
	text, signedIn := c.sessions.find(r, c.cookieOf(r).Name, time.Now())
	visitor, err := c.cfg.Open(r.Context(), r.RemoteAddr, text) // without a session: as a visitor without a key
	switch {
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrThrottled), r.Context().Err() != nil:
		return Visitor{}, err // nothing is said about the key
	case err != nil:
		c.sessions.end(r, c.cookieOf(r).Name) // it was revoked, and is not tried again
		return Visitor{}, errStranger
	}
	visitor.signedIn = signedIn
	if visitor.Name == "" {
		visitor.Name = "local"
	}
	return visitor, nil
}

// keyless reports whether visitors are let in without a key.
func (c *Console) keyless(r *http.Request) bool {
	if c.cfg.Open == nil {
		return true
	}
	_, err := c.cfg.Open(r.Context(), r.RemoteAddr, "")
	return err == nil
}

// cookieOf is the cookie of a session without its value: over TLS one that no other site of the same host can set.
func (c *Console) cookieOf(r *http.Request) *http.Cookie {
	if c.secure(r) {
		return &http.Cookie{Name: "__Host-holdfast_session", Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	}
	return &http.Cookie{Name: "holdfast_session", Path: c.cfg.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// find looks a session up and remembers that it was used.
func (s *sessions) find(r *http.Request, name string, now time.Time) (string, bool) {
	cookie, err := r.Cookie(name)
	if err != nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[sha256.Sum256([]byte(cookie.Value))]
	if one == nil || now.Sub(one.used) > sessionIdle || now.Sub(one.begun) > sessionWhole {
		return "", false
	}
	one.used = now
	return one.key, true
}

// begin makes a session. Those that are over make room.
func (s *sessions) begin(text string, now time.Time) (cookie string) {
	cookie = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, one := range s.all {
		if now.Sub(one.used) > sessionIdle || now.Sub(one.begun) > sessionWhole || len(s.all) >= mostSessions {
			delete(s.all, hash)
		}
	}
	if s.all == nil {
		s.all = map[[32]byte]*session{}
	}
	s.all[sha256.Sum256([]byte(cookie))] = &session{key: text, begun: now, used: now}
	return cookie
}

// end forgets a session.
func (s *sessions) end(r *http.Request, name string) {
	if cookie, err := r.Cookie(name); err == nil {
		s.mu.Lock()
		delete(s.all, sha256.Sum256([]byte(cookie.Value)))
		s.mu.Unlock()
	}
}

// mountSession mounts signing in and out. Both are for strangers too.
func (c *Console) mountSession() {
	c.mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
		c.showSignIn(w, r, http.StatusOK, "")
	})
	c.mux.HandleFunc("POST /sign-in", c.signIn)
	c.mux.HandleFunc("POST /sign-out", func(w http.ResponseWriter, r *http.Request) {
		c.sessions.end(r, c.cookieOf(r).Name)
		gone := c.cookieOf(r)
		gone.MaxAge = -1
		http.SetCookie(w, gone)
		http.Redirect(w, r, c.cfg.Prefix+"/sign-in", http.StatusSeeOther)
	})
}

// A signIn is what the page to sign in shows.
type signIn struct{ Back, Problem string }

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request, status int, problem string) {
	q := &ask{Request: r, ctx: r.Context(), c: c, prefs: prefsOf(r, false), now: time.Now()}
	if c.keyless(r) {
		http.Redirect(w, r, c.cfg.Prefix+"/", http.StatusSeeOther)
		return
	}
	c.show(w, q, page{name: "sign-in", title: "Sign in", status: status, data: signIn{q.back(), problem}})
}

// signIn lets in who has a key.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	if c.keyless(r) || r.ParseForm() != nil {
		c.showSignIn(w, r, http.StatusBadRequest, "The form cannot be read. Send it again.")
		return
	}
	q := &ask{Request: r, c: c}
	text := q.text("key")
	visitor, err := c.cfg.Open(r.Context(), r.RemoteAddr, text)
	switch {
	case errors.Is(err, holdfast.ErrThrottled), errors.Is(err, holdfast.ErrUnavailable):
		c.refuse(w, r, err)
		return
	case err != nil:
		c.showSignIn(w, r, http.StatusUnauthorized, sentence(err))
		return
	case visitor.Owner != "" || visitor.Scope == apikey.Worker:
		c.showSignIn(w, r, http.StatusForbidden, "This key is bound to an owner, or a worker's: it does not open these pages, which show everybody's jobs.")
		return
	}
	c.sessions.end(r, c.cookieOf(r).Name) // what a stranger may have put there is worth nothing
	fresh := c.cookieOf(r)
	fresh.Value, fresh.MaxAge = c.sessions.begin(text, time.Now()), int(sessionWhole.Seconds())
	http.SetCookie(w, fresh)
	http.Redirect(w, r, q.back(), http.StatusSeeOther)
}
