package postgres_test

import (
	"context"
	"testing"

	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// budget is what a job may cost: bytes about a tenth above the measured value, and exact counts hardly above it, so that one more statement in a
// batch is noticed. A change that makes a job cheaper lowers the figure here. One statement of every settlement is for trends: the console shows
// results of attempts without reading jobs.
var budget = map[string]storetest.Cost{
	"enqueue alone":          {Trips: 1, Statements: 1, Transactions: 1, Rows: 2, Bytes: 750},
	"enqueue one by one":     {Trips: 1, Statements: 1, Transactions: 1, Rows: 2, Bytes: 710},
	"enqueue in bulk":        {Trips: 0.0028, Statements: 0.0028, Transactions: 0.00055, Rows: 2, Bytes: 560},
	"claim and complete":     {Trips: 0.0095, Statements: 0.0265, Transactions: 0.0052, Rows: 2.01, Bytes: 330},
	"fail once and complete": {Trips: 0.0176, Statements: 0.0595, Transactions: 0.0096, Rows: 5.1, Bytes: 1350},
}

// maxLogBytes is the promise whatever the budget says: claim and settlement of a job that completes cost no more bytes of write-ahead log.
const maxLogBytes = 700

func TestAJobCostsNoMoreThanItsBudget(t *testing.T) {
	if promised := budget["claim and complete"].Bytes; promised > maxLogBytes {
		t.Errorf("the budget of a job that completes is %v bytes of log, the promise is %v: lower the budget", promised, maxLogBytes)
	}
	storetest.Costs(t, openMeter, budget)
}

// openMeter is a database of its own without autovacuum, so that the log has only what the store writes.
func openMeter(t testing.TB) storetest.Meter {
	w := newWorldAt(t, storefixture.Database(t))
	w.ok(w.store.Close())
	w.exec(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'holdfast\_%' LOOP EXECUTE 'ALTER TABLE ' || name || ' SET (autovacuum_enabled = off)'; END LOOP;
	END $$`)
	proxy := &wire{}
	address := proxy.urlFor(t, w.url)
	return func(ready, work func(store.Store)) (spent storetest.Cost) {
		db, err := postgres.Open(context.Background(), postgres.Config{URL: address, MaxConns: 2})
		w.ok(err)
		defer db.Close()
		ready(db)
		rows, bytes := w.rows(), w.log()
		trips, statements, transactions := proxy.counts()
		work(db)
		spent.Bytes = w.log() - bytes
		moreTrips, moreStatements, moreTransactions := proxy.counts()
		spent.Trips, spent.Statements, spent.Transactions = float64(moreTrips-trips), float64(moreStatements-statements), float64(moreTransactions-transactions)
		w.ok(db.Close())
		w.awaitSessionsEnd()
		spent.Rows = w.rows() - rows
		return spent
	}
}

// awaitSessionsEnd waits until the sessions of a closed store have ended, and until their statistics can be read.
func (w *world) awaitSessionsEnd() {
	w.Helper()
	w.until("the store's sessions end", func() bool {
		return w.count("SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'") == 0
	})
	if w.hasCollector() {
		w.exec("SELECT pg_sleep(0.6)") // the collector gives readers a copy that is at most half a second old
	}
}

// hasCollector reports whether a process of the server collects the statistics of sessions, as before version 15.
func (w *world) hasCollector() bool {
	w.Helper()
	return w.count("SELECT current_setting('server_version_num')::int") < 150_000
}

func (w *world) rows() (n float64) {
	w.Helper()
	w.ok(w.conn.QueryRow(w.ctx, `SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::float8 FROM pg_stat_user_tables WHERE relname LIKE 'holdfast\_%'`).Scan(&n))
	return n
}

// log is the position in the write-ahead log, in bytes.
func (w *world) log() (n float64) {
	w.Helper()
	w.ok(w.conn.QueryRow(w.ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8").Scan(&n))
	return n
}
