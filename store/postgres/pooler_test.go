package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// poolSize is less than the connections that a store opens, so that they change sessions.
const poolSize = 5

// pooledHarness opens stores whose connections all go through one PgBouncer in transaction mode.
func pooledHarness(t *testing.T) storetest.Harness {
	var pooler *pgtest.Pooler
	return storetest.Harness{Open: func(each testing.TB) *storetest.Subject {
		direct := storefixture.Database(each)
		if pooler == nil {
			pooler = pgtest.Pooled(t, direct, poolSize)
		}
		return storefixture.PostgresAt(each, pooler.URL(direct))
	}}
}

// These chapters use every way in which statements are sent: alone, in pipelines, with COPY, in transactions of callers, concurrently.
func TestTheStoreKeepsTheLawsBehindATransactionPooler(t *testing.T) {
	storetest.Laws(t, pooledHarness(t), "enqueue", "keys", "group", "change", "complete", "race")
}

func TestTheStoreDoesWhatTheModelDoesBehindATransactionPooler(t *testing.T) {
	storetest.Check(t, pooledHarness(t), soak.Pick("PostgreSQL: random sequences behind a pooler", 15, 25))
}

// A cached plan makes the hot path fast, and a statement name in a pooled session breaks it.
func TestStatementsArePreparedOnDirectConnectionsOnly(t *testing.T) {
	use := func(w *world, s *postgres.Store) {
		for range 3 {
			w.enqueue(s, holdfast.Draft{Kind: "mail"})
			leases, err := s.Claim(w.ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
			w.ok(err)
			_, err = s.Settle(w.ctx, []store.Settlement{complete(leases[0])})
			w.ok(err)
		}
	}
	w := newWorld(t)
	t.Run("direct", func(t *testing.T) {
		proxy := &wire{}
		s := w.open(postgres.Config{URL: proxy.urlFor(t, w.url), MaxConns: 1})
		defer s.Close() // before the wire waits for its connections
		use(w, s)
		proxy.mu.Lock()
		first, named := proxy.parses, proxy.named
		proxy.mu.Unlock()
		use(w, s)
		proxy.mu.Lock()
		defer proxy.mu.Unlock()
		if named == 0 || proxy.parses != first {
			t.Fatalf("%d statements were prepared, %d by name, and %d again", first, named, proxy.parses-first)
		}
	})
	t.Run("pooled", func(t *testing.T) {
		proxy := &wire{}
		s := w.open(postgres.Config{URL: proxy.urlFor(t, pgtest.Pooled(t, w.url, poolSize).URL(w.url)), MaxConns: 1})
		defer s.Close()
		use(w, s)
		proxy.mu.Lock()
		defer proxy.mu.Unlock()
		if proxy.parses == 0 || proxy.named != 0 {
			t.Fatalf("of %d statements %d were prepared by name", proxy.parses, proxy.named)
		}
	})
}

// pgbouncer#801: a cancel request whose sender did not wait for its end crashed the pooler, and with it all connections of all clients.
func TestCallersThatStopWaitingDoNotHarmThePooler(t *testing.T) {
	w := newWorld(t)
	pooler := pgtest.Pooled(t, w.url, poolSize)
	s := w.open(postgres.Config{URL: pooler.URL(w.url)})
	tx, err := w.conn.Begin(w.ctx)
	w.ok(err)
	_, err = tx.Exec(w.ctx, "LOCK TABLE holdfast_job IN ACCESS EXCLUSIVE MODE")
	w.ok(err)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			ctx, stop := context.WithTimeout(w.ctx, 20*time.Millisecond)
			defer stop()
			if _, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}}); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("a caller that stopped waiting got %v", err)
			}
		})
	}
	all.Wait()
	w.ok(tx.Rollback(w.ctx))
	w.enqueue(s, holdfast.Draft{Kind: "mail"})
	if !pooler.Running() {
		t.Fatal("the pooler has ended")
	}
}

// shopping is the job that callers' transactions enqueue.
type shopping struct{ N int }

func (shopping) Kind() string { return "shopping" }

// A lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// An application and its engine share a pooler. Sessions are ended under both, and the pooler itself is restarted once.
func TestAnEngineWorksBehindATransactionPoolerWhoseServerGoesAway(t *testing.T) {
	w := newWorld(t)
	pooler := pgtest.Pooled(t, w.url, poolSize)
	said := &lockedBuffer{}
	log := slog.New(slog.NewTextHandler(said, nil))
	s := w.open(postgres.Config{URL: pooler.URL(w.url), Log: log})
	var done atomic.Int64
	e, err := engine.New(s, engine.Config{Log: log, Slots: 20, Poll: 50 * time.Millisecond, Sweep: 200 * time.Millisecond, Lease: 2 * time.Second})
	w.ok(err)
	engine.Handle(e, func(context.Context, *engine.Job[shopping]) error { done.Add(1); return nil })
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()

	const orders = 200
	shop, err := pgxpool.New(w.ctx, pooler.URL(w.url)) // with the driver's defaults
	w.ok(err)
	defer shop.Close()
	var callers sync.WaitGroup
	for n := range 4 {
		callers.Go(func() {
			for i := range orders / 4 {
				order(w, shop, s, n*orders+i)
			}
		})
	}
	for _, at := range []int64{20, 60, 100} {
		w.until(fmt.Sprint(at, " orders"), func() bool { return done.Load() >= at })
		w.exec("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	w.ok(pooler.Stop())
	w.ok(pooler.Start())
	callers.Wait()
	w.until("all orders complete", func() bool {
		return w.count("SELECT count(*) FROM holdfast_finished WHERE state = 'complete'") == orders
	})
	stop()
	w.ok(<-ended)
	for _, code := range []string{"42P05", "26000", "UNKNOWN"} {
		if strings.Contains(said.String(), code) {
			t.Errorf("the log has %s:\n%s", code, said)
		}
	}
	if n := strings.Count(said.String(), "found by polling"); n != 1 {
		t.Errorf("the log says %d times that work is found by polling", n)
	}
	findings, err := w.store.CheckIntegrity(w.ctx)
	w.ok(err)
	if len(findings) != 0 {
		t.Errorf("the integrity check finds %v", findings)
	}
}

// order enqueues in a transaction of the shop until it is committed. An idempotency key makes an order one job even if the answer to a commit is
// lost.
func order(w *world, shop *pgxpool.Pool, s *postgres.Store, n int) {
	for w.ctx.Err() == nil {
		err := func() error {
			tx, err := shop.Begin(w.ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(w.ctx)) }()
			if _, err := s.In(tx).Enqueue(w.ctx, []holdfast.Draft{{Kind: "shopping", Args: []byte(`{"N":1}`), IdempotencyKey: fmt.Sprint(n)}}); err != nil {
				return err
			}
			return tx.Commit(w.ctx)
		}()
		if err == nil {
			return
		}
		if text := err.Error(); strings.Contains(text, "42P05") || strings.Contains(text, "26000") {
			w.Errorf("order %d: %v", n, err)
			return
		}
	}
}
