package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A sessionKey signs session cookies. A cookie without a valid signature is replaced by a new session.
type sessionKey []byte

const (
	sessionKeyBytes = 32
	sessionBytes    = 32 // random bytes in a session
)

// newSession returns the value of a new session cookie: random bytes and their signature.
func (s sessionKey) newSession() string {
	var random [sessionBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	text := base64.RawURLEncoding.EncodeToString(random[:])
	return text + "." + s.sign(text)
}

func (s sessionKey) sign(text string) string {
	sum := hmac.New(sha256.New, s)
	_, _ = sum.Write([]byte("convert session " + text)) // it never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:16])
}

// verify reports whether a cookie was signed with this key.
func (s sessionKey) verify(value string) bool {
	text, signature, _ := strings.Cut(value, ".")
	return len(text) == base64.RawURLEncoding.EncodedLen(sessionBytes) && hmac.Equal([]byte(signature), []byte(s.sign(text)))
}

// A sessionKeyCache reads the key that all processes on a store share. The first process creates it. The zero value is ready to use.
type sessionKeyCache struct {
	mu  sync.Mutex
	key sessionKey
}

// The record of the store that contains the key.
const namespaceSessionKey, sessionKeyName = "convert", "session-seal"

func (k *sessionKeyCache) read(ctx context.Context, from store.Maintainer) (sessionKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.key == nil {
		records, err := from.Records(ctx, namespaceSessionKey)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.Name != sessionKeyName {
				continue
			}
			var stored sessionKey
			if err := json.Unmarshal(r.Body, &stored); err != nil || len(stored) != sessionKeyBytes {
				return nil, errors.Join(errors.New("cannot read the session key from the store"), err)
			}
			k.key = stored
			return stored, nil
		}
		fresh := make(sessionKey, sessionKeyBytes)
		_, _ = rand.Read(fresh) // it never fails
		body, err := json.Marshal(fresh)
		if err != nil {
			return nil, err
		}
		err = from.Apply(ctx, store.Change{Records: []store.Record{{Namespace: namespaceSessionKey, Name: sessionKeyName, Body: body}}})
		if err != nil && !errors.Is(err, holdfast.ErrConflict) { // another process created it first: read that one
			return nil, err
		}
	}
	return k.key, nil
}
