package account

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// A User is a person.
type User struct {
	ID        string    `json:"id"`
	Email     string    `json:"email"`
	Name      string    `json:"name"`
	Operator  bool      `json:"operator"` // runs this service: may use what is for its administration. The first user is one
	CreatedAt time.Time `json:"createdAt"`
}

// A SignUp is a request for an account.
type SignUp struct {
	Email, Password string
	Name            string // empty: the part of the e-mail address before the @
	Organisation    string // the name of the new organisation; empty: that of the user
}

const (
	maxEmail = 254
	maxName  = 100
)

// SignUp makes an account, and an organisation with the user as its admin. The error is ErrTaken, or wraps ErrInvalid.
func (s *Service) SignUp(ctx context.Context, r SignUp) (User, error) {
	email, err := cleanEmail(r.Email)
	if err != nil {
		return User{}, err
	}
	if err := checkPassword(r.Password); err != nil {
		return User{}, err
	}
	local, _, _ := strings.Cut(email, "@")
	name, err := cleanName(r.Name, local)
	if err != nil {
		return User{}, err
	}
	organisation, err := cleanName(r.Organisation, name)
	if err != nil {
		return User{}, err
	}
	hash, err := s.hashPassword(ctx, r.Password)
	if err != nil {
		return User{}, err
	}
	user := User{ID: newID(), Email: email, Name: name, CreatedAt: database.Time(s.now())}
	err = s.db.Write(ctx, func(tx *database.Tx) error {
		founder, err := tx.Changed(ctx, `INSERT INTO account_founder (one, user_id) VALUES (1, ?) ON CONFLICT (one) DO NOTHING`, user.ID)
		if err != nil {
			return err
		}
		user.Operator = founder == 1
		err = tx.Exec(ctx, `INSERT INTO account_user (id, email, name, password, operator, created_at) VALUES (?, ?, ?, ?, ?, ?)`, user.ID, email, name, hash, founder, database.Micros(user.CreatedAt))
		if database.Conflict(err) {
			return ErrTaken
		}
		if err != nil {
			return err
		}
		_, err = s.found(ctx, tx, user, organisation)
		return err
	})
	return user, err
}

// found makes an organisation with a user as its admin.
func (s *Service) found(ctx context.Context, tx *database.Tx, user User, name string) (id string, err error) {
	id = newID()
	if err := tx.Exec(ctx, `INSERT INTO account_organisation (id, name, created_at) VALUES (?, ?, ?)`, id, name, s.now()); err != nil {
		return "", err
	}
	if err := tx.Exec(ctx, `INSERT INTO account_member (organisation, user_id, role, since) VALUES (?, ?, ?, ?)`, id, user.ID, string(Admin), s.now()); err != nil {
		return "", err
	}
	if err := s.record(ctx, tx, Identity{User: user, Organisation: id}, "made the organisation", name); err != nil || s.cfg.Founded == nil {
		return id, err
	}
	return id, s.cfg.Founded(ctx, tx, id)
}

// Found makes another organisation, with the user as its admin, and returns its id.
func (s *Service) Found(ctx context.Context, user User, name string) (id string, err error) {
	name, err = cleanName(name, "")
	if err != nil {
		return "", err
	}
	err = s.db.Write(ctx, func(tx *database.Tx) (err error) {
		id, err = s.found(ctx, tx, user, name)
		return err
	})
	return id, err
}

// User returns a user. The error is ErrNotFound if there is none.
func (s *Service) User(ctx context.Context, id string) (User, error) {
	u, _, err := s.findUser(ctx, "id", id)
	return u, err
}

// UserByEmail returns the user with an e-mail address. The error is ErrNotFound if there is none.
func (s *Service) UserByEmail(ctx context.Context, email string) (User, error) {
	u, _, err := s.findUser(ctx, "email", strings.ToLower(strings.TrimSpace(email)))
	return u, err
}

func (s *Service) findUser(ctx context.Context, column, value string) (u User, password string, err error) {
	var operator, created int64
	err = s.db.One(ctx, `SELECT id, email, name, password, operator, created_at FROM account_user WHERE `+column+` = ?`, []any{value}, &u.ID, &u.Email, &u.Name, &password, &operator, &created)
	if errors.Is(err, database.ErrNoRow) {
		return User{}, "", ErrNotFound
	}
	u.Operator, u.CreatedAt = operator == 1, database.Time(created)
	return u, password, err
}

// authenticate returns the user with an e-mail address and a password. from is the network that asks. The error is ErrCredentials or ErrTooMany; an address without
// an account takes as long as any other.
func (s *Service) authenticate(ctx context.Context, email, password string, from any) (User, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if s.failed.Exhausted(from) || s.failed.Exhausted(email) {
		return User{}, ErrTooMany
	}
	u, stored, err := s.findUser(ctx, "email", email)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return User{}, err
	}
	right, err := s.verifyPassword(ctx, stored, password)
	if err != nil {
		return User{}, err
	}
	if !right {
		s.failed.Allow(from)
		s.failed.Allow(email)
		return User{}, ErrCredentials
	}
	return u, nil
}

// ChangePassword gives a user another password and ends all sessions but that of the request. The error is ErrCredentials, ErrTooMany, or wraps ErrInvalid.
func (s *Service) ChangePassword(ctx context.Context, by Identity, old, password string) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	if _, err := s.authenticate(ctx, by.User.Email, old, "user "+by.User.ID); err != nil {
		return err
	}
	hash, err := s.hashPassword(ctx, password)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *database.Tx) error {
		if err := tx.Exec(ctx, `UPDATE account_user SET password = ? WHERE id = ?`, hash, by.User.ID); err != nil {
			return err
		}
		if err := tx.Exec(ctx, `DELETE FROM account_session WHERE user_id = ? AND id <> ?`, by.User.ID, by.Session); err != nil {
			return err
		}
		return s.record(ctx, tx, by, "changed the password", by.User.Email)
	})
}

func cleanEmail(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	at, err := mail.ParseAddress(text)
	if err != nil || at.Address != text || len(text) > maxEmail {
		return "", fmt.Errorf("%w: give an e-mail address such as ada@example.org", ErrInvalid)
	}
	return text, nil
}

// cleanName returns a name without spaces around it, or otherwise if it is empty.
func cleanName(text, otherwise string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		text = otherwise
	}
	switch {
	case text == "":
		return "", fmt.Errorf("%w: give a name", ErrInvalid)
	case utf8.RuneCountInString(text) > maxName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%w: a name has at most %d characters on one line", ErrInvalid, maxName)
	}
	return text, nil
}
