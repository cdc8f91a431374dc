package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// newPool opens a pool as an application does.
func newPool(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 6
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// One function writes the schema into all statements (see qualify), so a share of the chapters stands for all.
func TestTheStoreKeepsTheLawsOnAPoolAndInASchemaOfTheApplication(t *testing.T) {
	share := []string{"enqueue", "keys", "claim", "settle", "reclaim", "complete", "group", "change", "redrive", "keep", "inspect"}
	if soak.Deep() {
		share = nil
	}
	storetest.Laws(t, storetest.Harness{Open: func(t testing.TB) *storetest.Subject {
		url := pgtest.Database(t)
		return storefixture.PostgresWith(t, url, postgres.Config{Pool: newPool(t, url), Schema: "work_1"})
	}}, share...)
}

// schemas lists the schemas in which tables of a store are.
func (w *world) schemas() string {
	rows, err := w.conn.Query(w.ctx, "SELECT DISTINCT schemaname::text FROM pg_tables WHERE tablename LIKE 'holdfast\\_%' ORDER BY 1")
	w.ok(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.ok(err)
	return strings.Join(names, " ")
}

func TestStoresInTwoSchemasOfADatabaseAreIndependent(t *testing.T) {
	w := newWorld(t)
	separator := "?"
	if strings.Contains(w.url, "?") {
		separator = "&"
	}
	other := w.open(postgres.Config{URL: w.url + separator + "schema=order"}) // a word that SQL reserves
	if got := w.schemas(); got != "order public" {
		t.Errorf("the tables are in %q", got)
	}
	here, there := w.enqueue(w.store, holdfast.Draft{Kind: "mail"})[0], w.enqueue(other, holdfast.Draft{Kind: "mail"})[0]
	if _, err := w.store.Job(w.ctx, there.ID); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("the job of the other schema: %v", err)
	}
	if _, err := other.Job(w.ctx, there.ID); err != nil {
		t.Error(err)
	}
	if _, err := w.store.Job(w.ctx, here.ID); err != nil {
		t.Error(err)
	}
}

func TestAStoreOnAPoolOfTheApplicationLeavesItOpen(t *testing.T) {
	url := pgtest.Database(t)
	var connected atomic.Int32
	pool := newPool(t, url, func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			connected.Add(1)
			return nil
		}
	})
	s, err := postgres.Open(t.Context(), postgres.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	lease := drainOne(t, s)
	if _, err := s.Await(t.Context(), []string{"default"}, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the pool after Close: %v", err)
	}
	if lease.ID.IsZero() || connected.Load() < 2 {
		t.Errorf("%d connections asked the application for credentials, want those of renewals too", connected.Load())
	}
}

func TestConfigurationsThatContradictThemselvesAreRefused(t *testing.T) {
	url := pgtest.Database(t)
	for name, cfg := range map[string]postgres.Config{
		"URL":        {URL: url, Pool: newPool(t, url)},
		"schema":     {URL: url, Schema: `jobs"; DROP TABLE x; --`},
		"up to 48":   {URL: url, Schema: strings.Repeat("x", 49)},
		"positive":   {URL: url, MaxConns: -1},
		"lower case": {URL: url, Schema: "Jobs"},
	} {
		s, err := postgres.Open(t.Context(), cfg)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), name) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPoolThatPreparesStatementsBehindAPoolerIsRefused(t *testing.T) {
	url := pgtest.Database(t)
	pooled := pgtest.Pooled(t, url, 5).URL(url)
	_, err := postgres.Open(t.Context(), postgres.Config{Pool: newPool(t, pooled)})
	if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "default_query_exec_mode=cache_describe") {
		t.Fatalf("a pool with prepared statements: %v", err)
	}
	s, err := postgres.Open(t.Context(), postgres.Config{Pool: newPool(t, pooled, func(c *pgxpool.Config) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	drainOne(t, s)
}

func TestARoleWithoutRightsToCreateRunsInASchemaThatExists(t *testing.T) {
	w := newWorld(t)
	s := w.open(postgres.Config{URL: w.url, Schema: "work"})
	w.ok(s.Close())
	for _, statement := range []string{
		"CREATE ROLE " + runnerRole + " LOGIN", "GRANT USAGE ON SCHEMA work TO " + runnerRole,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA work TO " + runnerRole, "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA work TO " + runnerRole,
	} {
		_, err := w.conn.Exec(w.ctx, statement)
		w.ok(err)
	}
	t.Cleanup(func() {
		_, err := w.conn.Exec(context.Background(), "DROP OWNED BY "+runnerRole+"; DROP ROLE "+runnerRole, pgx.QueryExecModeSimpleProtocol)
		w.ok(err)
	})
	pool := newPool(t, w.url, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET ROLE "+runnerRole)
			return err
		}
	})
	defer pool.Close()
	limited, err := postgres.Open(w.ctx, postgres.Config{Pool: pool, Schema: "work"})
	w.ok(err)
	defer func() { _ = limited.Close() }()
	drainOne(t, limited)
	if _, err := pool.Exec(w.ctx, "CREATE TABLE work.mine ()"); err == nil {
		t.Error("the role may create tables: the test proves nothing")
	}
}

// drainOne enqueues a job, claims, renews and completes it.
func drainOne(t testing.TB, s *postgres.Store) store.Lease {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}})
	must(err)
	leases, err := s.Claim(ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
	must(err)
	if len(leases) != 1 {
		t.Fatalf("claimed %d jobs, want 1", len(leases))
	}
	l := leases[0]
	_, err = s.Renew(ctx, []store.Renewal{{Batch: l.Batch, Running: []holdfast.ID{l.ID}}}, time.Minute)
	must(err)
	answers, err := s.Settle(ctx, []store.Settlement{{Batch: l.Batch, Job: l.ID, Token: l.Token, To: holdfast.Complete}})
	must(err)
	must(answers[0])
	return l
}

const runnerRole = "holdfast_test_runner"
