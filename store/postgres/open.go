package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/endhint"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A Config is the address of a database and the limits of a store on it. Give URL or Pool.
type Config struct {
	URL string // postgres://user:password@host:port/database, or key=value pairs as libpq takes them

	// Pool is a pool of the application, which the store shares instead of opening one of its own for work. Renewals and notifications still have
	// connections of their own, two and one, so that a pool that is in use entirely costs no worker its leases; they are configured like those of the
	// pool. Close leaves the pool open. An application that uses database/sql shares its pool the same way: see stdlib.OpenDBFromPool of pgx.
	Pool *pgxpool.Pool

	MaxConns int // maximum number of connections for work, if the store opens them; 0 is 8. Renewals use two and notifications one in addition
	// Schema is the schema that has the store's tables; it is created if it does not exist. When it is empty, the search_path decides. The address can set
	// it as well, with schema. Transactions of the caller (In) need no search_path for it.
	Schema string
	// NoMigrate makes Open refuse a database whose tables are missing or of an older version, instead of migrating it.
	NoMigrate bool
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
	*database

	shared    bool // the pool for work belongs to the application
	planner   *claimPlanner
	sweep     lineCursor
	lanes     *laneCache
	hub       *hub
	renews    *pgxpool.Pool // for renewals only: a full work pool must not cost a worker its leases
	coalescer coalescer
	size      sizeLimit
	ends      endhint.Hints
	shards    shards
	pooling   pooling

	ctx    context.Context // cancelled when the store is closed, after coalesced writes have finished
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open connects, migrates the schema to the version of this binary and returns the store. The error is ErrInvalid if the configuration cannot be
// used, and ErrUnavailable if the database cannot be reached or its schema is newer than this binary.
func Open(ctx context.Context, c Config) (*Store, error) {
	config, err := c.poolConfig()
	if err != nil {
		return nil, err
	}
	limit, err := maxSize(config, c.MaxSize)
	if err != nil {
		return nil, err
	}
	schema, err := schemaOf(config, c.Schema)
	if err != nil {
		return nil, err
	}
	db := &database{sql: statements(schema), schema: schema, work: c.Pool}
	s := &Store{
		database: db, shared: c.Pool != nil, planner: newClaimPlanner(db), lanes: &laneCache{db: db}, shards: shards{seed: rand.Uint64()},
		pooling: pooling{log: c.Log}, size: sizeLimit{limit: limit},
	}
	s.pooling.install(config, c.URL)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub = newHub(s.ctx, db, &s.pooling)
	if err := s.connect(ctx, config, c.NoMigrate); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// poolConfig returns the configuration of the connections that the store opens.
func (c *Config) poolConfig() (*pgxpool.Config, error) {
	switch {
	case c.Pool != nil && (c.URL != "" || c.MaxConns != 0 || c.Trace != nil):
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a pool of the application with URL, MaxConns or Trace: leave these out, they are properties of the pool"}
	case c.Pool != nil:
		return c.Pool.Config(), nil
	case c.MaxConns < 0:
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid,
			Message: fmt.Sprintf("a pool of %d connections: give a positive number, or 0 for the default", c.MaxConns)}
	}
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Cause: &hiddenCause{err},
			Message: "the database address cannot be parsed: give postgres://user:password@host:port/database"}
	}
	if c.MaxConns > 0 {
		config.MaxConns = int32(c.MaxConns)
	} else if !strings.Contains(c.URL, "pool_max_conns") {
		config.MaxConns = 8
	}
	config.ConnConfig.BuildContextWatcherHandler = newCanceller
	if c.Trace != nil {
		config.ConnConfig.Tracer = tracer(c.Trace)
	}
	return config, nil
}

// connect opens the pools, migrates the schema and starts the notification loop.
func (s *Store) connect(ctx context.Context, config *pgxpool.Config, noMigrate bool) (err error) {
	if s.shared {
		if err := s.examineShared(ctx); err != nil {
			return err
		}
	} else if s.work, err = pgxpool.NewWithConfig(s.ctx, config); err != nil {
		return explain("connect", err)
	}
	reserved := config.Copy()
	reserved.MaxConns, reserved.MinConns, reserved.MinIdleConns = 2, 0, 0
	if s.renews, err = pgxpool.NewWithConfig(s.ctx, reserved); err != nil {
		return explain("connect", err)
	}
	prepare := s.migrate
	if noMigrate {
		prepare = s.checkCurrent
	}
	if err := prepare(ctx); err != nil {
		return err
	}
	s.Inspector = inspect.New(querier{s}, inspect.Postgres)
	s.coalescer.insert = s.insert
	s.loops.Go(s.hub.notify)
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
	if s.work != nil && !s.shared {
		s.work.Close()
	}
	if s.renews != nil {
		s.renews.Close()
	}
	return nil
}

// examineShared refuses a pool of the application whose statements would fail: the store cannot change how its connections prepare statements.
func (s *Store) examineShared(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	conn, err := s.work.Acquire(ctx)
	if err != nil {
		return explain("connect", err)
	}
	defer conn.Release()
	viaPooler, err := pooled(ctx, conn.Conn().PgConn())
	if err != nil {
		return explain("connect", err)
	}
	if !viaPooler {
		return nil
	}
	s.pooling.detected.Store(true)
	if conn.Conn().Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		return &holdfast.Error{Err: holdfast.ErrInvalid,
			Message: "the pool prepares statements by name, and its connections go through a pooler that gives each transaction another session: set DefaultQueryExecMode of its connections to QueryExecModeCacheDescribe, or add default_query_exec_mode=cache_describe to its address"}
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

// statements loads the SQL texts for a schema, without their leading comments, which need not be sent.
func statements(in schema) map[string]string {
	texts := sqltext.Load("postgres")
	for name, text := range texts {
		for strings.HasPrefix(text, "--") {
			_, text, _ = strings.Cut(text, "\n")
		}
		texts[name] = in.qualify(text)
	}
	texts["notify"] = strings.Replace(texts["notify"], "'holdfast'", "'"+in.channel()+"'", 1)
	return texts
}
