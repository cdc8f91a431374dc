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

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/limit"
)

const (
	sessionCookie = "convert_session"
	sessionAge    = 400 * 24 * time.Hour // as long as browsers keep a cookie; it outlives every record
)

// owner tells who asks: the holder of an API key, or else a session, which is begun where there is none. Who may only look gets an error for anything but
// looking. A key that does not open is an error too, and never a session instead.
func (a *app) owner(w http.ResponseWriter, r *http.Request) (string, error) {
	if given := r.Header["Authorization"]; len(given) > 0 {
		owner, err := a.holder(r, given)
		if errors.Is(err, badKey) && !a.badKeys.Allow(limit.Network(r.RemoteAddr)) {
			err = tooManyBadKeys
		}
		if errors.As(err, new(fault)) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="convert"`)
		}
		return owner, err
	}
	seal, err := a.seal.read(r.Context(), a.jobs)
	if err != nil {
		return "", err
	}
	name := sessionCookie
	if a.overTLS(r) {
		name = "__Host-" + name // browsers take it from this very host alone, over TLS
	}
	for _, c := range r.CookiesNamed(name) {
		if seal.fits(c.Value) {
			return ownerOf(c.Value), nil
		}
	}
	value := seal.session()
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(sessionAge / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: a.overTLS(r),
	})
	return ownerOf(value), nil
}

// ownerOf is what the store knows a session by. It opens nothing: nobody can get from it to the cookie.
func ownerOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "session:" + hex.EncodeToString(sum[:16])
}

func (a *app) overTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // as the first proxy saw it
	return r.TLS != nil || a.set.TrustProxy && strings.EqualFold(strings.TrimSpace(first), "https")
}

// holder tells whom the holder of a key acts for: the owner that the key is bound to, or itself.
func (a *app) holder(r *http.Request, given []string) (string, error) {
	scheme, text, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", badKey
	}
	id, secret, err := apikey.Parse(strings.TrimSpace(text))
	if err != nil {
		return "", badKey
	}
	if !a.keys.knows(id) && a.badKeys.Exhausted(limit.Network(r.RemoteAddr)) {
		return "", tooManyBadKeys // the store is not asked
	}
	k, err := a.keys.open(r.Context(), a.jobs, id, secret)
	if err != nil {
		return "", err
	}
	asked := apikey.Operator
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		asked = apikey.Viewer
	}
	switch {
	case !k.Scope.Allows(asked):
		return "", onlyLooks
	case k.Owner != "":
		return k.Owner, nil
	}
	return "key:" + k.ID, nil
}

// A keyring knows the keys as they were a moment ago: so asking costs nothing, and what is revoked is refused within a second by every process.
// The zero value is ready.
type keyring struct {
	last atomic.Pointer[ring]
	turn sync.Mutex // of those who read
}

// A ring is what was read at one time.
type ring struct {
	keys  map[string]apikey.Key
	begun time.Time
	ahead time.Duration // the store's clock, seen from ours
}

const (
	keyringFresh  = 500 * time.Millisecond // older than this it is read again
	keyringPause  = 100 * time.Millisecond // between two readings, however many unknown keys come
	keyringWithin = 3 * time.Second        // for one reading
)

// decoy is what an unknown key is compared with, so that it takes as long as a known one.
var decoy, _ = apikey.Make(apikey.Order{Name: "decoy"}, time.Time{})

// open finds a key, and refuses one that is not good. One that is not there may have been made a moment ago: then the store is asked again.
func (k *keyring) open(ctx context.Context, from holdfast.Keeper, id, secret string) (apikey.Key, error) {
	now := time.Now()
	known, err := k.since(ctx, from, now.Add(-keyringFresh))
	if err == nil && known.keys[id].ID == "" {
		known, err = k.since(ctx, from, now.Add(1)) // begun later than that we were asked
	}
	if err != nil {
		return apikey.Key{}, err
	}
	found, there := known.keys[id]
	if !there {
		found = decoy
	}
	if opens := found.Opens(secret, time.Now().Add(known.ahead)); !opens || !there {
		return apikey.Key{}, badKey
	}
	return found, nil
}

// knows reports whether a key was there when the keys were last read.
func (k *keyring) knows(id string) bool {
	last := k.last.Load()
	return last != nil && last.keys[id].ID != ""
}

// since answers with what was read at that time or later. Those who ask at once are served by one reading.
func (k *keyring) since(ctx context.Context, from holdfast.Keeper, at time.Time) (*ring, error) {
	if last := k.last.Load(); last != nil && !last.begun.Before(at) {
		return last, nil
	}
	k.turn.Lock()
	defer k.turn.Unlock()
	last := k.last.Load()
	if last != nil && !last.begun.Before(at) {
		return last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyringWithin)
	defer cancel()
	if last != nil {
		select {
		case <-time.After(keyringPause - time.Since(last.begun)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	fresh := &ring{keys: map[string]apikey.Key{}, begun: time.Now()}
	records, err := from.Records(ctx, apikey.Room)
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
