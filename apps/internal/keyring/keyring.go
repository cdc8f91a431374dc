// Package keyring checks the API keys of an application.
package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// ErrInvalid is the answer for a key that does not exist, was revoked, or has expired.
var ErrInvalid = errors.New("the API key is not valid")

// A Cache holds the API keys as they were at most half a second ago. So a check costs no read of the store, and every process refuses a revoked key within a second.
// The zero value is ready to use. It is safe for concurrent use.
type Cache struct {
	last    atomic.Pointer[snapshot]
	reading sync.Mutex // held while the keys are read
}

// A snapshot is all keys, read at one time.
type snapshot struct {
	keys  map[string]apikey.Key
	begun time.Time
	ahead time.Duration // how far the store's clock is ahead of ours
}

const (
	maxAge  = 500 * time.Millisecond
	pause   = 100 * time.Millisecond // minimum time between two reads, however many unknown keys are sent
	timeout = 3 * time.Second        // for one read
)

// decoy is compared with unknown keys, so that refusing one takes as long as refusing a known one.
var decoy, _ = apikey.New(apikey.Request{Name: "decoy"}, time.Time{})

// Open returns a valid key, or ErrInvalid. A key that is not in the cache may have been created a moment ago: then the keys are read again.
func (k *Cache) Open(ctx context.Context, from store.Maintainer, id, secret string) (apikey.Key, error) {
	now := time.Now()
	known, err := k.since(ctx, from, now.Add(-maxAge))
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
		return apikey.Key{}, ErrInvalid
	}
	return found, nil
}

// Knows reports whether a key existed when the keys were last read.
func (k *Cache) Knows(id string) bool {
	last := k.last.Load()
	return last != nil && last.keys[id].ID != ""
}

// since returns a snapshot whose read began at the given time or later. Concurrent callers share one read.
func (k *Cache) since(ctx context.Context, from store.Maintainer, at time.Time) (*snapshot, error) {
	if last := k.last.Load(); last != nil && !last.begun.Before(at) {
		return last, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	last := k.last.Load()
	if last != nil && !last.begun.Before(at) {
		return last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if last != nil {
		select {
		case <-time.After(pause - time.Since(last.begun)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	fresh := &snapshot{keys: map[string]apikey.Key{}, begun: time.Now()}
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
