// Package sqlite is the store on one SQLite file.
//
// One goroutine owns the connection that writes. Whatever calls are waiting when it comes round are folded into one
// transaction, and each is answered after that transaction is on disk (synchronous=FULL): the more callers, the fewer
// syncs each of them pays for. Several processes may share the file; each has a writer of its own, and they take turns.
package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"zombiezen.com/go/sqlite"
)

// oldest is the first release of SQLite in which a WAL file cannot be damaged by two processes that checkpoint at once.
const oldest = 3_051_003

// Config says where the jobs are.
type Config struct {
	Path  string           // the file; made when it is not there, its directory is not
	Clock func() time.Time // the store's clock; time.Now when nil
	// MinFree is how many bytes of its file system the store leaves free: with less it takes no new jobs, and those it has can be
	// worked off. 64 MiB when zero; below zero there is no limit.
	MinFree int64
	// Trace hears the name of every statement, or its text where it has none, before it runs on the connection that writes. It
	// is for tests that end the process between two statements; nil is off.
	Trace func(statement string)
}

// A Store keeps jobs in one SQLite file.
type Store struct {
	*inspect.Inspector
	writer *writer
	bell   *bell
	reader *reader
	claims *reader // one connection: claims look one after the other, and never wait for somebody who inspects
	clock  func() time.Time

	plan  *planner
	space *space

	concluding sync.Mutex
	attended   holdfast.ID // how far attended groups were looked at, while there are more than one step takes

	ending sync.Once
	ended  error
}

var _ holdfast.Store = (*Store)(nil)

// Open opens the file, makes it when it is not there, and brings its schema up to date. Many processes may do so at once.
// Every refusal is one line that says what to do.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := checkPath(cfg.Path); err != nil {
		return nil, err
	}
	if sqlite.VersionNumber < oldest {
		return nil, &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "the SQLite linked into this program is older than 3.51.3 and can damage a shared file: build with a newer one"}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	first, err := prepare(ctx, cfg)
	if err != nil {
		return nil, explain(err)
	}
	known := newLanes()
	s := &Store{clock: cfg.Clock, plan: &planner{lanes: known}, bell: newBell(), reader: newReader(cfg.Path, readers), claims: newReader(cfg.Path, 1)}
	s.space = newSpace(cfg)
	s.writer = newWriter(cfg, s.bell, known, first)
	s.bell.begin = s.writer.ring
	s.Inspector = inspect.New(&querier{s}, inspect.SQLite)
	go s.writer.loop()
	return s, nil
}

// Close waits for the calls under way, then lets go of the file. Calls after it are refused.
func (s *Store) Close() error {
	s.ending.Do(func() {
		s.bell.close()
		s.ended = errors.Join(s.reader.close(), s.claims.close(), s.writer.close())
	})
	return explain(s.ended)
}

// now is the store's clock, in microseconds since 1970.
func (s *Store) now() time.Time { return instant(s.clock().UnixMicro()) }

// checkPath refuses what SQLite would only call "unable to open", or would take for something other than a file.
func checkPath(path string) error {
	if path == "" || path == ":memory:" {
		return invalid("no database file given: jobs must survive the process, so name a file")
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unavailable("the database cannot be opened because its path is a directory: name a file", nil)
	}
	switch info, err := os.Stat(filepath.Dir(path)); {
	case errors.Is(err, fs.ErrNotExist):
		return unavailable("the database cannot be opened because its directory does not exist: create it, or name another", err)
	case err != nil:
		return unavailable("the database cannot be opened because its directory cannot be read: check the permissions", err)
	case !info.IsDir():
		return unavailable("the database cannot be opened because a part of its path is a file: name another", nil)
	}
	return nil
}

func unavailable(message string, cause error) error {
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: message, Cause: cause}
}

// private is the mode of every file that the store makes: only its user reads and writes it, because arguments of jobs hold secrets. SQLite
// gives the log and the index beside the file the file's own mode.
const private fs.FileMode = 0o600

// create makes an empty file when there is none. SQLite would make it readable by every user of the machine. A file that exists is not opened:
// closing it again would end the locks that other connections of this process have on it.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // the first connection says what is wrong with it
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, private)
	if errors.Is(err, fs.ErrExist) { // another process was faster, or it is a symbolic link whose target does not exist yet
		if _, err = os.Stat(path); err == nil {
			return nil
		}
		file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, private)
	}
	if err != nil {
		return unavailable("the database cannot be made there: check the permissions of its directory", err)
	}
	return file.Close()
}

// prepare opens the first connection and makes the file ready for all others.
func prepare(ctx context.Context, cfg Config) (*session, error) {
	if err := create(cfg.Path); err != nil {
		return nil, err
	}
	var first *session
	err := patiently(ctx, func() (err error) {
		first, err = connect(cfg, sqlite.OpenReadWrite|sqlite.OpenCreate)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, step := range []func(*session) error{examine, remember, migrate, writable} {
		if err := patiently(ctx, func() error { return step(first) }); err != nil {
			_ = first.close()
			return nil, err
		}
	}
	return first, nil
}

// connect opens one connection for writing. It syncs at every commit: what was acknowledged survives the machine.
func connect(cfg Config, flags sqlite.OpenFlags) (*session, error) {
	conn, err := sqlite.OpenConn(cfg.Path, flags)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(0) // whoever waits for a lock here waits in Go, where a context can end it
	s := &session{conn: conn, prepared: map[string]*sqlite.Stmt{}, trace: cfg.Trace}
	err = s.run(`PRAGMA synchronous = FULL; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;
		PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA trusted_schema = OFF`)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// small is the size up to which a file is checked for damage at every start. The audit checks larger ones on request.
const small = 1000 // pages

// examine refuses a damaged file while nothing depends on it yet.
func examine(s *session) error {
	var pages int
	st, _, err := s.conn.PrepareTransient("PRAGMA page_count")
	if err != nil {
		return err
	}
	if found, err := st.Step(); err == nil && found {
		pages = st.ColumnInt(0)
	}
	if err := st.Finalize(); err != nil || pages > small {
		return err
	}
	verdict, err := s.ask("PRAGMA quick_check(1)")
	if err == nil && verdict != "ok" {
		return unavailable(advice[sqlite.ResultCorrupt], errors.New(verdict))
	}
	return err
}

// remember turns the write-ahead log on, for good.
func remember(s *session) error {
	mode, err := s.ask("PRAGMA journal_mode")
	if err == nil && mode != "wal" {
		mode, err = s.ask("PRAGMA journal_mode = WAL")
	}
	if err == nil && mode != "wal" {
		return unavailable("the database cannot keep a write-ahead log where it is: move the file to a local disk", nil)
	}
	return err
}

// writable refuses a file that can only be read, before the first call finds out: SQLite itself complains at the first change
// only. A lock that somebody else has is proof enough.
func writable(s *session) error {
	err := s.run("DELETE FROM holdfast_migration WHERE version < 0")
	if busy(err) {
		return nil
	}
	return err
}
