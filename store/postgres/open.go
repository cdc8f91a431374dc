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
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// A Config says where the database is.
type Config struct {
	URL  string // postgres://user:password@host:port/database, or the words of libpq
	Pool int    // at most so many connections for work; 0 is 8. Renewals have two and wake-ups one on top
	// MaxSize is how many bytes the database may have before new jobs are refused; 0: no limit. The address may say it too: max_size.
	MaxSize int64
	// Trace hears of every statement before it is sent; nobody when nil. It may be called from many goroutines at once.
	Trace func(statement string)
	// Log is told when the database is reached through a pooler and wake-ups of other processes cannot be heard; slog.Default when nil.
	Log *slog.Logger
}

// A Store is a holdfast.Store on PostgreSQL. All its methods may be called from many goroutines.
type Store struct {
	*inspect.Inspector

	sql    map[string]string
	work   *pgxpool.Pool
	renews *pgxpool.Pool // never waits behind work: a full pool must not cost anybody a lease
	lanes  sync.Map      // path -> int32; lanes are never removed
	folds  folder
	hub    hub

	marks     marks
	multiLine atomic.Int32 // so many claims more expect jobs in more than one line

	lines         lineMemory
	weights       weightCache
	plannedScopes scopeSet
	wideScopes    scopeSet // scopes with many lanes
	holds         holdCache
	turns         ownerTurns
	reach         ownerReach
	size          sizeLimit
	shards        shards
	pooling       pooling

	ctx    context.Context // ends when the store is closed, after the writes under way
	cancel context.CancelFunc
	closed atomic.Bool
	loops  sync.WaitGroup
}

var _ holdfast.Store = (*Store)(nil)

// Open connects, brings the schema up to date and answers with the store. An address that makes no sense is ErrInvalid; a
// database that cannot be reached, or is too new, is ErrUnavailable.
func Open(ctx context.Context, c Config) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Cause: &hiddenCause{err},
			Message: "the address of the database cannot be read: give postgres://user:password@host:port/database"}
	}
	if c.Pool < 0 {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid,
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
	s.folds.run = s.insert
	s.loops.Go(s.notify)
	return nil
}

// Close waits for writes under way and lets go of the database.
func (s *Store) Close() error {
	s.folds.close()
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

// Warnings names the settings of the database under which acknowledged work can be lost. A sound database has none.
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

// statements are the texts without the lines that explain them, which the database need not read.
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
