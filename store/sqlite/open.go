// Package sqlite implements the store on one SQLite file.
//
// One goroutine owns the connection that writes. It puts all calls that are waiting into one transaction (group commit)
// and answers each of them after that transaction is on disk (synchronous=FULL). The more callers wait, the fewer syncs
// each of them pays for. Several processes may share the file: each has its own writer, and the writers take turns at
// SQLite's write lock.
//
// Claims, steps of AdvanceGroups and purges read on connections beside the writer and pass what they found to the writer as a
// proposal. The writer compares the proposal with the rows in its own transaction and acts only on what is unchanged.
//
// The facts of a job (kind, queue, arguments and so on) are written once, in holdfast_job. One narrow row says where
// the job is and carries its counters: a row of holdfast_ready (claimable), a row of holdfast_later (waits for its
// time, behind a held tag, or for members of its group), a member of a batch in holdfast_batch (processing), or a row
// of holdfast_finished (ended).
package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/endhint"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
)

// minSQLite is the first SQLite release in which two processes that checkpoint at the same time cannot damage the WAL
// file.
const minSQLite = 3_051_003

// Config tells Open which file to use and how.
type Config struct {
	Path  string           // the file; Open creates it if it does not exist, but not its directory
	Clock func() time.Time // the store's clock; nil means time.Now
	// NoMigrate makes Open refuse a file that does not exist or whose tables are of an older version, instead of creating and migrating it.
	NoMigrate bool
	// MinFree is how many bytes of its file system the store leaves free. With less, the store refuses new jobs; the
	// jobs that it has can still run. Zero means 64 MiB, a negative value means no limit.
	MinFree int64
	// Trace, if not nil, is called with the name of each statement (or with its text if it has no name) before the
	// statement runs on the writing connection. Tests use it to end the process between two statements.
	Trace func(statement string)
}

// A Store keeps jobs in one SQLite file. All of its methods are safe for concurrent use.
type Store struct {
	*inspect.Inspector
	writer *writer
	waker  *waker
	reader *reader
	claims *reader // one connection, so that claims plan one after the other and never wait for an inspection
	clock  func() time.Time

	planner *claimPlanner
	space   *diskSpace
	ends    endhint.Hints

	advanceMu     sync.Mutex
	advanceCursor holdfast.ID // the last flagged group that AdvanceGroups has read; zero when the next step begins at the first
	lineCursor    orderLine   // lines up to this one were looked at by earlier steps of sweepLines; guarded by advanceMu

	closeOnce sync.Once
	closeErr  error
}

var _ store.Store = (*Store)(nil)

// Open opens the file, creates it if it does not exist, and migrates its schema. Many processes may open the same file
// at the same time. An error is one line that says what to do.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := checkPath(cfg.Path); err != nil {
		return nil, err
	}
	if sqlite.VersionNumber < minSQLite {
		return nil, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the SQLite linked into this program is older than 3.51.3 and can damage a shared file: build with a newer one"}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if _, err := os.Stat(cfg.Path); cfg.NoMigrate && errors.Is(err, fs.ErrNotExist) {
		return nil, unavailable("there is no database file of that name: check the path", err)
	}
	first, err := openFirst(ctx, cfg)
	if err != nil {
		return nil, explain(err)
	}
	known := newLaneCache()
	s := &Store{clock: cfg.Clock, planner: newClaimPlanner(known), waker: newWaker(), reader: newReader(cfg.Path, readers), claims: newReader(cfg.Path, 1)}
	s.space = newDiskSpace(cfg)
	s.writer = newWriter(cfg, s.waker, known, first)
	s.waker.onFirstWaiter = s.writer.signal
	s.Inspector = inspect.New(&querier{s}, inspect.SQLite)
	go s.writer.loop()
	return s, nil
}

// Close waits for the calls in progress and closes the file. Later calls return ErrUnavailable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.waker.close()
		s.closeErr = errors.Join(s.reader.close(), s.claims.close(), s.writer.close())
	})
	return explain(s.closeErr)
}

// now returns the store's time, to the microsecond, as it is stored.
func (s *Store) now() time.Time { return instant(s.clock().UnixMicro()) }

