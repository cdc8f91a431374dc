// Package migrate takes over the database of the program that this service replaces: SQLite, as it was before jobs had retries. Nothing in it is changed, and nothing is lost:
// accounts, videos, campaigns, recipients, tokens with their addresses and downloads, copies, and failed jobs with what they said. Running it again changes nothing.
//
// Two things cannot be taken over. Passwords: each account gets a new one, which is returned. Invisible marks of the old program: they are of another kind, and copies that exist
// keep them; a manual retry, or a new campaign, makes copies with marks that Detect reads.
package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

// A Report says what was taken over.
type Report struct {
	Accounts  int
	Campaigns int
	Tokens    int
	Known     int               // campaigns that were taken over before
	Passwords map[string]string // of accounts that are new, by their e-mail addresses
}

// An Import is one run.
type Import struct {
	Old       *database.DB
	Folder    string // of the files, if the old database has relative paths
	Accounts  *account.Service
	Campaigns *campaign.Service
}

// Run takes over everything.
func (m *Import) Run(ctx context.Context) (r Report, err error) {
	r.Passwords = map[string]string{}
	owners, err := m.owners(ctx, &r)
	if err != nil {
		return r, err
	}
	if err := m.assets(ctx, owners); err != nil {
		return r, err
	}
	list, err := m.campaigns(ctx, owners)
	if err != nil {
		return r, err
	}
	for _, a := range list {
		if err := m.fill(ctx, &a); err != nil {
			return r, fmt.Errorf("campaign %s: %w", a.ID, err)
		}
		fresh, err := m.Campaigns.Adopt(ctx, a)
		if err != nil {
			return r, fmt.Errorf("campaign %s: %w", a.ID, err)
		}
		if !fresh {
			r.Known++
			continue
		}
		r.Campaigns++
		r.Tokens += len(a.Tokens)
	}
	return r, nil
}

