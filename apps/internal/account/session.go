package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// A Session is a browser that is signed in.
type Session struct {
	ID        string    `json:"id"`
	Agent     string    `json:"agent"` // what the browser says about itself
	CreatedAt time.Time `json:"createdAt"`
	UsedAt    time.Time `json:"usedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	Current   bool      `json:"current"` // of the request that asks
}

// usedEvery is how often the time of the last use is written.
const usedEvery = 5 * time.Minute

const maxAgent = 200

// A SignIn is a request for a session.
type SignIn struct {
	Email, Password string
	From            any    // the network that asks; see limit.Network
	Agent           string // User-Agent
}

// SignIn makes a session and returns its token, which the browser keeps in a cookie. The error is ErrCredentials or ErrTooMany.
func (s *Service) SignIn(ctx context.Context, r SignIn) (token string, u User, err error) {
	u, err = s.authenticate(ctx, r.Email, r.Password, r.From)
	if err != nil {
		return "", User{}, err
	}
	organisations, err := s.Organisations(ctx, u.ID)
	if err != nil {
		return "", User{}, err
	}
	current := ""
	if len(organisations) > 0 {
		current = organisations[0].ID
	}
	agent := strings.ToValidUTF8(r.Agent, "")
	if len(agent) > maxAgent {
		agent = strings.ToValidUTF8(agent[:maxAgent], "")
	}
	token = rand.Text()
	now := s.cfg.Now()
	err = s.db.Write(ctx, func(tx *database.Tx) error {
		if err := tx.Exec(ctx, `DELETE FROM account_session WHERE user_id = ? AND (expires_at < ? OR used_at < ?)`, u.ID, database.Micros(now), database.Micros(now.Add(-s.cfg.SessionIdle))); err != nil {
			return err
		}
		return tx.Exec(ctx, `INSERT INTO account_session (hash, id, user_id, organisation, agent, created_at, used_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			hashOf(token), newID(), u.ID, current, agent, database.Micros(now), database.Micros(now), database.Micros(now.Add(s.cfg.SessionLife)))
	})
	return token, u, err
}

// OpenSession returns who a session belongs to. The error is ErrNoIdentity if the token is unknown, expired or revoked.
func (s *Service) OpenSession(ctx context.Context, token string) (Identity, error) {
	var id Identity
	var operator, used, expires, created int64
	var role *string
	err := s.db.One(ctx, `SELECT s.id, s.organisation, s.used_at, s.expires_at, u.id, u.email, u.name, u.operator, u.created_at, m.role
		FROM account_session s JOIN account_user u ON u.id = s.user_id LEFT JOIN account_member m ON m.user_id = u.id AND m.organisation = s.organisation
		WHERE s.hash = ?`, []any{hashOf(token)}, &id.Session, &id.Organisation, &used, &expires, &id.User.ID, &id.User.Email, &id.User.Name, &operator, &created, &role)
	if errors.Is(err, database.ErrNoRow) {
		return Identity{}, ErrNoIdentity
	}
	if err != nil {
		return Identity{}, err
	}
	now := s.cfg.Now()
	if now.After(database.Time(expires)) || now.Sub(database.Time(used)) > s.cfg.SessionIdle {
		return Identity{}, ErrNoIdentity
	}
	id.User.Operator, id.User.CreatedAt = operator == 1, database.Time(created)
	id.Scopes, id.token = allScopes(), token
	if role != nil {
		id.Role = Role(*role)
	} else if err := s.moveSession(ctx, &id); err != nil { // the user left the organisation
		return Identity{}, err
	}
	if now.Sub(database.Time(used)) > usedEvery {
		err = s.db.Write(ctx, func(tx *database.Tx) error {
			return tx.Exec(ctx, `UPDATE account_session SET used_at = ? WHERE id = ?`, database.Micros(now), id.Session)
		})
	}
	return id, err
}

// moveSession moves a session to an organisation that its user belongs to.
func (s *Service) moveSession(ctx context.Context, id *Identity) error {
	mine, err := s.Organisations(ctx, id.User.ID)
	if err != nil {
		return err
	}
	id.Organisation, id.Role = "", ""
	if len(mine) > 0 {
		id.Organisation, id.Role = mine[0].ID, mine[0].Role
	}
	return s.setOrganisation(ctx, id.Session, id.Organisation)
}

func (s *Service) setOrganisation(ctx context.Context, session, organisation string) error {
	return s.db.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `UPDATE account_session SET organisation = ? WHERE id = ?`, organisation, session)
	})
}

// Switch makes a session act for another organisation of its user. The error is ErrNotFound if the user does not belong to it.
func (s *Service) Switch(ctx context.Context, by Identity, organisation string) error {
	if _, err := s.roleOf(ctx, organisation, by.User.ID); err != nil {
		return err
	}
	return s.setOrganisation(ctx, by.Session, organisation)
}

// SignOut ends the session of a request.
func (s *Service) SignOut(ctx context.Context, by Identity) error {
	return s.Revoke(ctx, by, by.Session)
}

// Revoke ends one of the user's sessions.
func (s *Service) Revoke(ctx context.Context, by Identity, session string) error {
	return s.db.Write(ctx, func(tx *database.Tx) error {
		n, err := tx.Changed(ctx, `DELETE FROM account_session WHERE id = ? AND user_id = ?`, session, by.User.ID)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
	})
}

// Sessions returns the user's sessions, the newest first.
func (s *Service) Sessions(ctx context.Context, by Identity) (list []Session, err error) {
	now := s.cfg.Now()
	args := []any{by.User.ID, database.Micros(now), database.Micros(now.Add(-s.cfg.SessionIdle))}
	err = s.db.Each(ctx, `SELECT id, agent, created_at, used_at, expires_at FROM account_session WHERE user_id = ? AND expires_at > ? AND used_at > ? ORDER BY id DESC`, args, func(scan func(...any) error) error {
		var one Session
		var created, used, expires int64
		err := scan(&one.ID, &one.Agent, &created, &used, &expires)
		one.CreatedAt, one.UsedAt, one.ExpiresAt, one.Current = database.Time(created), database.Time(used), database.Time(expires), one.ID == by.Session
		list = append(list, one)
		return err
	})
	return list, err
}

// FormToken returns what the forms of a session contain, so that a form of another site is refused. It follows from the token of the session, which other sites do
// not know.
func (id Identity) FormToken() string {
	if id.token == "" {
		return ""
	}
	return hashOf("form " + id.token)[:32]
}

// CheckForm refuses a form without the token of its session with ErrForgery.
func (id Identity) CheckForm(given string) error {
	want := id.FormToken()
	if want == "" || subtle.ConstantTimeCompare([]byte(given), []byte(want)) != 1 {
		return ErrForgery
	}
	return nil
}

// hashOf returns a secret as it is stored. Secrets have 128 random bits or more, so a plain hash protects them.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
