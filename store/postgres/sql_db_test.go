package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// newDB opens a database as an application does that uses database/sql.
func newDB(t testing.TB, url string, conns int) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// The callers' transactions of the laws are transactions of the same *sql.DB.
func TestTheStoreKeepsTheLawsOnADatabaseOfTheApplication(t *testing.T) {
	share := []string{"enqueue", "keys", "lease", "settle", "complete", "group", "change", "await", "race"}
	if soak.Deep() {
		share = nil
	}
	storetest.Laws(t, storetest.Harness{Open: func(t testing.TB) *storetest.Subject {
		url := storefixture.Database(t)
		return storefixture.PostgresWith(t, url, postgres.Config{DB: newDB(t, url, 4)})
	}}, share...)
}

// One connection is enough, also for what a call does while the connection is in use: nothing in the store waits for a second one.
func TestTheStoreDoesWhatTheModelDoesOnADatabaseWithOneConnection(t *testing.T) {
	storetest.Check(t, storetest.Harness{Open: func(t testing.TB) *storetest.Subject {
		url := storefixture.Database(t)
		subject := storefixture.PostgresWith(t, url, postgres.Config{DB: newDB(t, url, 1)})
		callers := newDB(t, url, 4) // the model holds transactions open while it uses the store
		subject.Begin = func() (any, func(bool) error) {
			tx, err := callers.Begin()
			if err != nil {
				t.Fatal(err)
			}
			return tx, func(commit bool) error {
				if commit {
					return tx.Commit()
				}
				return tx.Rollback()
			}
		}
		return subject
	}}, soak.Pick("PostgreSQL: random sequences on a *sql.DB with one connection", 10, 25))
}

// Handlers and producers hold all connections of the database in transactions of their own. In these they enqueue jobs of kinds that the store does not
// know, create groups, and complete their jobs.
func TestTransactionsThatHoldEveryConnectionOfTheDatabaseDoNotBlockTheStore(t *testing.T) {
	for _, conns := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			w := newWorld(t)
			db := newDB(t, w.url, conns)
			s := w.open(postgres.Config{DB: db, MaxSize: 1 << 40})
			inTx := func(use func(*sql.Tx) error) error {
				tx, err := db.BeginTx(w.ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if err := use(tx); err != nil {
					return err
				}
				return tx.Commit()
			}
			var done, parcels atomic.Int64
			e, err := engine.New(s, engine.Config{Slots: 8, Poll: 50 * time.Millisecond, Lease: 10 * time.Second, Queues: []string{"default"}})
			w.ok(err)
			engine.Handle(e, func(ctx context.Context, job *engine.Job[shopping]) error {
				err := inTx(func(tx *sql.Tx) error {
					_, err := s.In(tx).Enqueue(ctx, []holdfast.Draft{{Kind: fmt.Sprint("parcel-", parcels.Add(1)), Queue: "parcels"}})
					return errors.Join(err, job.CompleteIn(ctx, tx))
				})
				if err == nil {
					done.Add(1)
				}
				return err
			})
			ctx, stop := context.WithCancel(w.ctx)
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			const orders = 60
			var producers sync.WaitGroup
			for n := range orders {
				producers.Go(func() {
					err := inTx(func(tx *sql.Tx) error {
						group, err := s.In(tx).CreateGroup(w.ctx, holdfast.Group{Name: fmt.Sprint("order ", n)})
						if err != nil {
							return err
						}
						_, err = s.In(tx).Enqueue(w.ctx, []holdfast.Draft{
							{Kind: "shopping", Args: []byte(`{"N":1}`), Group: group.ID},
							{Kind: fmt.Sprint("order-", n), Queue: "parcels"},
						})
						return err
					})
					if err != nil {
						t.Errorf("order %d: %v", n, err)
					}
				})
			}
			producers.Wait()
			w.until("all orders are done", func() bool { return done.Load() == orders })
			stop()
			w.ok(<-ended)
			if most := db.Stats().MaxOpenConnections; most != conns {
				t.Errorf("the store changed the limit of the database to %d connections", most)
			}
			if findings, err := s.CheckIntegrity(w.ctx); err != nil || len(findings) > 0 {
				t.Error(findings, err)
			}
		})
	}
}

