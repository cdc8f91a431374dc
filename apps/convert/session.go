package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/store"
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
		if errors.Is(err, badKey) && !a.badKeys.Allow(limit.Network(r.RemoteAddr)) {
			err = tooManyBadKeys
		}
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
	scheme, text, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", badKey
	}
	id, secret, err := apikey.Parse(strings.TrimSpace(text))
	if err != nil {
		return "", badKey
	}
	if !a.keys.knows(id) && a.badKeys.Exhausted(limit.Network(r.RemoteAddr)) {
		return "", tooManyBadKeys // without asking the store
	}
	k, err := a.keys.open(r.Context(), a.jobs, id, secret)
	if err != nil {
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

// A keyCache holds the API keys as they were at most half a second ago. So a check costs no read of the store, and every process refuses a revoked key within a second.
// The zero value is ready to use. It is safe for concurrent use.
type keyCache struct {
	last    atomic.Pointer[keySnapshot]
	reading sync.Mutex // held while the keys are read
}

// A keySnapshot is all keys, read at one time.
type keySnapshot struct {
	keys  map[string]apikey.Key
	begun time.Time
	ahead time.Duration // how far the store's clock is ahead of ours
}

const (
	keyCacheMaxAge  = 500 * time.Millisecond
	keyCachePause   = 100 * time.Millisecond // minimum time between two reads, however many unknown keys are sent
	keyCacheTimeout = 3 * time.Second        // for one read
)

// decoy is compared with unknown keys, so that refusing one takes as long as refusing a known one.
var decoy, _ = apikey.New(apikey.Request{Name: "decoy"}, time.Time{})

// open returns a valid key, or badKey. A key that is not in the cache may have been created a moment ago: then the keys are read again.
func (k *keyCache) open(ctx context.Context, from store.Maintainer, id, secret string) (apikey.Key, error) {
	now := time.Now()
	known, err := k.since(ctx, from, now.Add(-keyCacheMaxAge))
	if err == nil && known.keys[id].ID == "" {
		known, err = k.since(ctx, from, now.Add(1)) // a read that began after this call
	}
	if err != nil {
		return apikey.Key{}, err
	}
	found, there := known.keys[id]
	if !there {
		found = decoy
	}
	if opens := found.Accepts(secret, time.Now().Add(known.ahead)); !opens || !there {
		return apikey.Key{}, badKey
	}
	return found, nil
}

// knows reports whether a key existed when the keys were last read.
func (k *keyCache) knows(id string) bool {
	last := k.last.Load()
	return last != nil && last.keys[id].ID != ""
}

// since returns a snapshot whose read began at the given time or later. Concurrent callers share one read.
func (k *keyCache) since(ctx context.Context, from store.Maintainer, at time.Time) (*keySnapshot, error) {
	if last := k.last.Load(); last != nil && !last.begun.Before(at) {
		return last, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	last := k.last.Load()
	if last != nil && !last.begun.Before(at) {
		return last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyCacheTimeout)
	defer cancel()
	if last != nil {
		select {
		case <-time.After(keyCachePause - time.Since(last.begun)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	fresh := &keySnapshot{keys: map[string]apikey.Key{}, begun: time.Now()}
	records, err := from.Records(ctx, apikey.Namespace)
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		var one apikey.Key
		if json.Unmarshal(record.Body, &one) == nil && one.ID == record.Name {
			fresh.keys[one.ID] = one
			fresh.ahead = record.AsOf.Sub(fresh.begun)
		}
	}
	k.last.Store(fresh)
	return fresh, nil
}
