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

// sessions holds the signed-in visitors of this process, in memory. A visitor who reaches another server, or this one after a restart, signs in again.
type sessions struct {
	mu  sync.Mutex
	all map[[32]byte]*session // by the hash of the cookie value
}

// A session stores the key of one visitor. The console checks the key again at every request, so that a revoked key opens nothing.
type session struct {
	key   string
	begun time.Time
	used  time.Time
}

const (
	sessionIdle  = 2 * time.Hour
	sessionWhole = 12 * time.Hour
	maxSessions  = 10_000
)

// visitorOf returns the visitor of a request. It returns errNotSignedIn if the visitor must sign in, a *forbidden error if Config.Who refuses them, and the
// error of Config.Open if the key could not be checked.
func (c *Console) visitorOf(r *http.Request) (Visitor, error) {
	switch {
	case c.cfg.Who != nil:
		visitor, err := c.cfg.Who(r)
		if err != nil {
			return Visitor{}, &forbidden{text: asSentence(err.Error()), cause: err}
		}
		return visitor, nil
	case c.cfg.Open == nil:
		return Visitor{Name: "local", Scope: apikey.Admin}, nil
	}
	text, signedIn := c.sessions.find(r, c.cookieOf(r).Name, time.Now())
	visitor, err := c.cfg.Open(r.Context(), r.RemoteAddr, text) // the text is empty without a session
	switch {
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrThrottled), r.Context().Err() != nil:
		return Visitor{}, err // the key may still be valid
	case err != nil:
		c.sessions.end(r, c.cookieOf(r).Name) // the key was revoked or has expired
		return Visitor{}, errNotSignedIn
	}
	visitor.signedIn = signedIn
	if visitor.Name == "" {
		visitor.Name = "local"
	}
	return visitor, nil
}

// keyless reports whether visitors need no key.
func (c *Console) keyless(r *http.Request) bool {
	if c.cfg.Open == nil {
		return true
	}
	_, err := c.cfg.Open(r.Context(), r.RemoteAddr, "")
	return err == nil
}

// cookieOf returns the session cookie without its value. Over TLS it has the __Host- prefix, so that no other site of the same domain can set it.
func (c *Console) cookieOf(r *http.Request) *http.Cookie {
	if c.secure(r) {
		return &http.Cookie{Name: "__Host-holdfast_session", Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	}
	return &http.Cookie{Name: "holdfast_session", Path: c.cfg.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// find returns the key of a session that has not ended, and records its use.
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

// begin creates a session and returns its cookie value. It also deletes the sessions that have ended; at maxSessions it deletes others too.
func (s *sessions) begin(text string, now time.Time) (cookie string) {
	cookie = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, one := range s.all {
		if now.Sub(one.used) > sessionIdle || now.Sub(one.begun) > sessionWhole || len(s.all) >= maxSessions {
			delete(s.all, hash)
		}
	}
	if s.all == nil {
		s.all = map[[32]byte]*session{}
	}
	s.all[sha256.Sum256([]byte(cookie))] = &session{key: text, begun: now, used: now}
	return cookie
}

// end deletes a session.
func (s *sessions) end(r *http.Request, name string) {
	if cookie, err := r.Cookie(name); err == nil {
		s.mu.Lock()
		delete(s.all, sha256.Sum256([]byte(cookie.Value)))
		s.mu.Unlock()
	}
}

// mountSession mounts the pages for signing in and out. They need no session.
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

// A signIn is the data of the sign-in page.
type signIn struct{ Back, Problem string }

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request, status int, problem string) {
	q := &request{Request: r, ctx: r.Context(), c: c, prefs: prefsOf(r, false), now: time.Now()}
	if c.keyless(r) {
		http.Redirect(w, r, c.cfg.Prefix+"/", http.StatusSeeOther)
		return
	}
	c.render(w, q, page{name: "sign-in", title: "Sign in", status: status, data: signIn{q.back(), problem}})
}

// signIn checks a key and starts a session.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	if c.keyless(r) || r.ParseForm() != nil {
		c.showSignIn(w, r, http.StatusBadRequest, "The form could not be read. Send it again.")
		return
	}
	q := &request{Request: r, c: c}
	text := q.text("key")
	visitor, err := c.cfg.Open(r.Context(), r.RemoteAddr, text)
	switch {
	case errors.Is(err, holdfast.ErrThrottled), errors.Is(err, holdfast.ErrUnavailable):
		c.renderError(w, r, err)
		return
	case err != nil:
		c.showSignIn(w, r, http.StatusUnauthorized, sentence(err))
		return
	case visitor.Owner != "" || visitor.Scope == apikey.Worker:
		c.showSignIn(w, r, http.StatusForbidden, "This key is bound to an owner, or is a worker key. It cannot open the console, which shows the jobs of all owners.")
		return
	}
	c.sessions.end(r, c.cookieOf(r).Name) // a cookie that was set before the sign-in is not reused
	fresh := c.cookieOf(r)
	fresh.Value, fresh.MaxAge = c.sessions.begin(text, time.Now()), int(sessionWhole.Seconds())
	http.SetCookie(w, fresh)
	http.Redirect(w, r, q.back(), http.StatusSeeOther)
}
