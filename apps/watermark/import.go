package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfastdev/holdfast/apps/internal/database"
	"github.com/holdfastdev/holdfast/apps/watermark/migrate"
)

// importOld takes over the database of the program that this service replaces. It works on a copy of it in DATA_DIR, which stays there: it also has what this service does not
// use, such as the log of downloads.
func importOld(ctx context.Context, set settings, file string, out io.Writer, log *slog.Logger) (err error) {
	a, err := open(ctx, set, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	kept := filepath.Join(set.Data, "imported.db")
	for _, suffix := range []string{"", "-wal"} { // the second has what was written last
		if err := copyOver(file+suffix, kept+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("the old database cannot be copied: %w", err)
		}
	}
	old, err := database.Open(ctx, kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	m := migrate.Import{Old: old, Folder: filepath.Dir(file), Accounts: a.accounts, Campaigns: a.campaigns}
	r, err := m.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d accounts, %d campaigns and %d tokens were taken over; %d campaigns were there before.\n", r.Accounts, r.Campaigns, r.Tokens, r.Known)
	for _, email := range slices.Sorted(maps.Keys(r.Passwords)) {
		fmt.Fprintf(out, "The new password of %s is %s\n", email, r.Passwords[email])
	}
	return nil
}

func copyOver(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
