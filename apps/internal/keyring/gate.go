package keyring

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/store"
)

// ErrTooMany is the answer to an address that has sent many invalid keys lately.
var ErrTooMany = errors.New("too many invalid API keys came from this address")

// BadKeysPerMinute is how many invalid keys an address may send.
const BadKeysPerMinute = 30

// A Gate opens the API keys of requests. An address that sends many invalid keys is refused without asking the store; valid keys from there are still accepted. It is
// safe for concurrent use.
type Gate struct {
	keys Cache
	bad  limit.Rates // invalid keys per minute, by address
}

// NewGate returns a Gate.
func NewGate() *Gate {
	return &Gate{bad: limit.Rates{Burst: BadKeysPerMinute, Every: time.Minute / BadKeysPerMinute}}
}

// Bearer opens the key of the Authorization headers of a request from an address. The error is ErrInvalid, ErrTooMany, or one of the store.
func (g *Gate) Bearer(ctx context.Context, from store.Maintainer, headers []string, address string) (apikey.Key, error) {
	text := ""
	if len(headers) == 1 {
		if scheme, rest, _ := strings.Cut(headers[0], " "); strings.EqualFold(scheme, "Bearer") {
			text = strings.TrimSpace(rest)
		}
	}
	return g.Open(ctx, from, text, address)
}

// Open opens a key that a request from an address contains. The error is ErrInvalid, ErrTooMany, or one of the store.
func (g *Gate) Open(ctx context.Context, from store.Maintainer, text, address string) (apikey.Key, error) {
	at := limit.Network(address)
	id, secret, err := apikey.Parse(text)
	if err == nil && !g.keys.Knows(id) && g.bad.Exhausted(at) {
		return apikey.Key{}, ErrTooMany
	}
	if err != nil {
		err = ErrInvalid
	} else if k, failed := g.keys.Open(ctx, from, id, secret); failed == nil {
		return k, nil
	} else {
		err = failed
	}
	if errors.Is(err, ErrInvalid) && !g.bad.Allow(at) {
		err = ErrTooMany
	}
	return apikey.Key{}, err
}
