package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// A Role is what a member may do in an organisation.
type Role string

// The roles. An admin manages members, keys and money; a member uses the application.
const (
	Admin Role = "admin"
	Plain Role = "member"
)

// An Organisation owns everything that its members make.
type Organisation struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      Role      `json:"role,omitempty"` // of the user that asks
	CreatedAt time.Time `json:"createdAt"`
}

// A Member belongs to an organisation.
type Member struct {
	User  User      `json:"user"`
	Role  Role      `json:"role"`
	Since time.Time `json:"since"`
}

// An Invitation lets a person become a member.
type Invitation struct {
	Organisation string    `json:"organisation"` // its name
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	ExpiresAt    time.Time `json:"expiresAt"`
}

const invitationLife = 7 * 24 * time.Hour

// Organisations returns the organisations of a user, the oldest membership first.
func (s *Service) Organisations(ctx context.Context, user string) (list []Organisation, err error) {
	err = s.db.Each(ctx, `SELECT o.id, o.name, m.role, o.created_at FROM account_member m JOIN account_organisation o ON o.id = m.organisation WHERE m.user_id = ? ORDER BY m.since, o.id`, []any{user}, func(scan func(...any) error) error {
		var o Organisation
		var created int64
		err := scan(&o.ID, &o.Name, &o.Role, &created)
		o.CreatedAt = database.Time(created)
		list = append(list, o)
		return err
	})
	return list, err
}

// Organisation returns an organisation. The error is ErrNotFound if there is none.
func (s *Service) Organisation(ctx context.Context, id string) (Organisation, error) {
	o := Organisation{ID: id}
	var created int64
	err := s.db.One(ctx, `SELECT name, created_at FROM account_organisation WHERE id = ?`, []any{id}, &o.Name, &created)
	if errors.Is(err, database.ErrNoRow) {
		err = ErrNotFound
	}
	o.CreatedAt = database.Time(created)
	return o, err
}

// Members returns the members of an organisation.
func (s *Service) Members(ctx context.Context, organisation string) (list []Member, err error) {
	err = s.db.Each(ctx, `SELECT u.id, u.email, u.name, u.operator, u.created_at, m.role, m.since FROM account_member m JOIN account_user u ON u.id = m.user_id WHERE m.organisation = ? ORDER BY m.since, u.id`, []any{organisation}, func(scan func(...any) error) error {
		var m Member
		var operator, created, since int64
		err := scan(&m.User.ID, &m.User.Email, &m.User.Name, &operator, &created, &m.Role, &since)
		m.User.Operator, m.User.CreatedAt, m.Since = operator == 1, database.Time(created), database.Time(since)
		list = append(list, m)
		return err
	})
	return list, err
}

func (s *Service) roleOf(ctx context.Context, organisation, user string) (role Role, err error) {
	err = s.db.One(ctx, `SELECT role FROM account_member WHERE organisation = ? AND user_id = ?`, []any{organisation, user}, &role)
	if errors.Is(err, database.ErrNoRow) {
		err = ErrNotFound
	}
	return role, err
}

// Invite returns the secret of an invitation, which the caller sends to the person. It is shown once and is valid for seven days. Only admins may invite.
func (s *Service) Invite(ctx context.Context, by Identity, email string, role Role) (secret string, err error) {
	if by.Role != Admin {
		return "", ErrForbidden
	}
	if email, err = cleanEmail(email); err != nil {
		return "", err
	}
	if role != Admin && role != Plain {
		return "", fmt.Errorf("%w: the role is admin or member", ErrInvalid)
	}
	secret = rand.Text()
	expires := s.cfg.Now().Add(invitationLife)
	err = s.db.Write(ctx, func(tx *database.Tx) error {
		if err := tx.Exec(ctx, `DELETE FROM account_invitation WHERE expires_at < ? OR organisation = ? AND email = ?`, s.now(), by.Organisation, email); err != nil {
			return err
		}
		err := tx.Exec(ctx, `INSERT INTO account_invitation (hash, organisation, email, role, invited_by, expires_at) VALUES (?, ?, ?, ?, ?, ?)`, hashOf(secret), by.Organisation, email, string(role), by.User.ID, database.Micros(expires))
		if err != nil {
			return err
		}
		return s.record(ctx, tx, by, "invited", email)
	})
	return secret, err
}

