// Package service is the screenshot service without its faces: shots are accepted and paid with credits, made by browsers, kept, retried, cancelled and deleted. The API and
// the pages call it.
//
// A shot is a job of the engine; there is no other record of it. Its credits are reserved in the transaction that enqueues it, captured in the transaction that completes it, and
// released by a duty that follows the events of jobs.
package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/internal/notice"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/credit"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A Camera makes pictures; *browser.Pool is one.
type Camera interface {
	Take(ctx context.Context, o shot.Options) (*shot.Picture, error)
	Probe(ctx context.Context) error
	Status() browser.Status
}

// Config is what a service needs and what it is set to.
type Config struct {
	Jobs     store.Store
	Operator *ops.Service
	DB       *database.DB
	Bucket   blob.Store
	Camera   Camera
	Guard    *safehttp.Guard // for webhooks and the addresses of pages
	Limits   shot.Limits
	Retries  Retries
	Mailer   *notice.Mailer // nil: operators get no mail
	Stream   Publisher      // of retry events; nil: none
	Log      *slog.Logger
	Email    func(ctx context.Context, user string) (string, error) // the e-mail address of a user, for Retries.Users

	Crashes    int           // workers that a shot may lose
	Learned    bool          // retries that experience says will fail are not made
	KeepFiles  time.Duration // how long pictures are kept; 0: for ever
	LinkLife   time.Duration // of links to pictures; 15 min when zero
	Base       string        // address of the service in links, without a slash at the end; empty: links are relative
	Welcome    int64         // credits of a new organisation
	Tick       time.Duration // interval of the duties that follow events; 250 ms when zero
	StuckAfter time.Duration // how long a shot must have been processed before it may be taken away from its worker; 30 min when zero
}

// A Service has all shots. It is safe for concurrent use.
type Service struct {
	cfg      Config
	jobs     store.Store
	ledger   *credit.Ledger
	log      *slog.Logger
	secret   []byte // signs links
	hooks    notice.Hooks
	nudge    chan struct{}
	counts   counts
	attempts attempts
}

var schema = database.Schema{Name: "screenshot", Steps: []string{`
CREATE TABLE screenshot_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE screenshot_cache (owner TEXT NOT NULL, digest TEXT NOT NULL, job TEXT NOT NULL, made_at BIGINT NOT NULL, PRIMARY KEY (owner, digest));
`}}

// New makes the tables of the service and returns it.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.LinkLife <= 0 {
		cfg.LinkLife = 15 * time.Minute
	}
	if cfg.StuckAfter <= 0 {
		cfg.StuckAfter = 30 * time.Minute
	}
	if cfg.Tick <= 0 {
		cfg.Tick = 250 * time.Millisecond
	}
	cfg.Limits = cfg.Limits.WithDefaults()
	cfg.Limits.HTML = min(cfg.Limits.HTML, 512<<10) // it is stored with the job
	if cfg.Limits.CheckURL == nil {
		cfg.Limits.CheckURL = cfg.Guard.Check
	}
	s := &Service{cfg: cfg, jobs: cfg.Jobs, log: cfg.Log, nudge: make(chan struct{}, 1)}
	var err error
	if s.ledger, err = credit.Open(ctx, cfg.DB); err != nil {
		return nil, err
	}
	if err := errors.Join(cfg.DB.Migrate(ctx, schema), cfg.DB.Migrate(ctx, budgetSchema), cfg.DB.Migrate(ctx, endpointSchema)); err != nil {
		return nil, err
	}
	if s.secret, err = s.linkSecret(ctx); err != nil {
		return nil, err
	}
	s.hooks = notice.Hooks{Guard: cfg.Guard, Secret: s.secret}
	return s, s.jobs.Apply(ctx, store.Change{Listen: []store.Listener{{Name: "screenshot", Events: []string{"*"}}}})
}

// Ledger returns the credits.
func (s *Service) Ledger() *credit.Ledger { return s.ledger }

// Welcome gives a new organisation its first credits, in the transaction that makes it.
func (s *Service) Welcome(ctx context.Context, tx *database.Tx, organisation string) error {
	if s.cfg.Welcome <= 0 {
		return nil
	}
	_, err := s.ledger.Grant(ctx, tx, credit.Gift{Owner: organisation, Amount: s.cfg.Welcome, Once: "welcome", Note: "welcome"})
	return err
}

// linkSecret returns the key that signs links: the same in all processes.
func (s *Service) linkSecret(ctx context.Context) (key []byte, err error) {
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // it never fails
	text := ""
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		if err := tx.Exec(ctx, `INSERT INTO screenshot_setting (name, value) VALUES ('link key', ?) ON CONFLICT (name) DO NOTHING`, hex.EncodeToString(fresh)); err != nil {
			return err
		}
		return tx.One(ctx, `SELECT value FROM screenshot_setting WHERE name = 'link key'`, nil, &text)
	})
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}

// An Error is a refusal of the service, with its code.
type Error struct {
	Code    string
	Message string               // empty: that of the code
	Fields  []shot.FieldError    // of a request
	Short   *credit.Insufficient // with INSUFFICIENT_CREDITS
	After   time.Duration        // the client may try again after this time
	Cause   error                // for the log
}

// Error is for people.
func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return code.Of(e.Code).Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

var errNoShot = &Error{Code: code.NotFound, Message: "There is no such screenshot. Check the id; records are deleted after their retention time."}

// invalid returns the refusal of a request with a wrong field.
func invalid(field, format string, args ...any) *Error {
	problem := fmt.Sprintf(format, args...)
	return &Error{Code: code.Validation, Message: field + ": " + problem, Fields: []shot.FieldError{{Field: field, Problem: problem}}}
}

// explain returns the refusal for an error of the store.
func explain(err error) error {
	refused := (*holdfast.Error)(nil)
	switch {
	case err == nil, errors.As(err, new(*Error)):
		return err
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return errNoShot
	case errors.Is(err, holdfast.ErrUnavailable):
		return &Error{Code: code.SystemStorage, After: 5 * time.Second, Cause: err}
	case errors.Is(err, holdfast.ErrInvalid) && errors.As(err, &refused):
		return &Error{Code: code.Validation, Message: refused.Message, Cause: err}
	}
	return err
}

// own returns a job of an organisation. That of another one, or of another kind, does not exist.
func (s *Service) own(ctx context.Context, owner string, id holdfast.ID) (holdfast.Job, error) {
	job, err := s.jobs.Job(ctx, id)
	if err != nil {
		return job, explain(err)
	}
	if owner != "" && job.Owner != owner || job.Kind != (Screenshot{}).Kind() && job.Kind != (PDF{}).Kind() {
		return job, errNoShot
	}
	return job, nil
}

// wake makes the duty that follows events run soon.
func (s *Service) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}
