// Package apikey defines API keys: how they are made, what they allow, and how they are verified. It is pure: it neither stores keys nor reads a clock.
//
// A key is written hf_<id>_<secret>_<check>. The id finds the record, and the check detects a misspelled key without a lookup. Only a hash of the secret is
// stored: a key is shown once, when it is created.
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
	"github.com/holdfastdev/holdfast/internal/check"
)

// Namespace is the namespace of the records of keys, which are named by their ids.
const Namespace = "key"

// A Scope is what a key allows.
type Scope string

// The scopes. Operator includes viewer; admin includes everything.
const (
	Viewer   Scope = "viewer"   // read
	Worker   Scope = "worker"   // enqueue, claim and settle jobs, and what engines do besides
	Operator Scope = "operator" // read, enqueue and act on jobs
	Admin    Scope = "admin"    // everything, also keys, policies and retention
)

// Allows reports whether a key of this scope may do what needs another scope. An empty scope is allowed to every key.
func (s Scope) Allows(asked Scope) bool {
	switch {
	case asked == "" || s == Admin || s == asked:
		return true
	case s == Operator:
		return asked == Viewer
	}
	return false
}

// A Key is the stored part of a key.
type Key struct {
	ID        string    `json:"id"`                  // id of the key
	Name      string    `json:"name"`                // name for people; it is the actor of what is done with the key
	Scope     Scope     `json:"scope"`               // what the key allows
	Owner     string    `json:"owner,omitempty"`     // owner that the key is bound to: it can only read and change that owner's jobs and groups
	Queues    []string  `json:"queues,omitempty"`    // queues that a worker's key is bound to; all when empty
	Kinds     []string  `json:"kinds,omitempty"`     // kinds that a worker's key is bound to; all when empty
	Hash      string    `json:"hash,omitempty"`      // hash of the secret; never shown
	CreatedAt time.Time `json:"created_at"`          // when the key was created
	ExpireAt  time.Time `json:"expire_at,omitzero"`  // when the key expires; never when missing
	RevokedAt time.Time `json:"revoked_at,omitzero"` // when the key was revoked
	UsedAt    time.Time `json:"used_at,omitzero"`    // when the key was last used, to about a minute
}

const maxBound = 100 // maximum number of queues, and of kinds, that a key is bound to

// A Request asks for a new key.
type Request struct {
	Name     string        `json:"name"`                // name for people; it is the actor of what is done with the key
	Scope    Scope         `json:"scope"`               // what the key allows
	Owner    string        `json:"owner,omitempty"`     // bind the key to this owner; only for viewer and operator
	Queues   []string      `json:"queues,omitempty"`    // bind a worker's key to these queues
	Kinds    []string      `json:"kinds,omitempty"`     // bind a worker's key to these kinds
	ExpireIn time.Duration `json:"expire_in,omitempty"` // time until the key expires; never when 0
}

// Check refuses a request that is not valid; the error names every problem.
func (o Request) Check() error {
	var wrong []error
	add := func(format string, args ...any) {
		wrong = append(wrong, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)})
	}
	if o.Name == "" || len(o.Name) > check.MaxKey || !check.PlainText(o.Name) {
		add("the name %.60q of the key is not valid: use 1 to %d bytes without control characters", o.Name, check.MaxKey)
	}
	if first, _, _ := strings.Cut(strings.ToLower(o.Name), " "); first == "holdfast" || first == "policy" {
		add("the name %.60q of the key is reserved for engines and policies in the audit log: use another", o.Name)
	}
	switch o.Scope {
	case Viewer, Worker, Operator, Admin:
	default:
		add("unknown scope %.60q: use viewer, worker, operator or admin", o.Scope)
	}
	if o.Owner != "" && (o.Scope == Worker || o.Scope == Admin) {
		add("a key of scope %s cannot be bound to an owner, because workers and admins act on jobs of all owners: use viewer or operator", o.Scope)
	}
	if len(o.Queues)+len(o.Kinds) > 0 && o.Scope != Worker {
		add("a key of scope %s cannot be bound to queues or kinds: only a worker's key can; bind a viewer's or an operator's to an owner", o.Scope)
	}
	if len(o.Queues) > maxBound || len(o.Kinds) > maxBound {
		add("the key is bound to %d queues and %d kinds: the maximum is %d of each", len(o.Queues), len(o.Kinds), maxBound)
	}
	for _, name := range slices.Concat(o.Queues, o.Kinds) {
		if probe := (holdfast.Draft{Kind: "probe", Dependency: name}); name == "" || probe.Prepare() != nil {
			add("the queue or kind %.140q is not valid: use 1 to %d letters, digits and _ - . : /", name, check.MaxName)
		}
	}
	if len(o.Owner) > check.MaxKey {
		add("the owner has %d bytes: the maximum is %d", len(o.Owner), check.MaxKey)
	}
	if o.ExpireIn < 0 || o.ExpireIn > check.MaxDelay {
		add("the key expires in %v: give a duration between 0 and 100 years", o.ExpireIn)
	}
	return errors.Join(wrong...)
}

// New makes a key from a valid Order. The text is the key itself, for the person who asked for it; it is not stored.
func New(o Request, now time.Time) (k Key, text string) {
	var id [6]byte
	var secret [32]byte
	_, _ = rand.Read(id[:]) // rand.Read never fails
	_, _ = rand.Read(secret[:])
	k = Key{ID: hex.EncodeToString(id[:]), Name: o.Name, Scope: o.Scope, Owner: o.Owner, Queues: o.Queues, Kinds: o.Kinds, CreatedAt: now.UTC()}
	if o.ExpireIn > 0 {
		k.ExpireAt = k.CreatedAt.Add(o.ExpireIn)
	}
	begin := "hf_" + k.ID + "_" + hex.EncodeToString(secret[:])
	k.Hash = hashOf(hex.EncodeToString(secret[:]))
	return k, begin + "_" + checksum(begin)
}

// ErrMalformed: a text does not have the form of a key.
var ErrMalformed = errors.New("this is not an API key: keys begin with hf_; check that it was copied completely")

// Parse splits the text of a key into id and secret. A text with another form or a wrong check is ErrMalformed.
func Parse(text string) (id, secret string, err error) {
	at := strings.LastIndexByte(text, '_')
	if at < 0 || len(text) > 128 || subtle.ConstantTimeCompare([]byte(checksum(text[:at])), []byte(text[at+1:])) != 1 {
		return "", "", ErrMalformed
	}
	parts := strings.Split(text[:at], "_")
	if len(parts) != 3 || parts[0] != "hf" || parts[1] == "" || parts[2] == "" {
		return "", "", ErrMalformed
	}
	return parts[1], parts[2], nil
}

// Accepts reports whether a secret is this key's and the key is valid now.
func (k Key) Accepts(secret string, now time.Time) bool { return k.Matches(secret) && k.Valid(now) }

// Matches reports whether a secret is this key's, whether the key is valid or not. It takes the same time for every answer.
func (k Key) Matches(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(k.Hash)) == 1
}

// Valid reports whether the key is neither revoked nor expired.
func (k Key) Valid(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpireAt.IsZero() || now.Before(k.ExpireAt))
}

// Redacted returns the key without the hash, for display.
func (k Key) Redacted() Key {
	k.Hash = ""
	return k
}

// hashOf needs no salt and no slow hash: the secret is 256 random bits, which cannot be guessed.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }
