package campaign

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/mail"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
	"github.com/holdfastdev/holdfast/store"
)

// A Status is the state of a token, as pages show it.
type Status string

// The states of a token.
const (
	TokenPending    Status = "PENDING"
	TokenProcessing Status = "PROCESSING"
	TokenActive     Status = "ACTIVE"
	TokenFailed     Status = "FAILED"
	TokenConsumed   Status = "CONSUMED"
	TokenExpired    Status = "EXPIRED"
)

// A Token is the right of one recipient to download one copy.
type Token struct {
	ID       string // what the mark is made from; it is no secret
	Campaign string
	Name     string // of the recipient
	Email    string
	Secret   string // the last part of the address of the download
	Status   Status

	Percent     float64   // of the work, while it is PROCESSING
	Generation  int       // life of the job: grows with each manual retry
	Retries     int       // by itself, in this generation
	NextRetryAt time.Time // zero: none is planned
	Code        string    // of the last failure
	Error       string    // of the last failure

	Downloads    int
	LastDownload time.Time
	served       int64
	job          string
}

// A Recipient gets a copy.
type Recipient struct{ Name, Email string }

const maxRecipients = 10_000

// AddRecipients adds recipients to a draft, all or none. A recipient of the same name and address as an earlier one is a second copy. Email may be empty.
func (s *Service) AddRecipients(ctx context.Context, owner, id string, list []Recipient) error {
	c, err := s.Campaign(ctx, owner, id)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Name, err = cleanName(fmt.Sprintf("the name of recipient %d", i+1), list[i].Name); err != nil {
			return err
		}
		if list[i].Email == "" {
			continue
		}
		address, err := mail.ParseAddress(list[i].Email)
		if err != nil {
			return fmt.Errorf("%w: the e-mail address %.60q of recipient %d cannot be used", ErrInvalid, list[i].Email, i+1)
		}
		list[i].Email = address.Address
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		published, next := int64(0), 0
		if err := tx.One(ctx, `SELECT published_at FROM watermark_campaign WHERE id = ?`, []any{c.ID}, &published); err != nil {
			return err
		}
		if published != 0 {
			return ErrPublished
		}
		known := 0
		if err := tx.One(ctx, `SELECT COUNT(*), COALESCE(MAX(place) + 1, 0) FROM watermark_token WHERE campaign = ?`, []any{c.ID}, &known, &next); err != nil {
			return err
		}
		if known+len(list) > maxRecipients {
			return fmt.Errorf("%w: a campaign has at most %d recipients", ErrInvalid, maxRecipients)
		}
		for i, r := range list {
			err := tx.Exec(ctx, `INSERT INTO watermark_token (id, campaign, place, name, email, secret, job, downloads, served, last_download) VALUES (?, ?, ?, ?, ?, ?, '', 0, 0, 0)`,
				holdfast.NewID().String(), c.ID, next+i, r.Name, r.Email, rand.Text())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// RemoveRecipient removes a recipient from a draft. The error is ErrNotFound or ErrPublished.
func (s *Service) RemoveRecipient(ctx context.Context, owner, id, token string) error {
	c, err := s.Campaign(ctx, owner, id)
	if err != nil {
		return err
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		published := int64(0)
		if err := tx.One(ctx, `SELECT published_at FROM watermark_campaign WHERE id = ?`, []any{c.ID}, &published); err != nil {
			return err
		}
		if published != 0 {
			return ErrPublished
		}
		n, err := tx.Changed(ctx, `DELETE FROM watermark_token WHERE campaign = ? AND id = ?`, c.ID, token)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
	})
}

const tokenColumns = `id, campaign, name, email, secret, job, downloads, served, last_download`

func scanToken(scan func(...any) error) (t Token, err error) {
	var last int64
	err = scan(&t.ID, &t.Campaign, &t.Name, &t.Email, &t.Secret, &t.job, &t.Downloads, &t.served, &last)
	t.LastDownload = database.Time(last)
	return t, err
}

// Tokens returns the tokens of a campaign in the order in which recipients were added.
func (s *Service) Tokens(ctx context.Context, c Campaign) (list []Token, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT `+tokenColumns+` FROM watermark_token WHERE campaign = ? ORDER BY place`, []any{c.ID}, func(scan func(...any) error) error {
		t, err := scanToken(scan)
		list = append(list, t)
		return err
	})
	if err != nil || c.group == "" {
		for i := range list {
			list[i].Status = TokenPending
		}
		return list, err
	}
	jobs, err := s.jobsOf(ctx, c)
	for i := range list {
		list[i].follow(c, jobs[list[i].job])
	}
	return list, err
}

// jobsOf returns the jobs of a campaign by their ids.
func (s *Service) jobsOf(ctx context.Context, c Campaign) (map[string]holdfast.Job, error) {
	group, err := holdfast.ParseID(c.group)
	if err != nil {
		return nil, err
	}
	all := map[string]holdfast.Job{}
	for f := (store.Filter{Group: group, Limit: 200}); ; {
		jobs, cursor, err := s.cfg.Jobs.Jobs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			all[j.ID.String()] = j
		}
		if cursor == "" {
			return all, nil
		}
		f.Cursor = cursor
	}
}

// follow sets what follows from the campaign and the job of a token.
func (t *Token) follow(c Campaign, job holdfast.Job) {
	t.Status = TokenPending
	t.Retries, t.Generation = max(0, job.Failures), job.Generation
	switch job.State {
	case holdfast.Processing:
		t.Status = TokenProcessing
		if job.Progress != nil {
			t.Percent = job.Progress.Percent
		}
	case holdfast.Complete:
		t.Status = TokenActive
	case holdfast.Failed, holdfast.Cancelled:
		t.Status, t.Retries = TokenFailed, max(0, job.Failures-1)
	case holdfast.Queued:
		if job.Failures > 0 {
			t.NextRetryAt = job.DueAt
		}
	}
	if job.LastFailure != nil && job.State != holdfast.Complete {
		t.Code, t.Error = code.Of(job.LastFailure.Code).Name, detailOf(job.LastFailure)
	}
	switch {
	case c.State == Expired && t.Status == TokenActive:
		t.Status = TokenExpired
	case t.Status == TokenActive && c.MaxDownloads > 0 && t.Downloads >= c.MaxDownloads:
		t.Status = TokenConsumed
	}
}

// Token returns one token of a campaign. The error is ErrNotFound if there is none.
func (s *Service) Token(ctx context.Context, c Campaign, id string) (Token, error) {
	return s.tokenBy(ctx, `campaign = ? AND id = ?`, c.ID, id)
}

func (s *Service) tokenBy(ctx context.Context, condition string, args ...any) (t Token, err error) {
	err = ErrNotFound
	each := s.cfg.DB.Each(ctx, `SELECT `+tokenColumns+` FROM watermark_token WHERE `+condition, args, func(scan func(...any) error) error {
		t, err = scanToken(scan)
		return err
	})
	if err := errors.Join(each, err); err != nil {
		return Token{}, err
	}
	c, err := s.campaign(ctx, t.Campaign)
	if err != nil {
		return Token{}, err
	}
	job := holdfast.Job{}
	if t.job != "" {
		id, err := holdfast.ParseID(t.job)
		if err != nil {
			return Token{}, err
		}
		if job, err = s.cfg.Jobs.Job(ctx, id); err != nil {
			return Token{}, err
		}
	}
	t.follow(c, job)
	return t, nil
}

// copyPath returns where the copy of a token is when it is complete.
func (s *Service) copyPath(token string) string {
	return filepath.Join(s.cfg.Folder, copyFolder, token+".mp4")
}

// BySecret returns the token of a download's address, and its campaign. The error is ErrNotFound if there is none.
func (s *Service) BySecret(ctx context.Context, secret string) (Token, Campaign, error) {
	t, err := s.tokenBy(ctx, `secret = ?`, secret)
	if err != nil {
		return Token{}, Campaign{}, err
	}
	c, err := s.campaign(ctx, t.Campaign)
	return t, c, err
}

// detailOf returns what a failure says: the message of its code, and what FFmpeg or the system printed.
func detailOf(f *holdfast.Failure) string {
	if f.Detail == "" || f.Detail == f.Message {
		return f.Message
	}
	return f.Message + " " + f.Detail
}
