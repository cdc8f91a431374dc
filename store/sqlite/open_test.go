package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/sqlite"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// raw opens another connection to the file, as another process would.
func raw(t testing.TB, path string) *zombiezen.Conn {
	t.Helper()
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite|zombiezen.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func run(t testing.TB, conn *zombiezen.Conn, text string) {
	t.Helper()
	for one := range strings.SplitSeq(text, ";") {
		if err := sqlitex.ExecuteTransient(conn, one, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// written creates a store with one job, and closes it.
func written(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), drafts(1)); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// damage overwrites a part of a file.
func damage(t testing.TB, path string, offset int64, with []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(with, offset); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryRefusalToOpenIsOneLineThatSaysWhatToDo(t *testing.T) {
	cases := map[string]struct {
		kind    error
		says    string
		prepare func(t *testing.T) string
	}{
		"no path":           {holdfast.ErrInvalid, "name a file", func(*testing.T) string { return "" }},
		"memory":            {holdfast.ErrInvalid, "name a file", func(*testing.T) string { return ":memory:" }},
		"missing directory": {holdfast.ErrUnavailable, "directory does not exist", func(t *testing.T) string { return filepath.Join(t.TempDir(), "no", "jobs.db") }},
		"a directory":       {holdfast.ErrUnavailable, "is a directory", func(t *testing.T) string { return t.TempDir() }},
		"a file on the way": {holdfast.ErrUnavailable, "a part of its path is a file", func(t *testing.T) string { return filepath.Join(written(t), "jobs.db") }},
		"not a database": {holdfast.ErrUnavailable, "not an SQLite database", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "jobs.db")
			if err := os.WriteFile(path, bytes.Repeat([]byte("these are not jobs\n"), 500), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}},
		"damaged": {holdfast.ErrUnavailable, "restore it from a backup", func(t *testing.T) string {
			path := written(t)
			damage(t, path, 2*4096, bytes.Repeat([]byte{0x5a}, 4096))
			return path
		}},
		"read-only": {holdfast.ErrUnavailable, "write permission", func(t *testing.T) string {
			path := written(t)
			damage(t, path, 18, []byte{3}) // a format that may be read but not written, also by a privileged user
			return path
		}},
		"newer": {holdfast.ErrUnavailable, "migrated by a newer holdfast to version 99, which needs a program that knows version 99 or later; this program knows version ", func(t *testing.T) string {
			path := written(t)
			run(t, raw(t, path), "INSERT INTO holdfast_migration (version, at) VALUES (99, 0)")
			return path
		}},
		"newer, with an older step that needs more": {holdfast.ErrUnavailable, "to version 99, which needs a program that knows version 98 or later; this program knows version ", func(t *testing.T) string {
			path := written(t)
			run(t, raw(t, path), "INSERT INTO holdfast_migration (version, at, needs) VALUES (98, 0, 98), (99, 0, 5)")
			return path
		}},
		"from before the first release": {holdfast.ErrUnavailable, "written by a build from before the first release (schema 4, the oldest that can be upgraded is ", func(t *testing.T) string {
			path := written(t)
			run(t, raw(t, path), "DELETE FROM holdfast_migration WHERE version > 5; UPDATE holdfast_migration SET version = 4")
			return path
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := c.prepare(t)
			store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
			if err == nil {
				_ = store.Close()
				t.Fatal("it opened")
			}
			expectLine(t, err, c.kind, c.says)
			if path != "" && strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("the line gives the path away: %v", err)
			}
		})
	}
}

func expectLine(t testing.TB, err, kind error, says string) {
	t.Helper()
	said := (*holdfast.Error)(nil)
	if !errors.As(err, &said) || !errors.Is(err, kind) {
		t.Fatalf("%v (%T) is not %v", err, err, kind)
	}
	if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not one line that says %q", err.Error(), says)
	}
}

func TestAFileLockedForGoodIsRefusedAfterAWhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	other := raw(t, path)
	run(t, other, "CREATE TABLE theirs (x); BEGIN EXCLUSIVE")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		expectLine(t, err, holdfast.ErrUnavailable, "locked by another process")
		if waited := time.Since(start); waited < 9*time.Second || waited > 12*time.Second {
			t.Errorf("it gave up after %v, wanted about ten seconds", waited)
		}
	})
	run(t, other, "COMMIT")
	reopen(t, path)
}

func TestManyProcessesMayOpenANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	stores := make([]*sqlite.Store, 8)
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			store, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := store.Enqueue(context.Background(), drafts(10)); err != nil {
				t.Error(err)
			}
			stores[i] = store
		})
	}
	all.Wait()
	for _, store := range stores {
		if store == nil {
			t.Fatal("not all could open it")
		}
		if n := count(t, store, holdfast.Queued); n != 80 {
			t.Errorf("one of them sees %d jobs of 80", n)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

func count(t testing.TB, store *sqlite.Store, state holdfast.State) (n int) {
	t.Helper()
	counts, err := store.Counts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		if c.State == state {
			n += c.Jobs
		}
	}
	return n
}

func healthy(t testing.TB, store *sqlite.Store) {
	t.Helper()
	if findings, err := store.CheckIntegrity(context.Background()); err != nil || len(findings) > 0 {
		t.Errorf("integrity check: %v %v", findings, err)
	}
}

func TestAClosedStoreRefusesAndLeavesNothingRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		store, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var awaiting sync.WaitGroup
		awaiting.Go(func() {
			if _, err := store.Await(context.Background(), []string{"default"}, time.Hour); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("await in a store that closes: %v", err)
			}
		})
		synctest.Wait()
		if err := errors.Join(store.Close(), store.Close()); err != nil {
			t.Error(err)
		}
		awaiting.Wait()
		_, err = store.Enqueue(t.Context(), drafts(1))
		expectLine(t, err, holdfast.ErrUnavailable, "closed")
		_, err = store.Counts(t.Context())
		expectLine(t, err, holdfast.ErrUnavailable, "closed")
	})
}

// modes returns the modes of the files of a store, by the suffix of their names.
func modes(t testing.TB, path string) map[string]os.FileMode {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		modes[strings.TrimPrefix(name, path)] = info.Mode().Perm()
	}
	return modes
}

func TestTheFilesOfAStoreAreForTheirUserAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // files inherit their permissions there
	}
	v := newVault(t)
	v.enqueue(3)
	v.must(v.store.Backup(t.Context(), v.at("backup.db")))
	v.restored("backup.db")
	if err := os.Symlink(v.at("elsewhere.db"), v.at("link.db")); err != nil {
		t.Fatal(err)
	}
	v.open("link.db", 0)
	for name, want := range map[string][]string{"jobs.db": {"", "-wal", "-shm"}, "backup.db": {""}, "restored from backup.db": {"", "-wal", "-shm"}, "elsewhere.db": {""}} {
		found := modes(t, v.at(name))
		for _, end := range want {
			if mode := found[end]; mode != 0o600 {
				t.Errorf("%s%s has mode %04o", name, end, mode)
			}
		}
	}
}

func TestTheModeOfAFileThatIsThereIsLeftAlone(t *testing.T) {
	path := written(t)
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	reopen(t, path)
	if mode := modes(t, path)[""]; runtime.GOOS != "windows" && mode != 0o660 {
		t.Errorf("its mode is now %04o", mode)
	}
}
