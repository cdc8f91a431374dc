// Package apikey is about API keys: how they are made, what they may, and how one is told from a forgery. It is pure: who keeps them, and who asks,
// may be anybody.
//
// A key is written hf_<id>_<secret>_<check>. The id finds it, the check tells a misspelled one from an unknown one without asking anybody, and
// of the secret only a hash is kept: a key is shown once, when it is made.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Room is where stores keep keys, as records named by their ids.
const Room = "key"

// A Scope is what a key may do.
type Scope string

// The scopes. Operators may all that viewers may; admins may everything.
const (
	Viewer   Scope = "viewer"   // look
	Worker   Scope = "worker"   // enqueue, claim and settle, and what engines do besides
	Operator Scope = "operator" // look, enqueue and intervene
	Admin    Scope = "admin"    // everything: keys, policies and retention too
)

// Allows reports whether who has this scope may do what asks for another. A thing that asks for nothing is allowed to everybody.
func (s Scope) Allows(asked Scope) bool {
	switch {
	case asked == "" || s == Admin || s == asked:
		return true
	case s == Operator:
		return asked == Viewer
	}
	return false
}

// A Key is what is kept of one.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"` // for people: it is the actor of what is done with it
	Scope     Scope     `json:"scope"`
	Owner     string    `json:"owner,omitempty"`  // bound to this owner: it sees and touches nobody else's
	Queues    []string  `json:"queues,omitempty"` // a worker's, bound to these queues; empty: to all
	Kinds     []string  `json:"kinds,omitempty"`  // a worker's, bound to these kinds; empty: to all
	Hash      string    `json:"hash,omitempty"`   // of the secret; never shown
	CreatedAt time.Time `json:"created_at"`
	ExpireAt  time.Time `json:"expire_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	UsedAt    time.Time `json:"used_at,omitzero"` // about when it was last used
}

const maxBound = 100 // queues, and kinds, that a key is bound to

// An Order asks for a key.
type Order struct {
	Name     string        `json:"name"`
	Scope    Scope         `json:"scope"`
	Owner    string        `json:"owner,omitempty"`
	Queues   []string      `json:"queues,omitempty"`    // a worker's: it works on these alone
	Kinds    []string      `json:"kinds,omitempty"`     // a worker's: it works on these alone
	ExpireIn time.Duration `json:"expire_in,omitempty"` // 0: never
}

// Check refuses an order that makes no sense, naming every problem at once.
func (o Order) Check() error {
	var wrong []error
	add := func(format string, args ...any) {
		wrong = append(wrong, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)})
	}
	if o.Name == "" || len(o.Name) > holdfast.MaxKey || !holdfast.PlainText(o.Name) {
		add("a key named %.60q: use 1 to %d bytes without control characters, so that people know whose it is", o.Name, holdfast.MaxKey)
	}
	if first, _, _ := strings.Cut(strings.ToLower(o.Name), " "); first == "holdfast" || first == "policy" {
		add("a key named %.60q: engines and policies are named so in the audit trail; give another name", o.Name)
	}
	switch o.Scope {
	case Viewer, Worker, Operator, Admin:
	default:
		add("a scope of %.60q: use viewer, worker, operator or admin", o.Scope)
	}
	if o.Owner != "" && (o.Scope == Worker || o.Scope == Admin) {
		add("a key of scope %s that is bound to an owner: workers and admins deal with everybody's jobs; use viewer or operator", o.Scope)
	}
	if len(o.Queues)+len(o.Kinds) > 0 && o.Scope != Worker {
		add("a key of scope %s that is bound to queues or kinds: only a worker's is; bind a viewer's or an operator's to an owner", o.Scope)
	}
	if len(o.Queues) > maxBound || len(o.Kinds) > maxBound {
		add("a key that is bound to %d queues and %d kinds: the limit is %d of each", len(o.Queues), len(o.Kinds), maxBound)
	}
	for _, name := range slices.Concat(o.Queues, o.Kinds) {
		if probe := (holdfast.Draft{Kind: "probe", Dependency: name}); name == "" || probe.Prepare() != nil {
			add("a key bound to %.140q: name queues and kinds, of 1 to %d letters, digits and _ - . : /", name, holdfast.MaxName)
		}
	}
	if len(o.Owner) > holdfast.MaxKey {
		add("an owner of %d bytes: the limit is %d", len(o.Owner), holdfast.MaxKey)
	}
	if o.ExpireIn < 0 || o.ExpireIn > holdfast.MaxDelay {
		add("a key that expires in %v: give a duration between 0 and 100 years", o.ExpireIn)
	}
	return errors.Join(wrong...)
}

// Make makes a key. The text is for whoever ordered it and is kept by nobody.
func Make(o Order, now time.Time) (k Key, text string) {
	var id [6]byte
	var secret [32]byte
	_, _ = rand.Read(id[:]) // it never fails
	_, _ = rand.Read(secret[:])
	k = Key{ID: hex.EncodeToString(id[:]), Name: o.Name, Scope: o.Scope, Owner: o.Owner, Queues: o.Queues, Kinds: o.Kinds, CreatedAt: now.UTC()}
	if o.ExpireIn > 0 {
		k.ExpireAt = k.CreatedAt.Add(o.ExpireIn)
	}
	begin := "hf_" + k.ID + "_" + hex.EncodeToString(secret[:])
	k.Hash = hashOf(hex.EncodeToString(secret[:]))
	return k, begin + "_" + check(begin)
}

// ErrMalformed: a text is no key, whatever keys there are.
var ErrMalformed = errors.New("this is not a key: keys begin with hf_ and are copied whole")

// Parse takes a text apart.
func Parse(text string) (id, secret string, err error) {
	at := strings.LastIndexByte(text, '_')
	if at < 0 || len(text) > 128 || subtle.ConstantTimeCompare([]byte(check(text[:at])), []byte(text[at+1:])) != 1 {
		return "", "", ErrMalformed
	}
	parts := strings.Split(text[:at], "_")
	if len(parts) != 3 || parts[0] != "hf" || parts[1] == "" || parts[2] == "" {
		return "", "", ErrMalformed
	}
	return parts[1], parts[2], nil
}

// Opens reports whether a secret is this key's, and the key is good now.
func (k Key) Opens(secret string, now time.Time) bool { return k.Is(secret) && k.Good(now) }

// Is reports whether a secret is this key's, be it good or not. It takes as long whatever the answer.
func (k Key) Is(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(k.Hash)) == 1
}

// Good reports whether the key is neither revoked nor expired.
func (k Key) Good(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpireAt.IsZero() || now.Before(k.ExpireAt))
}

// Shown is the key as anybody may see it.
func (k Key) Shown() Key {
	k.Hash = ""
	return k
}

// hashOf needs no salt and no slowness: the secret is 256 bits of chance.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func check(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }
