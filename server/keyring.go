package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/apikey"
)

// A keyring knows the keys that are in the store, as they were a moment ago: so asking costs nothing, and what is revoked is refused within a
// second by every server.
type keyring struct {
	store  ledger
	last   atomic.Pointer[ring]
	locked atomic.Bool // a key record was seen: from then on every caller needs a key, also after the records are gone
	onLock func()      // called once, when locked becomes true

	mu      sync.Mutex
	reading *reading
	used    map[string]time.Time // when the use of a key was last written down from here
	lives   map[string]*life     // by the key's id; "" is the life of callers without a key
	closed  chan struct{}
	work    sync.WaitGroup
}

func newKeyring(store ledger, onLock func()) *keyring {
	return &keyring{store: store, onLock: onLock, used: map[string]time.Time{}, lives: map[string]*life{}, closed: make(chan struct{})}
}

// A ledger keeps records. Every store is one.
type ledger interface {
	Records(ctx context.Context, room string) ([]holdfast.Record, error)
	Keep(ctx context.Context, c holdfast.Change) error
}

// A ring is what the keyring read at one time.
type ring struct {
	keys  map[string]kept
	begun time.Time     // when the reading began: what was kept before is in it
	ahead time.Duration // the store's clock, seen from ours
}

type kept struct {
	apikey.Key
	record holdfast.Record
}

// A reading is one look into the store.
type reading struct {
	over  chan struct{}
	begun time.Time
	err   error
}

const (
	ringFresh  = 250 * time.Millisecond // older than this it is read again, while it still serves
	ringStale  = 500 * time.Millisecond // older than this it does not serve
	ringPause  = 100 * time.Millisecond // between two readings, however many unknown keys come
	ringWithin = 3 * time.Second        // for one reading
	usedEvery  = time.Minute
)

// decoy is what an unknown key is compared with, so that it takes as long as a known one.
var decoy, _ = apikey.Make(apikey.Order{Name: "decoy"}, time.Time{})

// look compares a key with what is known, and answers whether it is there at all. One that is good comes without an error.
func (r *ring) look(id, secret string) (k kept, there bool, err error) {
	k, there = r.keys[id]
	if !there {
		k.Key = decoy
	}
	same := k.Is(secret)
	switch {
	case !there || !same:
		return kept{}, false, unauthenticated("no such key: make one with 'holdfast keys create', and copy it whole")
	case !k.RevokedAt.IsZero():
		return kept{}, true, unauthenticated("this key was revoked: ask an admin for another")
	case !k.Good(time.Now().Add(r.ahead)):
		return kept{}, true, unauthenticated("this key has expired: ask an admin for another")
	}
	return k, true, nil
}

func unauthenticated(message string) error {
	return &holdfast.Error{Kind: api.ErrUnauthenticated, Message: message}
}

// open finds the key that a text is. One that is not there is looked for once more in what the store says now, if again allows it: it may have been made a
// moment ago. A wrong secret goes the same way as an unknown id, and takes as long.
func (k *keyring) open(ctx context.Context, text string, again func() error) (apikey.Key, error) {
	id, secret, err := apikey.Parse(text)
	if err != nil {
		if tooOften := again(); tooOften != nil {
			return apikey.Key{}, tooOften
		}
		return apikey.Key{}, unauthenticated(err.Error())
	}
	now := time.Now()
	known, err := k.since(ctx, now.Add(-ringStale))
	if err != nil {
		return apikey.Key{}, err
	}
	found, there, err := known.look(id, secret)
	if err != nil {
		if tooOften := again(); tooOften != nil {
			return apikey.Key{}, tooOften
		}
	}
	if !there && known.begun.Before(now) {
		if known, err = k.since(ctx, now); err != nil {
			return apikey.Key{}, err
		}
		found, _, err = known.look(id, secret)
	}
	if err != nil {
		return apikey.Key{}, err
	}
	if time.Since(known.begun) > ringFresh {
		k.refresh()
	}
	k.touch(found, time.Now().Add(known.ahead))
	return found.Key, nil
}

// since answers with what was read at that time or later.
func (k *keyring) since(ctx context.Context, at time.Time) (*ring, error) {
	for {
		if last := k.last.Load(); last != nil && !last.begun.Before(at) {
			return last, nil
		}
		under := k.refresh()
		select {
		case <-under.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if under.err != nil && !under.begun.Before(at) {
			return nil, under.err
		}
	}
}

// refresh begins to read, unless somebody is reading already.
func (k *keyring) refresh() *reading {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reading != nil {
		return k.reading
	}
	r := &reading{over: make(chan struct{})}
	if k.isClosed() {
		r.begun, r.err = time.Now(), &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "the server is closing"}
		close(r.over)
		return r
	}
	k.reading = r
	k.work.Go(func() { k.read(r) })
	return r
}

func (k *keyring) read(r *reading) {
	if last := k.last.Load(); last != nil {
		time.Sleep(ringPause - time.Since(last.begun))
	}
	ctx, cancel := context.WithTimeout(context.Background(), ringWithin)
	defer cancel()
	r.begun = time.Now()
	records, err := k.store.Records(ctx, apikey.Room)
	if err == nil {
		if len(records) > 0 {
			k.lock()
		}
		fresh := &ring{keys: make(map[string]kept, len(records)), begun: r.begun}
		for _, record := range records {
			var one apikey.Key
			if json.Unmarshal(record.Body, &one) == nil && one.ID == record.Name {
				fresh.keys[one.ID] = kept{one, record}
				fresh.ahead = record.AsOf.Sub(r.begun)
			}
		}
		k.last.Store(fresh)
		k.endLives(fresh)
	} else if !errors.Is(err, holdfast.ErrUnavailable) {
		err = &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "the keys cannot be read now: ask again a little later", Cause: err}
	}
	r.err = err
	k.mu.Lock()
	k.reading = nil
	k.mu.Unlock()
	close(r.over)
}

// touch writes down that a key is in use: now and then, and while nobody waits for it. When that fails nothing is lost but a little precision.
func (k *keyring) touch(found kept, now time.Time) {
	if now.Sub(found.UsedAt) < usedEvery {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isClosed() || now.Sub(k.used[found.ID]) < usedEvery {
		return
	}
	k.used[found.ID] = now
	k.work.Go(func() {
		found.UsedAt = now.UTC().Truncate(time.Second)
		body, err := json.Marshal(found.Key)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), ringWithin)
		defer cancel()
		found.record.Body = body
		_ = k.store.Keep(ctx, holdfast.Change{Records: []holdfast.Record{found.record}})
	})
}

func (k *keyring) isClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// close waits for what is under way.
func (k *keyring) close() {
	k.mu.Lock()
	if !k.isClosed() {
		close(k.closed)
	}
	k.mu.Unlock()
	k.work.Wait()
}