// checkPath refuses paths that SQLite would report only as "unable to open" or would not treat as a file.
func checkPath(path string) error {
	if path == "" || path == ":memory:" {
		return invalid("no database file given: jobs must survive the process, so name a file")
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unavailable("the database cannot be opened because its path is a directory: name a file", nil)
	}
	switch info, err := os.Stat(filepath.Dir(path)); {
	case errors.Is(err, fs.ErrNotExist):
		return unavailable("the database cannot be opened because its directory does not exist: create it, or name another path", err)
	case err != nil:
		return unavailable("the database cannot be opened because its directory cannot be read: check the permissions", err)
	case !info.IsDir():
		return unavailable("the database cannot be opened because a part of its path is a file: name another path", nil)
	}
	return nil
}

func unavailable(message string, cause error) error {
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: message, Cause: cause}
}

// privateMode is the mode of every file that the store creates: only its user may read and write it, because the
// arguments of jobs can contain secrets. SQLite gives the WAL and its index the mode of the database file.
const privateMode fs.FileMode = 0o600

// createFile creates an empty file if there is none. SQLite would create it readable by every user of the machine. An
// existing file is not opened: closing it again would release the locks that other connections of this process hold on
// it.
func createFile(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // any other problem is reported by the first connection
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, privateMode)
	if errors.Is(err, fs.ErrExist) { // another process was faster, or it is a symbolic link to a file that does not exist yet
		if _, err = os.Stat(path); err == nil {
			return nil
		}
		file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, privateMode)
	}
	if err != nil {
		return unavailable("the database file cannot be created: check the permissions of its directory", err)
	}
	return file.Close()
}

// openFirst opens the first connection and prepares the file for all others: it checks the file for damage, turns on
// the write-ahead log, migrates the schema and checks that the file can be written.
func openFirst(ctx context.Context, cfg Config) (*session, error) {
	flags, prepare := sqlite.OpenReadWrite|sqlite.OpenCreate, []func(*session) error{checkDamage, enableWAL, migrate, checkWritable}
	if cfg.NoMigrate {
		flags, prepare = sqlite.OpenReadWrite, []func(*session) error{checkDamage, checkCurrent, enableWAL, checkWritable}
	} else if err := createFile(cfg.Path); err != nil {
		return nil, err
	}
	var first *session
	err := retryWhileBusy(ctx, func() (err error) {
		first, err = connect(cfg, flags)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, step := range prepare {
		if err := retryWhileBusy(ctx, func() error { return step(first) }); err != nil {
			_ = first.close()
			return nil, err
		}
	}
	return first, nil
}

// connect opens one connection for writing. It syncs at every commit, so acknowledged work survives a crash of the
// machine.
func connect(cfg Config, flags sqlite.OpenFlags) (*session, error) {
	conn, err := sqlite.OpenConn(cfg.Path, flags)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(0) // callers wait for locks in Go, where a context can end the wait
	s := &session{conn: conn, prepared: map[string]*sqlite.Stmt{}, trace: cfg.Trace}
	err = s.runScript(`PRAGMA synchronous = FULL; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;
		PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA trusted_schema = OFF`)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// quickCheckPages is the size up to which a file is checked for damage each time it is opened. The integrity check
// (holdfast doctor) checks larger files on request.
const quickCheckPages = 1000 // pages

// checkDamage refuses a damaged file before anything depends on it.
func checkDamage(s *session) error {
	var pages int
	st, _, err := s.conn.PrepareTransient("PRAGMA page_count")
	if err != nil {
		return err
	}
	if found, err := st.Step(); err == nil && found {
		pages = st.ColumnInt(0)
	}
	if err := st.Finalize(); err != nil || pages > quickCheckPages {
		return err
	}
	verdict, err := s.queryValue("PRAGMA quick_check(1)")
	if err == nil && verdict != "ok" {
		return unavailable(messages[sqlite.ResultCorrupt], errors.New(verdict))
	}
	return err
}

// enableWAL turns on the write-ahead log. SQLite stores the setting in the file.
func enableWAL(s *session) error {
	mode, err := s.queryValue("PRAGMA journal_mode")
	if err == nil && mode != "wal" {
		mode, err = s.queryValue("PRAGMA journal_mode = WAL")
	}
	if err == nil && mode != "wal" {
		return unavailable("SQLite cannot use a write-ahead log where the database file is: move the file to a local disk", nil)
	}
	return err
}

// checkWritable refuses a read-only file at opening, because SQLite reports it only at the first change. A lock that
// another connection holds also proves that the file can be written.
func checkWritable(s *session) error {
	err := s.runScript("DELETE FROM holdfast_migration WHERE version < 0")
	if busy(err) {
		return nil
	}
	return err
}