func TestAStoreOnADatabaseOfTheApplicationLeavesItOpen(t *testing.T) {
	url := pgtest.Database(t)
	db := newDB(t, url, 2)
	s, err := postgres.Open(t.Context(), postgres.Config{DB: db, Schema: "work"})
	if err != nil {
		t.Fatal(err)
	}
	drainOne(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var jobs int
	if err := db.QueryRow("SELECT count(*) FROM work.holdfast_finished").Scan(&jobs); err != nil || jobs != 1 {
		t.Errorf("the database after Close: %d jobs, %v", jobs, err)
	}
	found, err := postgres.ReadSchema(t.Context(), postgres.Config{DB: db, Schema: "work"})
	if err != nil || found.Current() != nil {
		t.Errorf("the tables are of version %d, %v", found.Version, err)
	}
}

// A notDatabase is a driver whose connections are not of pgx.
type notDatabase struct{ driver.Conn }

func (notDatabase) Connect(context.Context) (driver.Conn, error) { return notDatabase{}, nil }
func (notDatabase) Driver() driver.Driver                        { return nil }
func (notDatabase) Close() error                                 { return nil }

func TestADatabaseThatTheStoreCannotUseIsRefusedWithWhatToDo(t *testing.T) {
	url := pgtest.Database(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	apart := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS apart; SET search_path = apart", pgx.QueryExecModeSimpleProtocol)
		return err
	}))
	for name, refused := range map[string]struct {
		db    *sql.DB
		says  string
		is    error
		alter func(*postgres.Config)
	}{
		"another driver":          {db: sql.OpenDB(notDatabase{}), says: `sql.Open("pgx", address)`},
		"set up after connecting": {db: apart, says: "in the address of the database"},
		"through a pooler":        {db: newDB(t, pgtest.Pooled(t, url, 5).URL(url), 4), says: "default_query_exec_mode=cache_describe"},
		"with an address":         {db: newDB(t, url, 1), says: "leave these out", alter: func(c *postgres.Config) { c.URL = url }},
		"with a pool":             {db: newDB(t, url, 1), says: "give one of them", alter: func(c *postgres.Config) { c.Pool = newPool(t, url) }},
		"unreachable":             {db: newDB(t, "postgres://nobody@127.0.0.1:1/none", 1), says: "cannot be reached", is: holdfast.ErrUnavailable},
	} {
		c := postgres.Config{DB: refused.db}
		if refused.alter != nil {
			refused.alter(&c)
		}
		if refused.is == nil {
			refused.is = holdfast.ErrInvalid
		}
		s, err := postgres.Open(t.Context(), c)
		if !errors.Is(err, refused.is) || !strings.Contains(err.Error(), refused.says) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = refused.db.Close()
	}
}

func TestADatabaseOfTheApplicationWorksBehindAPooler(t *testing.T) {
	w := newWorld(t)
	address := pgtest.Pooled(t, w.url, poolSize).URL(w.url)
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	db := newDB(t, address+separator+"default_query_exec_mode=cache_describe", 3)
	s := w.open(postgres.Config{DB: db})
	for range 5 {
		drainOne(t, s)
		tx, err := db.Begin()
		w.ok(err)
		w.enqueue(s.In(tx), holdfast.Draft{Kind: "mail", UniqueKey: "u", Queue: "elsewhere"})
		w.ok(tx.Commit())
	}
	if wake, err := s.Await(w.ctx, []string{"none"}, time.Millisecond); err != nil || wake.Work {
		t.Error(wake, err)
	}
}

// A tracingConnector wraps the connections of a driver, as packages for tracing do.
type tracingConnector struct{ driver.Connector }

type tracingConn struct{ driver.Conn }

func (c tracingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return tracingConn{conn}, err
}

func (c tracingConn) Raw() driver.Conn { return c.Conn }

func TestADriverThatWrapsPgxIsUsed(t *testing.T) {
	config, err := pgx.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(tracingConnector{stdlib.GetConnector(*config)})
	defer db.Close()
	s, err := postgres.Open(t.Context(), postgres.Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	drainOne(t, s)
}

// Credentials can change while a store is open: its own connections use those of the connection that was opened last.
func TestConnectionsBesideTheDatabaseUseTheNewestCredentials(t *testing.T) {
	w := newWorld(t)
	config, err := pgx.ParseConfig(w.url)
	w.ok(err)
	var serial atomic.Int64
	db := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		c.RuntimeParams = map[string]string{"application_name": fmt.Sprint("credentials ", serial.Add(1))}
		return nil
	}))
	defer db.Close()
	s := w.open(postgres.Config{DB: db})
	oldest := w.count("SELECT max(substr(application_name, 13)::int) FROM pg_stat_activity WHERE application_name LIKE 'credentials %'")
	w.cut()
	drainOne(t, s)
	if n := w.count(`SELECT count(*) FROM (SELECT FROM pg_stat_activity WHERE application_name LIKE 'credentials %' AND substr(application_name, 13)::int > $1
		GROUP BY application_name HAVING count(*) > 1) shared`, oldest); n == 0 {
		t.Error("the connection for renewals, which was replaced, has other credentials than any newer connection of the database")
	}
}

// A pool of the application can have a handler for notifications of its own.
func TestAHandlerForNotificationsOfTheApplicationDoesNotHideThoseOfTheStore(t *testing.T) {
	w := newWorld(t)
	s := w.open(postgres.Config{Pool: newPool(t, w.url, func(c *pgxpool.Config) {
		c.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	})})
	woken := make(chan store.Wake)
	go func() {
		wake, err := s.Await(w.ctx, []string{"default"}, time.Minute)
		if err != nil {
			t.Error(err)
		}
		woken <- wake
	}()
	w.enqueue(w.store, holdfast.Draft{Kind: "mail"})
	if wake := <-woken; !wake.Work {
		t.Errorf("woken with %+v", wake)
	}
}
