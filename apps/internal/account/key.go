package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// A Scope is what an API key permits.
type Scope string

// The scopes. Operate is what the operator of the service may do, and permits nothing unless the user of the key is one.
const (
	Read    Scope = "read"
	Write   Scope = "write"
	Operate Scope = "operate"
)

func allScopes() []Scope { return []Scope{Read, Write, Operate} }

// A Key is an API key: it acts for its user in one organisation.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	User      string    `json:"user"` // e-mail address
	Scopes    []Scope   `json:"scopes"`
	CreatedAt time.Time `json:"createdAt"`
	UsedAt    time.Time `json:"usedAt,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"` // zero: never
	RevokedAt time.Time `json:"revokedAt,omitzero"`
}

// Works reports whether the key opens anything at a time.
func (k Key) Works(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

const maxKeys = 100 // of an organisation, that work

// A KeyRequest asks for an API key.
type KeyRequest struct {
	Name   string
	Scopes []Scope       // read and write when empty
	Life   time.Duration // 0: it does not expire
}

// CreateKey makes an API key and returns its text, which is not stored and shown once.
func (s *Service) CreateKey(ctx context.Context, by Identity, r KeyRequest) (k Key, text string, err error) {
	if len(r.Scopes) == 0 {
		r.Scopes = []Scope{Read, Write}
	}
	if k.Name, err = cleanName(r.Name, ""); err != nil {
		return k, "", err
	}
	for _, scope := range r.Scopes {
		if !slices.Contains(allScopes(), scope) {
			return k, "", fmt.Errorf("%w: %.20q is not a scope: use read, write or operate", ErrInvalid, scope)
		}
	}
	if r.Life < 0 {
		return k, "", fmt.Errorf("%w: the key would have expired already", ErrInvalid)
	}
	if slices.Contains(r.Scopes, Operate) && !by.User.Operator {
		return k, "", fmt.Errorf("%w: only an operator of this service can have a key with the scope operate", ErrInvalid)
	}
	now := s.cfg.Now()
	secret := rand.Text() + rand.Text()[:6]
	k.ID, k.User, k.Scopes, k.CreatedAt = strings.ToLower(rand.Text()[:16]), by.User.Email, r.Scopes, now.UTC()
	if r.Life > 0 {
		k.ExpiresAt = now.Add(r.Life).UTC()
	}
	err = s.db.Write(ctx, func(tx *database.Tx) error {
		n := 0
		if err := tx.One(ctx, `SELECT count(*) FROM account_key WHERE organisation = ? AND revoked_at = 0`, []any{by.Organisation}, &n); err != nil {
			return err
		}
		if n >= maxKeys {
			return fmt.Errorf("%w: the organisation has %d keys: revoke one first", ErrInvalid, n)
		}
		err := tx.Exec(ctx, `INSERT INTO account_key (id, hash, organisation, user_id, name, scopes, created_at, used_at, expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, 0)`,
			k.ID, hashOf(secret), by.Organisation, by.User.ID, k.Name, joinScopes(k.Scopes), database.Micros(k.CreatedAt), database.Micros(k.ExpiresAt))
		if err != nil {
			return err
		}
		return s.record(ctx, tx, by, "made the API key", k.Name)
	})
	return k, s.cfg.KeyPrefix + "_" + k.ID + "_" + secret, err
}

// Keys returns the keys of an organisation, the newest first.
func (s *Service) Keys(ctx context.Context, organisation string) (list []Key, err error) {
	err = s.db.Each(ctx, `SELECT k.id, k.name, u.email, k.scopes, k.created_at, k.used_at, k.expires_at, k.revoked_at FROM account_key k JOIN account_user u ON u.id = k.user_id WHERE k.organisation = ? ORDER BY k.created_at DESC, k.id LIMIT 500`, []any{organisation}, func(scan func(...any) error) error {
		var k Key
		var scopes string
		var created, used, expires, revoked int64
		err := scan(&k.ID, &k.Name, &k.User, &scopes, &created, &used, &expires, &revoked)
		k.Scopes, k.CreatedAt, k.UsedAt, k.ExpiresAt, k.RevokedAt = splitScopes(scopes), database.Time(created), database.Time(used), database.Time(expires), database.Time(revoked)
		list = append(list, k)
		return err
	})
	return list, err
}

// RevokeKey makes a key useless. Members may revoke their own keys, admins all. The error is ErrNotFound or ErrForbidden.
func (s *Service) RevokeKey(ctx context.Context, by Identity, id string) error {
	return s.db.Write(ctx, func(tx *database.Tx) error {
		var owner, name string
		err := tx.One(ctx, `SELECT user_id, name FROM account_key WHERE id = ? AND organisation = ?`, []any{id, by.Organisation}, &owner, &name)
		switch {
		case errors.Is(err, database.ErrNoRow):
			return ErrNotFound
		case err != nil:
			return err
		case owner != by.User.ID && by.Role != Admin:
			return ErrForbidden
		}
		if n, err := tx.Changed(ctx, `UPDATE account_key SET revoked_at = ? WHERE id = ? AND revoked_at = 0`, s.now(), id); err != nil || n == 0 {
			return err
		}
		return s.record(ctx, tx, by, "revoked the API key", name)
	})
}

// OpenKey returns who a key acts for. from is the network that asks. The error is ErrNoIdentity if the key is not valid, ErrTooMany if many were not.
func (s *Service) OpenKey(ctx context.Context, text string, from any) (Identity, error) {
	if s.failed.Exhausted(keyAttempt{from}) {
		return Identity{}, ErrTooMany
	}
	id, err := s.openKey(ctx, text)
	if errors.Is(err, ErrNoIdentity) && !s.failed.Allow(keyAttempt{from}) {
		err = ErrTooMany
	}
	return id, err
}

// A keyAttempt is a network that sent an invalid key.
type keyAttempt struct{ from any }

func (s *Service) openKey(ctx context.Context, text string) (id Identity, err error) {
	part := strings.Split(text, "_")
	if len(part) != 3 || part[0] != s.cfg.KeyPrefix {
		return id, ErrNoIdentity
	}
	var hash, scopes string
	var operator, created, used, expires, revoked int64
	err = s.db.One(ctx, `SELECT k.id, k.hash, k.organisation, k.name, k.scopes, k.used_at, k.expires_at, k.revoked_at, u.id, u.email, u.name, u.operator, u.created_at, m.role
		FROM account_key k JOIN account_user u ON u.id = k.user_id JOIN account_member m ON m.user_id = k.user_id AND m.organisation = k.organisation WHERE k.id = ?`, []any{part[1]},
		&id.Key, &hash, &id.Organisation, &id.KeyName, &scopes, &used, &expires, &revoked, &id.User.ID, &id.User.Email, &id.User.Name, &operator, &created, &id.Role)
	if errors.Is(err, database.ErrNoRow) {
		return Identity{}, ErrNoIdentity
	}
	if err != nil {
		return Identity{}, err
	}
	now := s.cfg.Now()
	right := subtle.ConstantTimeCompare([]byte(hashOf(part[2])), []byte(hash)) == 1
	if !right || !(Key{ExpiresAt: database.Time(expires), RevokedAt: database.Time(revoked)}).Works(now) {
		return Identity{}, ErrNoIdentity
	}
	id.User.Operator, id.User.CreatedAt, id.Scopes = operator == 1, database.Time(created), splitScopes(scopes)
	if now.Sub(database.Time(used)) > usedEvery {
		err = s.db.Write(ctx, func(tx *database.Tx) error {
			return tx.Exec(ctx, `UPDATE account_key SET used_at = ? WHERE id = ?`, database.Micros(now), id.Key)
		})
	}
	return id, err
}

func joinScopes(scopes []Scope) string {
	text := make([]string, len(scopes))
	for i, scope := range scopes {
		text[i] = string(scope)
	}
	return strings.Join(text, " ")
}

func splitScopes(text string) (scopes []Scope) {
	for _, one := range strings.Fields(text) {
		scopes = append(scopes, Scope(one))
	}
	return scopes
}
