package account

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/internal/limit"
)

// An Identity is who makes a request, and what the request may do.
type Identity struct {
	User         User
	Organisation string // whose data the request sees
	Role         Role   // of the user in it
	Scopes       []Scope
	Session      string // id of the session; empty for an API key
	Key, KeyName string // id and name of the API key; empty for a session

	token string // of the session
}

// May reports whether a request may do what needs a scope.
func (id Identity) May(scope Scope) bool {
	if scope == Operate && !id.User.Operator {
		return false
	}
	return slices.Contains(id.Scopes, scope)
}

// Name returns who makes the request, for logs that people read.
func (id Identity) Name() string {
	if id.Key != "" {
		return id.User.Email + " (API key " + id.KeyName + ")"
	}
	return id.User.Email
}

// cookieName returns the name of the cookie with the session. Browsers do not separate cookies by port, so applications on one host need different names.
func (s *Service) cookieName() string { return s.cfg.KeyPrefix + "_session" }

// Bearer opens the API key of a request. The error is ErrNoIdentity if there is none or it is not valid, or ErrTooMany.
func (s *Service) Bearer(ctx context.Context, r *http.Request) (Identity, error) {
	given := r.Header["Authorization"]
	if len(given) != 1 {
		return Identity{}, ErrNoIdentity
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Identity{}, ErrNoIdentity
	}
	return s.OpenKey(ctx, strings.TrimSpace(text), limit.Network(r.RemoteAddr))
}

// Visitor opens the session of a request. The error is ErrNoIdentity if there is none.
func (s *Service) Visitor(ctx context.Context, r *http.Request) (Identity, error) {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return Identity{}, ErrNoIdentity
	}
	return s.OpenSession(ctx, cookie.Value)
}

// SetCookie gives a browser the token of a session; an empty token takes it away. The cookie is marked as secure if the request came by HTTPS.
func (s *Service) SetCookie(w http.ResponseWriter, r *http.Request, token string) {
	secure := r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	cookie := &http.Cookie{Name: s.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode, MaxAge: int(s.cfg.SessionLife / time.Second)}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// Status returns the HTTP status that answers an error of this package, and 0 for other errors.
func Status(err error) int {
	for known, status := range map[error]int{
		ErrInvalid: http.StatusBadRequest, ErrTaken: http.StatusConflict, ErrCredentials: http.StatusUnauthorized, ErrTooMany: http.StatusTooManyRequests,
		ErrNotFound: http.StatusNotFound, ErrForbidden: http.StatusForbidden, ErrLastAdmin: http.StatusConflict, ErrNoIdentity: http.StatusUnauthorized, ErrForgery: http.StatusForbidden,
	} {
		if errors.Is(err, known) {
			return status
		}
	}
	return 0
}
