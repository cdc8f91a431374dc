package campaign

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// An Adoption is a campaign of another program, with its asset and tokens, whose ids are kept.
type Adoption struct {
	Campaign  // ID, Owner, Asset, Name, Visible, Invisible, MaxDownloads, ExpiresAt, CreatedAt, PublishedAt
	Video     Asset
	VideoFile string // path; it is copied
	Tokens    []AdoptedToken
}

// An AdoptedToken is a token with its copy or its failure.
type AdoptedToken struct {
	ID, Name, Email string
	Secret          string // the last part of its address, which stays as it was
	Downloads       int
	CopyFile        string // path of its copy, which is copied; empty: there is none
	Failure         string // what its failed job said; empty: it has not failed
}

// Adopt takes over a campaign: all of it or nothing. It returns false if the campaign was taken over before, and changes nothing then. Every token gets a job, so that its state
// follows from the job as that of any other: the job of a copy that exists completes at once, and that of a copy that had failed fails with the same text and can be retried by
// hand.
func (s *Service) Adopt(ctx context.Context, a Adoption) (bool, error) {
	known := 0
	if err := s.cfg.DB.One(ctx, `SELECT COUNT(*) FROM watermark_campaign WHERE id = ?`, []any{a.ID}, &known); err != nil || known > 0 {
		return false, err
	}
	if err := s.AdoptAsset(ctx, a.Owner, a.Video, a.VideoFile); err != nil {
		return false, err
	}
	for _, t := range a.Tokens {
		if t.CopyFile == "" {
			continue
		}
		if err := adoptFile(t.CopyFile, s.copyPath(t.ID)); err != nil {
			return false, err
		}
	}
	adopted := false
	err := s.cfg.DB.Write(ctx, func(tx *database.Tx) (err error) {
		adopted, err = s.adopt(ctx, tx, a)
		return err
	})
	return adopted && err == nil, err
}

// AdoptAsset takes over an asset of another program, whose id is kept. One that was taken over before is left as it is.
func (s *Service) AdoptAsset(ctx context.Context, owner string, v Asset, file string) error {
	v.file = v.ID
	if err := adoptFile(file, s.assetPath(v)); err != nil {
		return err
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO watermark_asset (id, owner, name, file, size, width, height, duration_ms, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			v.ID, owner, v.Name, v.file, v.Size, v.Width, v.Height, v.Duration.Milliseconds(), database.Micros(v.CreatedAt))
	})
}

func (s *Service) adopt(ctx context.Context, tx *database.Tx, a Adoption) (bool, error) {
	group := ""
	if !a.PublishedAt.IsZero() {
		group = holdfast.NewID().String()
	}
	n, err := tx.Changed(ctx, `INSERT INTO watermark_campaign (id, owner, asset, name, visible, invisible, max_downloads, expires_at, created_at, published_at, job_group) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		a.ID, a.Owner, a.Video.ID, a.Name, flag(a.Visible), flag(a.Invisible), a.MaxDownloads, database.Micros(a.ExpiresAt), database.Micros(a.CreatedAt), database.Micros(a.PublishedAt), group)
	if err != nil || n == 0 {
		return false, err
	}
	for i, t := range a.Tokens {
		err := tx.Exec(ctx, `INSERT INTO watermark_token (id, campaign, place, name, email, secret, job, downloads, served, last_download) VALUES (?, ?, ?, ?, ?, ?, '', ?, 0, 0)`,
			t.ID, a.ID, i, t.Name, t.Email, t.Secret, t.Downloads)
		if err != nil {
			return false, err
		}
	}
	if group == "" {
		return true, nil
	}
	return true, s.adoptJobs(ctx, tx, a, group)
}

// adoptJobs makes the jobs of a published campaign.
func (s *Service) adoptJobs(ctx context.Context, tx *database.Tx, a Adoption, name string) error {
	group, err := holdfast.ParseID(name)
	if err != nil {
		return err
	}
	jobs := s.cfg.Jobs.In(tx.Tx)
	work, unfinished := make([]Copy, len(a.Tokens)), false
	for i, t := range a.Tokens {
		work[i] = Copy{Campaign: a.ID, Token: t.ID, Adopted: t.CopyFile != "", Failure: t.Failure}
		unfinished = unfinished || t.CopyFile == "" && t.Failure == ""
	}
	g := holdfast.Group{ID: group, Owner: a.Owner, Name: a.Name}
	if unfinished { // its owner does not know the outcome yet
		g.Then = []holdfast.Then{continuation(a.Owner)}
	}
	if _, err := jobs.CreateGroup(ctx, g); err != nil {
		return err
	}
	receipts, err := holdfast.EnqueueAll(ctx, jobs, work, func(d *holdfast.Draft) { d.Queue, d.Owner, d.Group = Queue, a.Owner, group })
	if err != nil {
		return err
	}
	for i, r := range receipts {
		if err := tx.Exec(ctx, `UPDATE watermark_token SET job = ? WHERE id = ?`, r.ID.String(), a.Tokens[i].ID); err != nil {
			return err
		}
	}
	return jobs.SealGroup(ctx, group)
}

// adoptFile copies a file, unless it was copied before.
func adoptFile(from, to string) error {
	if exists(to) {
		return nil
	}
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the job of a copy says that its source is missing
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.CreateTemp(filepath.Dir(to), ".copy-*.unfinished")
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err == nil {
		err = os.Rename(target.Name(), to)
	}
	if err != nil {
		_ = os.Remove(target.Name())
	}
	return err
}
