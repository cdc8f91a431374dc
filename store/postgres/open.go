package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/endhint"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A Config is the address of a database and the limits of a store on it. Give URL, Pool or DB.
type Config struct {
	URL string // postgres://user:password@host:port/database, or key=value pairs as libpq takes them

	// Pool is a pool of the application, which the store shares instead of opening one of its own for work. Renewals and notifications still have
	// connections of their own, two and one, so that a pool that is in use entirely costs no worker its leases; they are configured like those of the
	// pool. One more is opened, and closed within about a minute, when a call in a transaction (In) needs to write outside of it. Close leaves the pool open.
	Pool *pgxpool.Pool
	// DB is a database of the application, which the store shares like a Pool. It must be opened with the driver of pgx (github.com/jackc/pgx/v5/stdlib),
	// alone or wrapped by a driver with a method Raw() driver.Conn. Any SetMaxOpenConns works, also 1. Set SetMaxIdleConns to the same number: the default
	// of 2 makes a busy worker open and close connections all the time. The store's own connections are configured like the connection of the database
	// that was opened last, so an application whose credentials expire gives connections a shorter SetConnMaxLifetime.
	DB *sql.DB

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

	shared    bool            // the pool for work belongs to the application
	own       []*pgxpool.Pool // closed with the store
	planner   *claimPlanner
	sweep     lineCursor
	lanes     *laneCache
	hub       *hub
	renews    connections // for renewals only: a full work pool must not cost a worker its leases
	beside    connections // for what a call in a transaction of the caller does outside of it: such transactions can hold all connections of a shared pool
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

// besideIdle is how long a connection of Store.beside is kept: it is needed for moments.
const besideIdle = 10 * time.Second

// Open connects, migrates the schema to the version of this binary and returns the store. The error is ErrInvalid if the configuration cannot be
// used, and ErrUnavailable if the database cannot be reached or its schema is newer than this binary.
func Open(ctx context.Context, c Config) (*Store, error) {
	shared, config, err := c.pool(ctx)
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
	db := &database{sql: statements(schema), schema: schema, work: connections{shared}}
	s := &Store{
		database: db, shared: shared != nil, planner: newClaimPlanner(db), lanes: &laneCache{db: db}, shards: shards{seed: rand.Uint64()},
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

// pool returns the pool of the application, if it gave one, and the configuration of the connections that the store opens.
func (c *Config) pool(ctx context.Context) (pool, *pgxpool.Config, error) {
	switch {
	case c.Pool != nil && c.DB != nil:
		return nil, nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a pool and a database of the application: give one of them"}
	case c.Pool != nil && (c.URL != "" || c.MaxConns != 0 || c.Trace != nil):
		return nil, nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a pool of the application with URL, MaxConns or Trace: leave these out, they are properties of the pool"}
	case c.DB != nil && (c.URL != "" || c.MaxConns != 0 || c.Trace != nil):
		return nil, nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "a database of the application with URL, MaxConns or Trace: leave these out, they are properties of the database"}
	case c.Pool != nil:
		return pgxPool{c.Pool}, c.Pool.Config(), nil
	case c.DB != nil:
		shared := &sqlPool{db: c.DB}
		config, err := shared.poolConfig(ctx)
		if err != nil {
			return nil, nil, err
		}
		return shared, config, nil
	}
	config, err := c.parse()
	return nil, config, err
}

// parse returns the configuration that URL and MaxConns describe.
func (c *Config) parse() (*pgxpool.Config, error) {
	switch {
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
	} else if s.work, err = s.openPool(config); err != nil {
		return err
	}
	s.beside = s.work
	if s.renews, err = s.openReserved(config, 2); err != nil {
		return err
	}
	if s.shared {
		config = config.Copy()
		config.MaxConnIdleTime = besideIdle
		if s.beside, err = s.openReserved(config, 1); err != nil {
			return err
		}
	}
	if theirs, ok := s.work.pool.(*sqlPool); ok {
		if err := theirs.checkLike(ctx, s.renews, s.schema); err != nil {
			return err
		}
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

// openPool opens a pool that is closed with the store.
func (s *Store) openPool(config *pgxpool.Config) (connections, error) {
	opened, err := pgxpool.NewWithConfig(s.ctx, config)
	if err != nil {
		return connections{}, explain("connect", err)
	}
	s.own = append(s.own, opened)
	return connections{pgxPool{opened}}, nil
}

// openReserved opens a pool of at most that many connections, which are opened when they are needed.
func (s *Store) openReserved(config *pgxpool.Config, most int32) (connections, error) {
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = most, 0, 0
	return s.openPool(config)
}

// Close waits for coalesced writes, sends pending notifications and closes all connections. Calling it again does nothing.
func (s *Store) Close() error {
	s.coalescer.close()
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	s.loops.Wait()
	for _, pool := range s.own {
		pool.Close()
	}
	return nil
}

// examineShared refuses a pool of the application whose statements would fail: the store cannot change how its connections prepare statements.
func (s *Store) examineShared(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	err := s.work.lend(ctx, func(conn *pgx.Conn) error {
		viaPooler, err := pooled(ctx, conn.PgConn())
		if err != nil || !viaPooler {
			return err
		}
		s.pooling.detected.Store(true)
		if conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
			return nil
		}
		return &holdfast.Error{Err: holdfast.ErrInvalid,
			Message: "the pool prepares statements by name, and its connections go through a pooler that gives each transaction another session: set DefaultQueryExecMode of its connections to QueryExecModeCacheDescribe, or add default_query_exec_mode=cache_describe to its address"}
	})
	return explain("connect", err)
}

// Warnings lists the database settings under which a crash can lose acknowledged jobs. A safe configuration has none.
func (s *Store) Warnings(ctx context.Context) []string {
	var warnings []string
	err := s.withRetries(ctx, "read the settings", true, func(ctx context.Context) error {
		warnings = nil
		return s.work.query(ctx, s.sql["read_durability"], nil, func(scan func(...any) error) error {
			var name, setting string
			err := scan(&name, &setting)
			warnings = append(warnings, fmt.Sprintf("%s is %s: a crash of the database's machine can lose acknowledged jobs; turn it on", name, setting))
			return err
		})
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
