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
)

// A seal is the key by which this application knows the sessions that it made: a cookie that anybody else made up is replaced.
type seal []byte

const (
	sealBytes    = 32 // of the key
	sessionBytes = 32 // of chance in a session
)

// session makes a session's cookie: chance, and the seal's mark on it.
func (s seal) session() string {
	var chance [sessionBytes]byte
	_, _ = rand.Read(chance[:]) // it never fails
	text := base64.RawURLEncoding.EncodeToString(chance[:])
	return text + "." + s.mark(text)
}

func (s seal) mark(text string) string {
	sum := hmac.New(sha256.New, s)
	_, _ = sum.Write([]byte("convert session " + text)) // it never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:16])
}

// fits reports whether a cookie is a session that was made with this seal.
func (s seal) fits(value string) bool {
	text, mark, _ := strings.Cut(value, ".")
	return len(text) == base64.RawURLEncoding.EncodedLen(sessionBytes) && hmac.Equal([]byte(mark), []byte(s.mark(text)))
}

// A sealKeeper reads the seal that all processes on a store share; the first one makes it. The zero value is ready.
type sealKeeper struct {
	mu   sync.Mutex
	seal seal
}

// sealRoom is where the store keeps it.
const sealRoom, sealName = "convert", "session-seal"

func (k *sealKeeper) read(ctx context.Context, from holdfast.Keeper) (seal, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.seal == nil {
		records, err := from.Records(ctx, sealRoom)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.Name != sealName {
				continue
			}
			var kept seal
			if err := json.Unmarshal(r.Body, &kept); err != nil || len(kept) != sealBytes {
				return nil, errors.Join(errors.New("the seal of sessions cannot be read from the store"), err)
			}
			k.seal = kept
			return kept, nil
		}
		fresh := make(seal, sealBytes)
		_, _ = rand.Read(fresh) // it never fails
		body, err := json.Marshal(fresh)
		if err != nil {
			return nil, err
		}
		err = from.Keep(ctx, holdfast.Change{Records: []holdfast.Record{{Room: sealRoom, Name: sealName, Body: body}}})
		if err != nil && !errors.Is(err, holdfast.ErrConflict) { // another process made one first: read that
			return nil, err
		}
	}
	return k.seal, nil
}
