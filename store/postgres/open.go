package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A Config is the address of a database and the limits of a store on it.
type Config struct {
	URL  string // postgres://user:password@host:port/database, or key=value pairs as libpq takes them
	Pool int    // maximum number of connections for work; 0 is 8. Renewals use two and notifications one in addition
	// MaxSize is the size of the database in bytes from which new jobs are refused; 0 is no limit. The address can set it as well, with max_size.
	MaxSize int64
	// Trace, if not nil, is called with every statement before it is sent. It must be safe for concurrent use.
	Trace func(statement string)
	// Log receives one message when the database is reached through a pooler, where notifications of other processes do not arrive. slog.Default
	// when nil.
	Log *slog.Logger
}

// A Store is a store.Store on PostgreSQL. All its methods are safe for concurrent use.
type Store struct {
	*inspect.Inspector

	sql       map[string]string
	work      *pgxpool.Pool
	renews    *pgxpool.Pool // for renewals only: a full work pool must not cost a worker its leases
	lanes     sync.Map      // path -> int32; lanes are never deleted
	coalescer coalescer
	hub       hub

	marks     marks
	multiLine atomic.Int32 // this many further claims expect jobs in more than one line

	lines         lineMemory
	weights       weightCache
	plannedScopes scopeSet // scopes whose claims need a plan
	wideScopes    scopeSet // scopes with more than fewLanes lanes
	holds         holdCache
	turns         ownerTurns
	reach         ownerReach
	size          sizeLimit
	shards        shards
	pooling       pooling

	ctx    context.Context // cancelled when the store is closed, after coalesced writes have finished
	cancel context.CancelFunc
	closed atomic.Bool
	loops  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open connects, migrates the schema to the version of this binary and returns the store. The error is ErrInvalid if the configuration cannot be
// used, and ErrUnavailable if the database cannot be reached or its schema is newer than this binary.
func Open(ctx context.Context, c Config) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Cause: &hiddenCause{err},
			Message: "the database address cannot be parsed: give postgres://user:password@host:port/database"}
	}
	if c.Pool < 0 {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid,
			Message: fmt.Sprintf("a pool of %d connections: give a positive number, or 0 for the default", c.Pool)}
	}
	if c.Pool > 0 {
		config.MaxConns = int32(c.Pool)
	} else if !strings.Contains(c.URL, "pool_max_conns") {
		config.MaxConns = 8
	}
	config.ConnConfig.BuildContextWatcherHandler = newCanceller
	if c.Trace != nil {
		config.ConnConfig.Tracer = tracer(c.Trace)
	}
	s := &Store{sql: statements(), shards: shards{seed: rand.Uint64()}, pooling: pooling{log: c.Log}}
	s.pooling.install(config, c.URL)
	if s.size.limit, err = maxSize(config, c.MaxSize); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub.init()
	if err := s.connect(ctx, config); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect opens the pools, migrates the schema and starts the notification loop.
func (s *Store) connect(ctx context.Context, config *pgxpool.Config) (err error) {
	if s.work, err = pgxpool.NewWithConfig(s.ctx, config); err != nil {
		return explain("connect", err)
	}
	reserved := config.Copy()
	reserved.MaxConns, reserved.MinConns, reserved.MinIdleConns = 2, 0, 0
	if s.renews, err = pgxpool.NewWithConfig(s.ctx, reserved); err != nil {
		return explain("connect", err)
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	s.Inspector = inspect.New(querier{s}, inspect.Postgres)
	s.coalescer.insert = s.insert
	s.loops.Go(s.notify)
	return nil
}

// Close waits for coalesced writes, sends pending notifications and closes all connections. Calling it again does nothing.
func (s *Store) Close() error {
	s.coalescer.close()
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	s.loops.Wait()
	for _, pool := range []*pgxpool.Pool{s.work, s.renews} {
		if pool != nil {
			pool.Close()
		}
	}
	return nil
}

// Warnings lists the database settings under which a crash can lose acknowledged jobs. A safe configuration has none.
func (s *Store) Warnings(ctx context.Context) []string {
	var warnings []string
	err := s.withRetries(ctx, "read the settings", true, func(ctx context.Context) error {
		warnings = nil
		rows, err := s.work.Query(ctx, s.sql["read_durability"])
		if err != nil {
			return err
		}
		var name, setting string
		_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
			warnings = append(warnings, fmt.Sprintf("%s is %s: a crash of the database's machine can lose acknowledged jobs; turn it on", name, setting))
			return nil
		})
		return err
	})
	if err != nil {
		return []string{err.Error()}
	}
	return warnings
}

// statements loads the SQL texts without their leading comments, which need not be sent.
func statements() map[string]string {
	texts := sqltext.Load("postgres")
	for name, text := range texts {
		for strings.HasPrefix(text, "--") {
			_, text, _ = strings.Cut(text, "\n")
		}
		texts[name] = text
	}
	return texts
}
