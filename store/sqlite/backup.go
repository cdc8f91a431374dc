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
	"zombiezen.com/go/sqlite"
)

// leap is by how much a restore raises tokens: more claims than anybody makes of one job between a backup and its restore.
const leap = 1 << 20

// Backup copies the store into a new file as it is at one moment, while everybody goes on working. All that was acknowledged before it was
// called is in the copy. The file is complete and on disk when it gets its name: a backup that fails leaves none.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := unused(path); err != nil {
		return err
	}
	return explain(appear(path, func(part string) error {
		return duplicate(ctx, s.writer.cfg.Path, part)
	}))
}

// Restore makes a store of a backup, in a new file. No token that was ever given to a worker is given again: those of all live jobs leap
// ahead, so whoever still works for the store that was lost comes too late, and leases that the backup knew run out. The story of the
// subject "store" says that it was restored.
func Restore(ctx context.Context, backup, path string) error {
	for _, name := range []string{path, path + "-wal", path + "-journal"} { // what belonged to another file would be taken for this one's
		if err := unused(name); err != nil {
			return err
		}
	}
	if err := sound(ctx, backup); err != nil {
		return explain(err)
	}
	return explain(appear(path, func(part string) error {
		if err := duplicate(ctx, backup, part); err != nil {
			return err
		}
		return raise(ctx, part)
	}))
}

// unused refuses a name that is taken, and one that cannot be a file's.
func unused(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	switch _, err := os.Lstat(path); {
	case err == nil:
		return conflict(holdfast.ID{}, "there is a file %s already: name another, or move it away", filepath.Base(path))
	case !errors.Is(err, fs.ErrNotExist):
		return unavailable("the file cannot be made there: check the permissions of its directory", err)
	}
	return nil
}

// sound refuses a file that is damaged, or is no backup of a store that this binary knows.
func sound(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return unavailable("there is no backup to be read: check the name of the file, and its permissions", err)
	}
	s, err := (&reader{path: path}).open()
	if err != nil {
		return err
	}
	defer s.close()
	s.conn.SetInterrupt(ctx.Done())
	verdict, err := s.ask("PRAGMA quick_check(1)")
	if err != nil {
		return err
	}
	if verdict != "ok" {
		return unavailable("the backup is damaged: take another", errors.New(verdict))
	}
	version, err := schemaVersion(s)
	if err == nil && version == 0 {
		return unavailable("the file is a database, but no backup of a store: check its name", nil)
	}
	return err
}

// appear lets a file be written under another name, and gives it its own when it is complete and on disk. If that fails nothing is left.
func appear(path string, write func(part string) error) (err error) {
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+holdfast.NewID().String()+".part")
	defer func() {
		for _, left := range []string{"", "-journal", "-wal", "-shm"} {
			_ = os.Remove(part + left) // by now the file has its own name, or is of no use
		}
	}()
	empty, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, private)
	if err != nil {
		return unavailable("the file cannot be made there: check the permissions of its directory", err)
	}
	if err := errors.Join(empty.Close(), write(part), flush(part)); err != nil {
		return err
	}
	if err := os.Link(part, path); errors.Is(err, fs.ErrExist) {
		return conflict(holdfast.ID{}, "somebody else has made a file %s meanwhile: name another", filepath.Base(path))
	} else if err != nil { // not every file system has a second name for a file
		if err := errors.Join(unused(path), os.Rename(part, path)); err != nil {
			return err
		}
	}
	if runtime.GOOS == "windows" { // where a directory cannot be synced, and need not be
		return nil
	}
	return flush(filepath.Dir(path))
}

// flush returns when a file, or the names in a directory, are on disk.
func flush(path string) error {
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

// stride is how many pages are copied between two looks at whether anybody still waits for the copy.
const stride = 1000

// duplicate copies a database into an empty file, page by page, as it is when the copy begins: the transaction that reads it keeps that
// moment, and nobody waits for it. The copy needs no log beside it.
func duplicate(ctx context.Context, from, to string) (err error) {
	src, err := (&reader{path: from}).open()
	if err != nil {
		return err
	}
	defer src.close()
	if err := src.run("BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
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
			more, err = pages.Step(stride)
		}
	}
	if err = errors.Join(err, pages.Close()); err != nil {
		return err
	}
	mode, err := dst.ask("PRAGMA journal_mode = DELETE")
	if err == nil && mode != "delete" {
		err = unavailable("the copy could not be completed: try again", nil)
	}
	return err
}

// raise lifts the tokens of all live jobs, and says in the story that the store was restored.
func raise(ctx context.Context, path string) error {
	s, err := Open(ctx, Config{Path: path, MinFree: -1})
	if err != nil {
		return err
	}
	err = s.writer.write(ctx, func(t *tx) error {
		for _, name := range []string{"raise_token_floor", "raise_ready_tokens", "raise_later_tokens", "raise_deadline_tokens"} {
			if _, err := t.exec(name, leap); err != nil {
				return err
			}
		}
		leases, err := t.readLeases("lease_expired", int64(math.MaxInt64))
		if err != nil {
			return err
		}
		for _, l := range leases {
			for i := range l.members {
				l.members[i].token += leap
			}
			jobs, text := l.columns()
			if len(l.members) == 0 { // a damaged one stays for the audit
				continue
			}
			if _, err := t.exec("lease_update", l.id, jobs, text); err != nil {
				return err
			}
		}
		return t.tellOf("store", "restore", rule.Machine, "from a backup: tokens go on beyond all that were given before")
	})
	return errors.Join(err, s.Close())
}
