package campaign

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/code"
)

// A Download is a copy that may be sent.
type Download struct {
	File *os.File // the caller closes it with Close
	Name string   // for the recipient's disk
	Size int64
	Made time.Time

	service  *Service
	token    Token
	limit    int
	reserved int64
}

// OpenDownload opens the copy of a token, found by its secret. Nothing is counted before Begin. The error is ErrNotFound, ErrNotReady or ErrExpired.
func (s *Service) OpenDownload(ctx context.Context, secret string) (*Download, error) {
	t, c, err := s.BySecret(ctx, secret)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Status == TokenExpired || c.State == Expired:
		return nil, ErrExpired
	case t.Status != TokenActive && t.Status != TokenConsumed:
		return nil, ErrNotReady
	}
	file, err := os.Open(s.copyPath(t.ID))
	if err != nil {
		return nil, code.New(code.DiskError, err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, code.New(code.DiskError, err)
	}
	return &Download{File: file, Name: fileName(c.Name) + ".mp4", Size: info.Size(), Made: info.ModTime(), service: s, token: t, limit: c.MaxDownloads}, nil
}

// Begin permits to send length bytes from an offset, before they are sent, or returns ErrConsumed. A part that has the first byte counts as a download. Later parts do not count:
// together they get no more bytes than the counted downloads have, and a quarter more for what was sent twice. Requests at the same time share that.
func (d *Download) Begin(ctx context.Context, offset, length int64) error {
	query, args := `UPDATE watermark_token SET served = served + ? WHERE id = ? AND (? = 0 OR downloads > 0 AND served + ? <= downloads * ?)`,
		[]any{length, d.token.ID, d.limit, length, d.Size + d.Size/4}
	if offset == 0 || d.token.Downloads == 0 {
		query, args = `UPDATE watermark_token SET served = served + ?, downloads = downloads + 1, last_download = ? WHERE id = ? AND (? = 0 OR downloads < ?)`,
			[]any{length, database.Micros(d.service.cfg.Now()), d.token.ID, d.limit, d.limit}
	}
	err := d.service.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		n, err := tx.Changed(ctx, query, args...)
		if err == nil && n == 0 {
			err = ErrConsumed
		}
		return err
	})
	if err == nil {
		d.reserved += length
	}
	return err
}

// Close closes the file, and gives back what was permitted and not sent.
func (d *Download) Close(ctx context.Context, sent int64) error {
	err := d.File.Close()
	left := d.reserved - sent
	if left <= 0 {
		return err
	}
	return errors.Join(err, d.service.cfg.DB.Write(ctx, func(tx *database.Tx) error {
		return tx.Exec(ctx, `UPDATE watermark_token SET served = served - ? WHERE id = ?`, left, d.token.ID)
	}))
}

// fileName makes a name into one that every system accepts.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, name)
}
