// Package account has the people who use an application: users who sign in with a password, organisations that they belong to, sessions of browsers, and API keys of
// programs. It knows nothing of what the application does.
//
// Its tables are in the database of the jobs (apps/internal/database), so that one transaction can write account data and enqueue a job. Everything that a user
// sees or changes belongs to an organisation: its id is the owner of jobs.
//
// Passwords are stored as argon2id, and secrets of sessions, keys and invitations as SHA-256: what is stored opens nothing.
package account

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/internal/limit"
)

// Errors that tell the user what to do. Errors of the database are returned as they are.
var (
	ErrInvalid     = errors.New("not valid")                                            // wrapped with what is wrong
	ErrTaken       = errors.New("there is already an account with this e-mail address") // of sign-up
	ErrCredentials = errors.New("the e-mail address or the password is not correct")
	ErrTooMany     = errors.New("too many attempts failed; try again in a minute")
	ErrNotFound    = errors.New("there is no such thing in this organisation")
	ErrForbidden   = errors.New("only an admin of the organisation can do this")
	ErrLastAdmin   = errors.New("the organisation needs at least one admin: make another member one first")
	ErrNoIdentity  = errors.New("there is no valid session or API key") // of a request
	ErrForgery     = errors.New("the form is too old or came from another site: open the page again")
)

// Config is what applications decide.
type Config struct {
	// KeyPrefix is the first part of API keys, by which scanners of source code recognise them: lower-case letters.
	KeyPrefix string
	// Founded is called in the transaction that makes an organisation. Optional.
	Founded func(ctx context.Context, tx *database.Tx, organisation string) error
	// SessionLife is how long a session lasts that is used; 30 days when zero. SessionIdle is how long one lasts that is not; 7 days when zero.
	SessionLife, SessionIdle time.Duration
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// A Service has all accounts of an application. It is safe for concurrent use.
type Service struct {
	db      *database.DB
	cfg     Config
	failed  limit.Rates   // sign-ins that failed, by network and by address
	hashing chan struct{} // at most so many passwords are hashed at once: each needs memory
}

const (
	attemptsBurst = 10 // failed sign-ins, then one more each
	attemptsEvery = 6 * time.Second
)

// Open makes the tables and returns the service.
func Open(ctx context.Context, db *database.DB, cfg Config) (*Service, error) {
	if cfg.KeyPrefix == "" {
		return nil, errors.New("account: Config.KeyPrefix is empty")
	}
	if cfg.SessionLife <= 0 {
		cfg.SessionLife = 30 * 24 * time.Hour
	}
	if cfg.SessionIdle <= 0 {
		cfg.SessionIdle = 7 * 24 * time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{db: db, cfg: cfg, failed: limit.Rates{Burst: attemptsBurst, Every: attemptsEvery}, hashing: make(chan struct{}, hashesAtOnce)}
	return s, db.Migrate(ctx, schema)
}

// now returns the time as it is stored.
func (s *Service) now() int64 { return database.Micros(s.cfg.Now()) }

func newID() string { return holdfast.NewID().String() }

var schema = database.Schema{Name: "account", Steps: []string{`
CREATE TABLE account_user (
  id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, name TEXT NOT NULL, password TEXT NOT NULL,
  operator BIGINT NOT NULL, created_at BIGINT NOT NULL
);
CREATE TABLE account_founder (one BIGINT PRIMARY KEY, user_id TEXT NOT NULL);
CREATE TABLE account_organisation (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at BIGINT NOT NULL);
CREATE TABLE account_member (
  organisation TEXT NOT NULL, user_id TEXT NOT NULL, role TEXT NOT NULL, since BIGINT NOT NULL,
  PRIMARY KEY (organisation, user_id)
);
CREATE INDEX account_member_user ON account_member (user_id);
CREATE TABLE account_invitation (
  hash TEXT PRIMARY KEY, organisation TEXT NOT NULL, email TEXT NOT NULL, role TEXT NOT NULL, invited_by TEXT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE TABLE account_session (
  hash TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL, organisation TEXT NOT NULL, agent TEXT NOT NULL,
  created_at BIGINT NOT NULL, used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX account_session_user ON account_session (user_id);
CREATE TABLE account_key (
  id TEXT PRIMARY KEY, hash TEXT NOT NULL, organisation TEXT NOT NULL, user_id TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
  created_at BIGINT NOT NULL, used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, revoked_at BIGINT NOT NULL
);
CREATE INDEX account_key_organisation ON account_key (organisation);
CREATE TABLE account_change (
  id TEXT PRIMARY KEY, organisation TEXT NOT NULL, at BIGINT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL
);
CREATE INDEX account_change_organisation ON account_change (organisation, id);
`}}

// A Change is what a user changed in an organisation.
type Change struct {
	At             time.Time `json:"at"`
	Actor          string    `json:"actor"` // e-mail address
	Action         string    `json:"action"`
	Subject        string    `json:"subject"`
	ID             string    `json:"id"`
	OrganisationID string    `json:"organisationId"`
}

// record writes a line of what users changed.
func (s *Service) record(ctx context.Context, tx *database.Tx, by Identity, action, subject string) error {
	return tx.Exec(ctx, `INSERT INTO account_change (id, organisation, at, actor, action, subject) VALUES (?, ?, ?, ?, ?, ?)`, newID(), by.Organisation, s.now(), by.Name(), action, subject)
}

// Changes returns what users changed in an organisation, the newest first.
func (s *Service) Changes(ctx context.Context, organisation string, limit int) (list []Change, err error) {
	err = s.db.Each(ctx, `SELECT id, organisation, at, actor, action, subject FROM account_change WHERE organisation = ? ORDER BY id DESC LIMIT ?`, []any{organisation, limit}, func(scan func(...any) error) error {
		var c Change
		var at int64
		err := scan(&c.ID, &c.OrganisationID, &at, &c.Actor, &c.Action, &c.Subject)
		c.At = database.Time(at)
		list = append(list, c)
		return err
	})
	return list, err
}
