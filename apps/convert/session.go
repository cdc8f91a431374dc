package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/internal/keyring"
)

const (
	sessionCookie = "convert_session"
	sessionAge    = 400 * 24 * time.Hour // the longest that browsers keep a cookie; longer than any record is kept
)

// owner identifies the caller: by its API key, or by its session, which is created if there is none. A read-only key gets an error for anything but GET and HEAD. An
// invalid key is an error; the session is not used instead.
func (a *app) owner(w http.ResponseWriter, r *http.Request) (string, error) {
	if given := r.Header["Authorization"]; len(given) > 0 {
		owner, err := a.keyOwner(r, given)
		if errors.As(err, new(apiError)) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="convert"`)
		}
		return owner, err
	}
	key, err := a.sessionKey.read(r.Context(), a.jobs)
	if err != nil {
		return "", err
	}
	name := sessionCookie
	if a.overTLS(r) {
		name = "__Host-" + name // browsers accept it from this exact host only, over TLS
	}
	for _, c := range r.CookiesNamed(name) {
		if key.verify(c.Value) {
			return ownerOf(c.Value), nil
		}
	}
	value := key.newSession()
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(sessionAge / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: a.overTLS(r),
	})
	return ownerOf(value), nil
}

// ownerOf returns the owner of a session as the store knows it. It is a hash: the cookie cannot be derived from it.
func ownerOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "session:" + hex.EncodeToString(sum[:16])
}

func (a *app) overTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // as seen by the first proxy
	return r.TLS != nil || a.set.TrustProxy && strings.EqualFold(strings.TrimSpace(first), "https")
}

// keyOwner returns the owner for whom an API key acts: the one that it is bound to, or the key itself.
func (a *app) keyOwner(r *http.Request, given []string) (string, error) {
	k, err := a.keys.Bearer(r.Context(), a.jobs, given, r.RemoteAddr)
	switch {
	case errors.Is(err, keyring.ErrTooMany):
		return "", tooManyBadKeys
	case errors.Is(err, keyring.ErrInvalid):
		return "", badKey
	case err != nil:
		return "", err
	}
	needed := apikey.Operator
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		needed = apikey.Viewer
	}
	switch {
	case !k.Scope.Allows(needed):
		return "", readOnlyKey
	case k.Owner != "":
		return k.Owner, nil
	}
	return "key:" + k.ID, nil
}
