package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// A keyring holds the API keys of the store as they were a moment ago, so that authentication needs no read from the store. A result is never older than
// 500 ms: every server refuses a revoked key within a second. If the keys cannot be read, every request is ErrUnavailable. It is safe for concurrent use.
type keyring struct {
	store  recordStore
	last   atomic.Pointer[keySet]
	locked atomic.Bool // a key record was seen: from then on every caller needs a key, even if all records are deleted
	onLock func()      // called once, when locked becomes true

	mu        sync.Mutex
	keysRead  *keysRead
	used      map[string]time.Time    // when this process last wrote the time of use of a key
	lifetimes map[string]*keyLifetime // by key id; "" is the lifetime of callers without a key
	closed    chan struct{}
	work      sync.WaitGroup
}

func newKeyring(db recordStore, onLock func()) *keyring {
	return &keyring{store: db, onLock: onLock, used: map[string]time.Time{}, lifetimes: map[string]*keyLifetime{}, closed: make(chan struct{})}
}

// A recordStore reads and writes records. Every store implements it.
type recordStore interface {
	Records(ctx context.Context, namespace string) ([]store.Record, error)
	Apply(ctx context.Context, c store.Change) error
}

// A keySet is the result of one read of the keys.
type keySet struct {
	keys  map[string]storedKey
	begun time.Time     // when the read began: it contains every record written before
	ahead time.Duration // the store's clock minus this process's clock
}

type storedKey struct {
	apikey.Key
	record store.Record
}

// A keysRead is one read of the keys, which several requests may wait for.
type keysRead struct {
	over  chan struct{}
	begun time.Time
	err   error
}

const (
	keysRefreshAfter = 250 * time.Millisecond // an older result is used, and read again in the background
	keysMaxAge       = 500 * time.Millisecond // an older result is not used
	keysReadPause    = 100 * time.Millisecond // minimum time between two reads, however many unknown keys arrive
	keysReadTimeout  = 3 * time.Second        // time limit of one read
	usedEvery        = time.Minute
)

// decoy is compared with the secret of an unknown key, so that the answer takes as long as for a known one.
var decoy, _ = apikey.New(apikey.Request{Name: "decoy"}, time.Time{})

// find compares a key with the known ones. there is false for an unknown id and for a wrong secret. err is nil only for a valid key.
func (r *keySet) find(id, secret string) (k storedKey, there bool, err error) {
	k, there = r.keys[id]
	if !there {
		k.Key = decoy
	}
	same := k.Matches(secret)
	switch {
	case !there || !same:
		return storedKey{}, false, unauthenticated("unknown API key: check that it was copied completely, or create one with 'holdfast keys create'")
	case !k.RevokedAt.IsZero():
		return storedKey{}, true, unauthenticated("this API key was revoked: ask an admin for a new one")
	case !k.Valid(time.Now().Add(r.ahead)):
		return storedKey{}, true, unauthenticated("this API key has expired: ask an admin for a new one")
	}
	return k, true, nil
}

func unauthenticated(message string) error {
	return &holdfast.Error{Err: api.ErrUnauthenticated, Message: message}
}

// authenticate returns the key for a text. An unknown key may have been created a moment ago, so it is looked up once more in a fresh read, if countBadKey allows it: it
// counts bad keys and returns an error when the caller has sent too many. A wrong secret takes the same path as an unknown id and as long.
func (k *keyring) authenticate(ctx context.Context, text string, countBadKey func() error) (apikey.Key, error) {
	id, secret, err := apikey.Parse(text)
	if err != nil {
		if tooOften := countBadKey(); tooOften != nil {
			return apikey.Key{}, tooOften
		}
		return apikey.Key{}, unauthenticated(err.Error())
	}
	now := time.Now()
	known, err := k.readSince(ctx, now.Add(-keysMaxAge))
	if err != nil {
		return apikey.Key{}, err
	}
	found, there, err := known.find(id, secret)
	if err != nil {
		if tooOften := countBadKey(); tooOften != nil {
			return apikey.Key{}, tooOften
		}
	}
	if !there && known.begun.Before(now) {
		if known, err = k.readSince(ctx, now); err != nil {
			return apikey.Key{}, err
		}
		found, _, err = known.find(id, secret)
	}
	if err != nil {
		return apikey.Key{}, err
	}
	if time.Since(known.begun) > keysRefreshAfter {
		k.refresh()
	}
	k.touch(found, time.Now().Add(known.ahead))
	return found.Key, nil
}

// readSince returns a result whose read began at that time or later, and waits for one if necessary.
func (k *keyring) readSince(ctx context.Context, at time.Time) (*keySet, error) {
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

// refresh starts a read, unless one is already running, and returns it.
func (k *keyring) refresh() *keysRead {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keysRead != nil {
		return k.keysRead
	}
	r := &keysRead{over: make(chan struct{})}
	if k.isClosed() {
		r.begun, r.err = time.Now(), &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the server is shutting down"}
		close(r.over)
		return r
	}
	k.keysRead = r
	k.work.Go(func() { k.read(r) })
	return r
}

// read reads the keys once. It waits until keysReadPause has passed since the last read began.
func (k *keyring) read(r *keysRead) {
	if last := k.last.Load(); last != nil {
		time.Sleep(keysReadPause - time.Since(last.begun))
	}
	ctx, cancel := context.WithTimeout(context.Background(), keysReadTimeout)
	defer cancel()
	r.begun = time.Now()
	records, err := k.store.Records(ctx, apikey.Namespace)
	if err == nil {
		if len(records) > 0 {
			k.lock()
		}
		fresh := &keySet{keys: make(map[string]storedKey, len(records)), begun: r.begun}
		for _, record := range records {
			var one apikey.Key
			if json.Unmarshal(record.Body, &one) == nil && one.ID == record.Name {
				fresh.keys[one.ID] = storedKey{one, record}
				fresh.ahead = record.AsOf.Sub(r.begun)
			}
		}
		k.last.Store(fresh)
		k.endLifetimes(fresh)
	} else if !errors.Is(err, holdfast.ErrUnavailable) {
		err = &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the API keys cannot be read from the store: try again later", Cause: err}
	}
	r.err = err
	k.mu.Lock()
	k.keysRead = nil
	k.mu.Unlock()
	close(r.over)
}

// touch stores the time at which a key was used, at most once a minute, in the background. If that fails, only the displayed time is less precise.
func (k *keyring) touch(found storedKey, now time.Time) {
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
		ctx, cancel := context.WithTimeout(context.Background(), keysReadTimeout)
		defer cancel()
		found.record.Body = body
		_ = k.store.Apply(ctx, store.Change{Records: []store.Record{found.record}})
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

// close waits for background work. Later reads fail.
func (k *keyring) close() {
	k.mu.Lock()
	if !k.isClosed() {
		close(k.closed)
	}
	k.mu.Unlock()
	k.work.Wait()
}
