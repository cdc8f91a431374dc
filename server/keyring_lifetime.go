package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
)

// A keyLifetime is a context that lasts as long as a key keeps its rights. It ends when the key is revoked, expires or is changed, and with it end the requests of
// the key that wait or stream.
type keyLifetime struct {
	key apikey.Key
	ctx context.Context
	end context.CancelCauseFunc
}

// lifetimeOf returns the lifetime of a key that was just authenticated. While there are lifetimes, the keyring reads the keys continuously, so that the end of a key is
// noticed even when no other request arrives.
func (k *keyring) lifetimeOf(one apikey.Key) context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lifetimes[one.ID]
	if l == nil || !sameRights(l.key, one) {
		if len(k.lifetimes) == 0 && !k.isClosed() {
			k.work.Go(k.watch)
		}
		if l != nil {
			l.end(unauthenticated("this API key was changed: send the request again"))
		}
		l = &keyLifetime{key: one}
		l.ctx, l.end = context.WithCancelCause(context.Background())
		k.lifetimes[one.ID] = l
	}
	return l.ctx
}

// watch reads the keys every 250 ms until no lifetime is left or the keyring is closed.
func (k *keyring) watch() {
	for {
		select {
		case <-k.closed:
			return
		case <-time.After(keysRefreshAfter):
		}
		<-k.refresh().over
		k.mu.Lock()
		idle := len(k.lifetimes) == 0
		k.mu.Unlock()
		if idle {
			return
		}
	}
}

// endLifetimes ends the lifetimes of keys that are no longer valid or have changed.
func (k *keyring) endLifetimes(now *keySet) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, l := range k.lifetimes {
		if err := now.ended(l.key, k.locked.Load()); err != nil {
			l.end(err)
			delete(k.lifetimes, id)
		}
	}
}

// ended returns why a key is no longer what it was; nil if it is. Callers without a key are accepted until the first key is created.
func (r *keySet) ended(was apikey.Key, locked bool) error {
	is, there := r.keys[was.ID]
	switch {
	case was.ID == "" && locked:
		return unauthenticated("an API key was created, so every request needs one: create more with 'holdfast keys create'")
	case was.ID == "":
		return nil
	case !there || !is.RevokedAt.IsZero():
		return unauthenticated("this API key was revoked: ask an admin for a new one")
	case !is.Valid(time.Now().Add(r.ahead)):
		return unauthenticated("this API key has expired: ask an admin for a new one")
	case !sameRights(was, is.Key):
		return unauthenticated("this API key was changed: send the request again")
	}
	return nil
}

// sameRights reports whether two keys have the same scope and bindings.
func sameRights(a, b apikey.Key) bool {
	return a.Scope == b.Scope && a.Owner == b.Owner && slices.Equal(a.Queues, b.Queues) && slices.Equal(a.Kinds, b.Kinds)
}

// lock makes every caller need a key from now on, whatever becomes of the key records.
func (k *keyring) lock() {
	if !k.locked.Swap(true) && k.onLock != nil {
		k.onLock()
	}
}

// unlocked reports whether no key was ever created, as far as this process knows. If the keys cannot be read, it is an error: no caller is admitted then.
func (k *keyring) unlocked(ctx context.Context) (bool, error) {
	if k.locked.Load() {
		return false, nil
	}
	known, err := k.readSince(ctx, time.Now().Add(-keysMaxAge))
	if err == nil && time.Since(known.begun) > keysRefreshAfter {
		k.refresh()
	}
	return err == nil && !k.locked.Load(), err
}

// keyEnded is the cancellation cause of a request whose key has ended.
type keyEnded struct{ error }

// untilKeyEnds returns a context that also ends with the lifetime of the caller's key.
func (s *Server) untilKeyEnds(ctx context.Context, c Caller) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	lifetime := s.SessionContext(c)
	stop := context.AfterFunc(lifetime, func() { cancel(&keyEnded{context.Cause(lifetime)}) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// recheckKey authenticates the caller again if the body took longer than keysMaxAge to arrive: the key may have been revoked meanwhile.
func (s *Server) recheckKey(w http.ResponseWriter, r *http.Request, to mounted) error {
	if to.long || time.Since(replyOf(w).begun) < keysMaxAge {
		return nil
	}
	again, err := s.identify(r)
	if err == nil {
		err = again.may(to)
	}
	return err
}
