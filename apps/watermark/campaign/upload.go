package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/media"
)

// An Upload is a file that arrives in parts. Its file is the record of what has arrived: a part that was cut off counts as far as it came.
type Upload struct {
	ID       string
	Name     string
	Size     int64
	Received int64
}

const (
	uploadLife  = 24 * time.Hour // without a new part
	mostUploads = 20             // of an owner that are not complete
)

// locks are names of which each is held by one caller at a time. The zero value is ready to use.
type locks struct {
	mu   sync.Mutex
	held map[string]bool
}

func (l *locks) take(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] {
		return false
	}
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[name] = true
	return true
}

func (l *locks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, name)
}

// CreateUpload begins an upload of a file of a size. The error wraps ErrInvalid, is ErrTooLarge, or has the code DISK_FULL.
func (s *Service) CreateUpload(ctx context.Context, owner, name string, size int64) (Upload, error) {
	name, err := cleanName("the name of the file", filepath.Base(name))
	switch {
	case err != nil:
		return Upload{}, err
	case size <= 0:
		return Upload{}, fmt.Errorf("%w: the file is empty", ErrInvalid)
	case size > s.cfg.Upload:
		return Upload{}, ErrTooLarge
	}
	if err := media.CheckSpace(s.cfg.Folder, size); err != nil {
		return Upload{}, err
	}
	u := Upload{ID: holdfast.NewID().String(), Name: name, Size: size}
	if err := os.WriteFile(s.uploadPath(u.ID), nil, 0o600); err != nil {
		return Upload{}, err
	}
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		n := 0
		if err := tx.One(ctx, `SELECT COUNT(*) FROM watermark_upload WHERE owner = ?`, []any{owner}, &n); err != nil {
			return err
		}
		if n >= mostUploads {
			return fmt.Errorf("%w: %d uploads are not complete: continue one of them, or wait a day", ErrInvalid, n)
		}
		return tx.Exec(ctx, `INSERT INTO watermark_upload (id, owner, name, size, created_at) VALUES (?, ?, ?, ?, ?)`, u.ID, owner, name, size, database.Micros(s.cfg.Now()))
	})
	if err != nil {
		return Upload{}, errors.Join(err, os.Remove(s.uploadPath(u.ID)))
	}
	return u, nil
}

func (s *Service) uploadPath(id string) string {
	return filepath.Join(s.cfg.Folder, UploadFolder, id+".part")
}

// Upload returns an upload that is not taken yet. The error is ErrNotFound if there is none.
func (s *Service) Upload(ctx context.Context, owner, id string) (Upload, error) {
	u := Upload{ID: id}
	err := s.cfg.DB.One(ctx, `SELECT name, size FROM watermark_upload WHERE id = ? AND owner = ?`, []any{id, owner}, &u.Name, &u.Size)
	if errors.Is(err, database.ErrNoRow) {
		return Upload{}, ErrNotFound
	}
	if err != nil {
		return Upload{}, err
	}
	info, err := os.Stat(s.uploadPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Upload{}, ErrNotFound
	}
	if err != nil {
		return Upload{}, err
	}
	u.Received = info.Size()
	return u, nil
}

// Append adds a part that begins at an offset, and returns the upload as it is then. What arrives before an error is kept. The error is ErrNotFound, ErrOffset or ErrReceiving, or
// that of the body or the disk.
func (s *Service) Append(ctx context.Context, owner, id string, offset int64, body io.Reader) (Upload, error) {
	if !s.appending.take(id) {
		return Upload{}, ErrReceiving
	}
	defer s.appending.release(id)
	u, err := s.Upload(ctx, owner, id)
	if err != nil {
		return u, err
	}
	if offset != u.Received {
		return u, ErrOffset
	}
	file, err := os.OpenFile(s.uploadPath(id), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return u, err
	}
	n, err := io.Copy(file, io.LimitReader(body, u.Size-u.Received))
	u.Received += n
	return u, errors.Join(err, file.Sync(), file.Close())
}

// TakeUpload ends an upload that has arrived completely, and returns the path of its file. The caller moves or removes the file.
func (s *Service) TakeUpload(ctx context.Context, owner, id string) (name, path string, err error) {
	u, err := s.Upload(ctx, owner, id)
	if err != nil {
		return "", "", err
	}
	if u.Received != u.Size {
		return "", "", fmt.Errorf("%w: %d of %d bytes have arrived: choose the file again to continue", ErrInvalid, u.Received, u.Size)
	}
	err = s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		n, err := tx.Changed(ctx, `DELETE FROM watermark_upload WHERE id = ?`, id)
		if err == nil && n == 0 {
			err = ErrNotFound // another request was faster
		}
		return err
	})
	return u.Name, s.uploadPath(id), err
}

// SweepUploads deletes uploads that got no part for a day, and what killed processes left among them.
func (s *Service) SweepUploads(ctx context.Context) error {
	folder := filepath.Join(s.cfg.Folder, UploadFolder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || s.cfg.Now().Sub(info.ModTime()) < uploadLife {
			continue // it was taken, or it is new
		}
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		var gone []string
		err := tx.Each(ctx, `SELECT id FROM watermark_upload WHERE created_at < ?`, []any{database.Micros(s.cfg.Now().Add(-uploadLife))}, func(scan func(...any) error) error {
			id := ""
			err := scan(&id)
			if !exists(s.uploadPath(id)) {
				gone = append(gone, id)
			}
			return err
		})
		for _, id := range gone {
			if err == nil {
				err = tx.Exec(ctx, `DELETE FROM watermark_upload WHERE id = ?`, id)
			}
		}
		return err
	})
}
