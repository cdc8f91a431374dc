package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
	"zombiezen.com/go/sqlite"
)

// tokenLeap is by how much a restore raises tokens: more than the number of claims of one job between a backup and its
// restore.
const tokenLeap = 1 << 20

// Backup copies the store into a new file as it is at one moment, while other calls continue. Everything that was
// acknowledged before the call is in the copy. The file gets its name when it is complete and on disk: a failed backup
// leaves no file.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := checkUnused(path); err != nil {
		return err
	}
	return explain(writeNewFile(path, func(part string) error {
		return copyDatabase(ctx, s.writer.cfg.Path, part)
	}))
}

// Restore creates a store from a backup, in a new file. No token that a worker has ever received is given out again:
// the tokens of all live jobs are raised by tokenLeap, so a settlement by a worker of the lost store is refused, and
// the leases that the backup contains expire. The restore is recorded in the story of the subject "store".
func Restore(ctx context.Context, backup, path string) error {
	for _, name := range []string{path, path + "-wal", path + "-journal"} { // SQLite would use the log of another file as this one's
		if err := checkUnused(name); err != nil {
			return err
		}
	}
	if err := checkBackup(ctx, backup); err != nil {
		return explain(err)
	}
	return explain(writeNewFile(path, func(part string) error {
		if err := copyDatabase(ctx, backup, part); err != nil {
			return err
		}
		return raiseTokens(ctx, part)
	}))
}

// checkUnused refuses a path that exists, or that cannot be a file.
func checkUnused(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	switch _, err := os.Lstat(path); {
	case err == nil:
		return conflict(holdfast.ID{}, "file %s exists: name another, or move it away", filepath.Base(path))
	case !errors.Is(err, fs.ErrNotExist):
		return unavailable("the file cannot be created: check the permissions of its directory", err)
	}
	return nil
}

// checkBackup refuses a file that is damaged, or that is not a backup of a store that this binary can use.
func checkBackup(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return unavailable("the backup cannot be read: check the name of the file and its permissions", err)
	}
	s, err := (&reader{path: path}).open()
	if err != nil {
		return err
	}
	defer s.close()
	s.conn.SetInterrupt(ctx.Done())
	verdict, err := s.queryValue("PRAGMA quick_check(1)")
	if err != nil {
		return err
	}
	if verdict != "ok" {
		return unavailable("the backup is damaged: take another", errors.New(verdict))
	}
	applied, _, err := missingSteps(s, sqltext.Migrations("sqlite"))
	if err == nil && applied.Version == 0 {
		return unavailable("the file is a database, but not a backup of a store: check its name", nil)
	}
	return err
}

// writeNewFile lets write create a file under a temporary name, and gives it its name when it is complete and on disk.
// After a failure no file is left.
func writeNewFile(path string, write func(part string) error) (err error) {
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+holdfast.NewID().String()+".part")
	defer func() {
		for _, left := range []string{"", "-journal", "-wal", "-shm"} {
			_ = os.Remove(part + left) // by now the file has its final name, or is of no use
		}
	}()
	empty, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, privateMode)
	if err != nil {
		return unavailable("the file cannot be created: check the permissions of its directory", err)
	}
	if err := errors.Join(empty.Close(), write(part), syncPath(part)); err != nil {
		return err
	}
	if err := os.Link(part, path); errors.Is(err, fs.ErrExist) {
		return conflict(holdfast.ID{}, "another process has created file %s meanwhile: name another", filepath.Base(path))
	} else if err != nil { // the file system may not support hard links
		if err := errors.Join(checkUnused(path), os.Rename(part, path)); err != nil {
			return err
		}
	}
	if runtime.GOOS == "windows" { // a directory cannot be synced there, and need not be
		return nil
	}
	return syncPath(filepath.Dir(path))
}

// syncPath syncs a file, or the entries of a directory, to disk.
func syncPath(path string) error {
	mode := os.O_RDWR
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// pagesPerStep is how many pages are copied between two checks of the context.
const pagesPerStep = 1000

// copyDatabase copies a database into an empty file, page by page, as it is when the copy begins. A read transaction
// keeps that moment, and no writer waits for it. The copy needs no write-ahead log.
func copyDatabase(ctx context.Context, from, to string) (err error) {
	src, err := (&reader{path: from}).open()
	if err != nil {
		return err
	}
	defer src.close()
	if err := src.runScript("BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
		return err
	}
	dst, err := connect(Config{Path: to}, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.close()) }()
	pages, err := sqlite.NewBackup(dst.conn, "main", src.conn, "main")
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = pages.Step(pagesPerStep)
		}
	}
	if err = errors.Join(err, pages.Close()); err != nil {
		return err
	}
	mode, err := dst.queryValue("PRAGMA journal_mode = DELETE")
	if err == nil && mode != "delete" {
		err = unavailable("the copy could not be completed: try again", nil)
	}
	return err
}

// raiseTokens raises the tokens of all live jobs, and records the restore.
func raiseTokens(ctx context.Context, path string) error {
	s, err := Open(ctx, Config{Path: path, MinFree: -1})
	if err != nil {
		return err
	}
	err = s.writer.write(ctx, func(t *tx) error {
		for _, name := range []string{"raise_token_floor", "raise_ready_tokens", "raise_later_tokens", "raise_deadline_tokens"} {
			if _, err := t.exec(name, tokenLeap); err != nil {
				return err
			}
		}
		leases, err := t.readBatches("batch_expired", int64(math.MaxInt64))
		if err != nil {
			return err
		}
		for _, l := range leases {
			for i := range l.members {
				l.members[i].token += tokenLeap
			}
			jobs, text := l.columns()
			if len(l.members) == 0 { // a damaged batch is left for the integrity check
				continue
			}
			if _, err := t.exec("batch_update", l.id, jobs, text); err != nil {
				return err
			}
		}
		return t.addSubjectEvent("store", "restore", rule.Machine, "from a backup: tokens go on beyond all that were given before")
	})
	return errors.Join(err, s.Close())
}