// owners returns the organisation of each old account.
func (m *Import) owners(ctx context.Context, r *Report) (map[string]string, error) {
	type person struct{ id, email, name string }
	var people []person
	err := m.Old.Each(ctx, `SELECT id, email, name FROM accounts ORDER BY created_at, id`, nil, func(scan func(...any) error) error {
		var p person
		err := scan(&p.id, &p.email, &p.name)
		people = append(people, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("this is not the database of the old program: %w", err)
	}
	owners := map[string]string{}
	for _, p := range people {
		password := rand.Text()
		user, err := m.Accounts.SignUp(ctx, account.SignUp{Email: p.email, Name: p.name, Password: password})
		switch {
		case err == nil:
			r.Accounts++
			r.Passwords[user.Email] = password
		case errors.Is(err, account.ErrTaken):
			if user, err = m.Accounts.UserByEmail(ctx, p.email); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("account %s: %w", p.email, err)
		}
		of, err := m.Accounts.Organisations(ctx, user.ID)
		if err != nil {
			return nil, err
		}
		if len(of) == 0 {
			return nil, fmt.Errorf("account %s belongs to no organisation", p.email)
		}
		owners[p.id] = of[0].ID
	}
	return owners, nil
}

// assets takes over all videos, those included that no campaign uses.
func (m *Import) assets(ctx context.Context, owners map[string]string) error {
	type row struct {
		asset campaign.Asset
		owner string
		file  string
	}
	var list []row
	err := m.Old.Each(ctx, `SELECT id, account_id, title, original_path, file_size_bytes, COALESCE(duration_secs, 0), COALESCE(resolution_w, 0), COALESCE(resolution_h, 0), created_at FROM assets ORDER BY created_at, id`, nil, func(scan func(...any) error) error {
		var a row
		var seconds float64
		var created string
		err := scan(&a.asset.ID, &a.owner, &a.asset.Name, &a.file, &a.asset.Size, &seconds, &a.asset.Width, &a.asset.Height, &created)
		if err == nil {
			a.asset.Duration = time.Duration(seconds * float64(time.Second))
			a.asset.CreatedAt, err = readTime(created)
		}
		list = append(list, a)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range list {
		if err := m.Campaigns.AdoptAsset(ctx, owners[a.owner], a.asset, m.path(a.file)); err != nil {
			return fmt.Errorf("video %s: %w", a.asset.ID, err)
		}
	}
	return nil
}

// campaigns returns the old campaigns without their tokens.
func (m *Import) campaigns(ctx context.Context, owners map[string]string) (list []campaign.Adoption, err error) {
	err = m.Old.Each(ctx, `SELECT c.id, c.account_id, c.name, COALESCE(c.max_downloads, 0), COALESCE(c.expires_at, ''), c.visible_wm, c.invisible_wm, c.created_at, COALESCE(c.published_at, ''),
			a.id, a.title, a.original_path, a.file_size_bytes, COALESCE(a.duration_secs, 0), COALESCE(a.resolution_w, 0), COALESCE(a.resolution_h, 0), a.created_at
		FROM campaigns c JOIN assets a ON a.id = c.asset_id ORDER BY c.created_at, c.id`, nil, func(scan func(...any) error) error {
		var a campaign.Adoption
		var of, expires, created, published, uploaded string
		var visible, invisible int
		var seconds float64
		err := scan(&a.ID, &of, &a.Name, &a.MaxDownloads, &expires, &visible, &invisible, &created, &published,
			&a.Video.ID, &a.Video.Name, &a.VideoFile, &a.Video.Size, &seconds, &a.Video.Width, &a.Video.Height, &uploaded)
		if err != nil {
			return err
		}
		a.Owner, a.Visible, a.Invisible, a.VideoFile = owners[of], visible != 0, invisible != 0, m.path(a.VideoFile)
		a.Video.Duration = time.Duration(seconds * float64(time.Second))
		for _, field := range []struct {
			text string
			into *time.Time
		}{{expires, &a.ExpiresAt}, {created, &a.CreatedAt}, {published, &a.PublishedAt}, {uploaded, &a.Video.CreatedAt}} {
			if *field.into, err = readTime(field.text); err != nil {
				return err
			}
		}
		list = append(list, a)
		return nil
	})
	return list, err
}

// fill adds the tokens of a campaign, with the last job of each.
func (m *Import) fill(ctx context.Context, a *campaign.Adoption) error {
	return m.Old.Each(ctx, `SELECT t.id, r.name, r.email, t.download_count, COALESCE(t.watermarked_path, ''), t.state,
			COALESCE((SELECT j.state FROM jobs j WHERE j.token_id = t.id AND j.job_type <> 'detect' ORDER BY j.created_at DESC, j.id DESC LIMIT 1), ''),
			COALESCE((SELECT j.error_message FROM jobs j WHERE j.token_id = t.id AND j.job_type <> 'detect' ORDER BY j.created_at DESC, j.id DESC LIMIT 1), '')
		FROM download_tokens t JOIN recipients r ON r.id = t.recipient_id WHERE t.campaign_id = ? ORDER BY t.created_at, t.id`, []any{a.ID}, func(scan func(...any) error) error {
		var t campaign.AdoptedToken
		var state, job, said string
		if err := scan(&t.ID, &t.Name, &t.Email, &t.Downloads, &t.CopyFile, &state, &job, &said); err != nil {
			return err
		}
		t.Secret = t.ID // the address of the old download was its id
		if t.CopyFile != "" {
			t.CopyFile = m.path(t.CopyFile)
		}
		if job == "FAILED" {
			t.CopyFile, t.Failure = "", said
			if said == "" {
				t.Failure = "the job failed without a message"
			}
		}
		a.Tokens = append(a.Tokens, t)
		return nil
	})
}

// path returns where a file of the old program is.
func (m *Import) path(text string) string {
	if filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(m.Folder, text)
}

// readTime reads a time as SQLite writes it; an empty text is no time.
func readTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", text)
}
