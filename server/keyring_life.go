package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
)

// A life is the time for which a key keeps its rights. It ends when the key is revoked, expires or is changed; requests that wait or stream end with it.
type life struct {
	key apikey.Key
	ctx context.Context
	end context.CancelCauseFunc
}

// lifeOf is the life of a key that was opened a moment ago. While the keyring has handed out a life it reads the keys all the time, so that the end of a
// key is noticed also when no other request comes.
func (k *keyring) lifeOf(one apikey.Key) context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lives[one.ID]
	if l == nil || !sameRights(l.key, one) {
		if len(k.lives) == 0 && !k.isClosed() {
			k.work.Go(k.watch)
		}
		if l != nil {
			l.end(unauthenticated("this key was changed: ask again"))
		}
		l = &life{key: one}
		l.ctx, l.end = context.WithCancelCause(context.Background())
		k.lives[one.ID] = l
	}
	return l.ctx
}

// watch reads the keys again and again, until no life is left or the keyring is closed.
func (k *keyring) watch() {
	for {
		select {
		case <-k.closed:
			return
		case <-time.After(ringFresh):
		}
		<-k.refresh().over
		k.mu.Lock()
		idle := len(k.lives) == 0
		k.mu.Unlock()
		if idle {
			return
		}
	}
}

// endLives ends the lives that the keys as read now do not bear out.
func (k *keyring) endLives(now *ring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, l := range k.lives {
		if err := now.ended(l.key, k.locked.Load()); err != nil {
			l.end(err)
			delete(k.lives, id)
		}
	}
}

// ended is why a key is not any more what it was; nil: it still is. Callers without a key are let in until the first key is made.
func (r *ring) ended(was apikey.Key, locked bool) error {
	is, there := r.keys[was.ID]
	switch {
	case was.ID == "" && locked:
		return unauthenticated("a key was made, and every caller needs one since: 'holdfast keys create' makes more")
	case was.ID == "":
		return nil
	case !there || !is.RevokedAt.IsZero():
		return unauthenticated("this key was revoked: ask an admin for another")
	case !is.Good(time.Now().Add(r.ahead)):
		return unauthenticated("this key has expired: ask an admin for another")
	case !sameRights(was, is.Key):
		return unauthenticated("this key was changed: ask again")
	}
	return nil
}

// sameRights reports whether two keys may do the same.
func sameRights(a, b apikey.Key) bool {
	return a.Scope == b.Scope && a.Owner == b.Owner && slices.Equal(a.Queues, b.Queues) && slices.Equal(a.Kinds, b.Kinds)
}

// lock has every caller need a key from now on, whatever becomes of the key records.
func (k *keyring) lock() {
	if !k.locked.Swap(true) && k.onLock != nil {
		k.onLock()
	}
}

// unlocked reports whether no key was ever made, as far as this process knows. While the keys cannot be read it is an error: nobody is let in then.
func (k *keyring) unlocked(ctx context.Context) (bool, error) {
	if k.locked.Load() {
		return false, nil
	}
	known, err := k.since(ctx, time.Now().Add(-ringStale))
	if err == nil && time.Since(known.begun) > ringFresh {
		k.refresh()
	}
	return err == nil && !k.locked.Load(), err
}

// keyEnded is the cause for which a request ends whose key's life has ended.
type keyEnded struct{ error }

// during is a context that also ends with the life of the caller's key.
func (s *Server) during(ctx context.Context, c Caller) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	life := s.Life(c)
	stop := context.AfterFunc(life, func() { cancel(&keyEnded{context.Cause(life)}) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// stillMay looks at the key again when the body of a request was long in coming: it may have been revoked meanwhile.
func (s *Server) stillMay(w http.ResponseWriter, r *http.Request, to mounted) error {
	if to.long || time.Since(replyOf(w).begun) < ringStale {
		return nil
	}
	again, err := s.identify(r)
	if err == nil {
		err = again.may(to)
	}
	return err
}
