package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
)

// An Asset is a video from which copies are made.
type Asset struct {
	ID            string
	Owner         string
	Name          string
	Size          int64
	Width, Height int
	Duration      time.Duration
	CreatedAt     time.Time

	file string
}

// AddAsset takes over a file that was uploaded, if it is a video that can be marked. The file must be in a folder of the same disk; it is moved. Errors have the codes of
// package media.
func (s *Service) AddAsset(ctx context.Context, owner, name, path string) (Asset, error) {
	name, err := cleanName("the name of the video", name)
	if err != nil {
		return Asset{}, err
	}
	v, err := s.cfg.Tools.Probe(ctx, path)
	if err != nil {
		return Asset{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Asset{}, err
	}
	a := Asset{ID: holdfast.NewID().String(), Owner: owner, Name: name, Size: info.Size(), Width: v.Width, Height: v.Height, Duration: v.Duration, CreatedAt: s.cfg.Now().UTC()}
	a.file = a.ID
	if err := os.Rename(path, s.assetPath(a)); err != nil {
		return Asset{}, err
	}
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `INSERT INTO watermark_asset (id, owner, name, file, size, width, height, duration_ms, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			a.ID, owner, name, a.file, a.Size, a.Width, a.Height, a.Duration.Milliseconds(), database.Micros(a.CreatedAt))
	})
	if err != nil {
		return Asset{}, errors.Join(err, os.Remove(s.assetPath(a)))
	}
	return a, nil
}

// AddSample adds a clip that FFmpeg makes, to try the service with.
func (s *Service) AddSample(ctx context.Context, owner string) (Asset, error) {
	path := filepath.Join(s.cfg.Folder, UploadFolder, "sample-"+holdfast.NewID().String())
	defer func() { _ = os.Remove(path) }() // nothing is there after it was moved
	if err := s.cfg.Tools.Sample(ctx, path); err != nil {
		return Asset{}, err
	}
	return s.AddAsset(ctx, owner, "Sample clip", path)
}

func (s *Service) assetPath(a Asset) string { return filepath.Join(s.cfg.Folder, assetFolder, a.file) }

const assetColumns = `id, owner, name, file, size, width, height, duration_ms, created_at`

func scanAsset(scan func(...any) error) (a Asset, err error) {
	var millis, created int64
	err = scan(&a.ID, &a.Owner, &a.Name, &a.file, &a.Size, &a.Width, &a.Height, &millis, &created)
	a.Duration, a.CreatedAt = time.Duration(millis)*time.Millisecond, database.Time(created)
	return a, err
}

// Asset returns an asset of an owner. The error is ErrNotFound if there is none.
func (s *Service) Asset(ctx context.Context, owner, id string) (a Asset, err error) {
	err = ErrNotFound
	each := s.cfg.DB.Each(ctx, `SELECT `+assetColumns+` FROM watermark_asset WHERE id = ? AND owner = ?`, []any{id, owner}, func(scan func(...any) error) error {
		a, err = scanAsset(scan)
		return err
	})
	return a, errors.Join(each, err)
}

// Assets returns the newest assets of an owner, at most limit.
func (s *Service) Assets(ctx context.Context, owner string, limit int) (list []Asset, err error) {
	err = s.cfg.DB.Each(ctx, `SELECT `+assetColumns+` FROM watermark_asset WHERE owner = ? ORDER BY created_at DESC, id DESC LIMIT ?`, []any{owner, limit}, func(scan func(...any) error) error {
		a, err := scanAsset(scan)
		list = append(list, a)
		return err
	})
	return list, err
}