// Invited returns the invitation with a secret. The error is ErrNotFound if it does not exist or has expired.
func (s *Service) Invited(ctx context.Context, secret string) (Invitation, error) {
	var i Invitation
	var expires int64
	err := s.db.One(ctx, `SELECT o.name, i.email, i.role, i.expires_at FROM account_invitation i JOIN account_organisation o ON o.id = i.organisation WHERE i.hash = ? AND i.expires_at > ?`, []any{hashOf(secret), s.now()}, &i.Organisation, &i.Email, &i.Role, &expires)
	if errors.Is(err, database.ErrNoRow) {
		err = ErrNotFound
	}
	i.ExpiresAt = database.Time(expires)
	return i, err
}

// Accept makes the user of a request a member by an invitation, which is used up, and returns the organisation. The invitation must be for the user's e-mail address;
// otherwise the error is ErrNotFound.
func (s *Service) Accept(ctx context.Context, by Identity, secret string) (organisation string, err error) {
	err = s.db.Write(ctx, func(tx *database.Tx) error {
		role := ""
		args := []any{hashOf(secret), s.now(), by.User.Email}
		err := tx.One(ctx, `DELETE FROM account_invitation WHERE hash = ? AND expires_at > ? AND email = ? RETURNING organisation, role`, args, &organisation, &role)
		if errors.Is(err, database.ErrNoRow) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := tx.Exec(ctx, `INSERT INTO account_member (organisation, user_id, role, since) VALUES (?, ?, ?, ?) ON CONFLICT (organisation, user_id) DO NOTHING`, organisation, by.User.ID, role, s.now()); err != nil {
			return err
		}
		by.Organisation = organisation
		return s.record(ctx, tx, by, "joined", by.User.Email)
	})
	return organisation, err
}

// SetRole changes the role of a member; an empty role removes the member. Only admins may, except that members may leave. The error is ErrForbidden, ErrNotFound or
// ErrLastAdmin.
func (s *Service) SetRole(ctx context.Context, by Identity, user string, role Role) error {
	if by.Role != Admin && (role != "" || user != by.User.ID) {
		return ErrForbidden
	}
	if role != Admin && role != Plain && role != "" {
		return fmt.Errorf("%w: the role is admin or member", ErrInvalid)
	}
	return s.db.Write(ctx, func(tx *database.Tx) error {
		// The row of the organisation is the lock: two admins who leave at the same time do so one after the other.
		if err := tx.Exec(ctx, `UPDATE account_organisation SET name = name WHERE id = ?`, by.Organisation); err != nil {
			return err
		}
		change, args := `DELETE FROM account_member WHERE organisation = ? AND user_id = ?`, []any{by.Organisation, user}
		if role != "" {
			change, args = `UPDATE account_member SET role = ? WHERE organisation = ? AND user_id = ?`, []any{string(role), by.Organisation, user}
		}
		n, err := tx.Changed(ctx, change, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrNotFound
		}
		admins := 0
		if err := tx.One(ctx, `SELECT count(*) FROM account_member WHERE organisation = ? AND role = 'admin'`, []any{by.Organisation}, &admins); err != nil {
			return err
		}
		if admins == 0 {
			return ErrLastAdmin
		}
		action := "removed the member"
		if role != "" {
			action = "made " + string(role)
		} else if err := tx.Exec(ctx, `UPDATE account_key SET revoked_at = ? WHERE organisation = ? AND user_id = ? AND revoked_at = 0`, s.now(), by.Organisation, user); err != nil {
			return err
		}
		return s.record(ctx, tx, by, action, user)
	})
}
