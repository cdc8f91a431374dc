package postgres_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// loadJobs is storetest.Load in SQL. Only failed jobs have facts: no operation reads those of the others. Triggers are off, so no events are written.
const loadJobs = `
SET session_replication_role = replica;
SET max_parallel_workers_per_gather = 0;
CREATE OR REPLACE FUNCTION pg_temp.id(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT ('$prefix$' || lpad(to_hex(n), 30, '0'))::uuid $$;
CREATE TEMP TABLE loaded AS SELECT q.queue, 'mail' AS kind, CASE WHEN $lanes$ > 1 THEN 'owner-' || n ELSE '' END AS owner, n - 1 AS place
  FROM unnest(ARRAY['$ready$', 'held', 'ended']) AS q (queue), generate_series(1, $lanes$) n;
INSERT INTO holdfast_lane (queue, kind, owner) SELECT queue, kind, owner FROM loaded ON CONFLICT DO NOTHING;
CREATE TEMP TABLE lanes AS SELECT l.id, d.queue, d.place FROM loaded d JOIN holdfast_lane l USING (queue, kind, owner) WHERE l.dependency = '';
ANALYZE lanes;
INSERT INTO holdfast_ready (lane, priority, job)
SELECT l.id, 0, pg_temp.id(l.place * ($rows$ / $lanes$) + n) FROM lanes l, generate_series(1, $rows$ / $lanes$) n WHERE l.queue = '$ready$' ORDER BY l.id, n;
INSERT INTO holdfast_ready (lane, priority, job)
SELECT l.id, 0, pg_temp.id($rows$ + l.place * ($held$ / $lanes$) + n) FROM lanes l, generate_series(1, $held$ / $lanes$) n WHERE l.queue = 'held' ORDER BY l.id, n;
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation)
SELECT now() + n * interval '1 hour', pg_temp.id($held$ + $rows$ + n), 0, 0, 0, 0, 1 FROM generate_series(1, $rows$) n;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker)
SELECT pg_temp.id($held$ + 2 * $rows$ + n), 1, 0, 0, 0, 1, now(), now(), 'complete', 'w' FROM generate_series(1, $rows$) n;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, fingerprint)
SELECT pg_temp.id($held$ + 3 * $rows$ + n), 1, 1, 0, 0, 1, now(), now(), 'failed', 'w', 'BROKEN', 'print-BROKEN' FROM generate_series(1, $rows$) n;
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, code, category, message, fingerprint)
SELECT pg_temp.id($held$ + 3 * $rows$ + n), 1, 1, 'w', now(), now(), 'failed', 'failure', 1, 1, 'BROKEN', 'test', 'it broke', 'print-BROKEN' FROM generate_series(1, $rows$) n;
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, owner, args)
SELECT pg_temp.id($held$ + 3 * $rows$ + n), l.id, 'mail', 'ended', 0, now(), CASE WHEN $lanes$ > 1 THEN 'owner-' || l.place + 1 END, '{}'
  FROM generate_series(1, $rows$) n JOIN lanes l ON l.queue = 'ended' AND l.place = n % $lanes$;
DROP TABLE lanes, loaded;
RESET session_replication_role;`

func TestOtherJobsCostNothing(t *testing.T) {
	storetest.Flat(t, newWorld(t).meter(), soak.Pick("PostgreSQL: rows of each sort beside which operations are measured", 60_000, 300_000))
}

func TestTwoHundredKindsInOneQueueCostLikeOne(t *testing.T) { storetest.Kinds(t, newWorld(t).meter()) }

// meter counts the blocks that stores on this database touch. Autovacuum is off: the test decides when it runs.
func (w *world) meter() *storetest.BlockMeter {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	w.Cleanup(cancel)
	w.ctx = ctx
	w.ok(w.store.Close())
	w.exec(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'holdfast\_%' LOOP EXECUTE 'ALTER TABLE ' || name || ' SET UNLOGGED, SET (autovacuum_enabled = off)'; END LOOP;
	END $$`)
	w.exec("SET synchronous_commit = off")
	return &storetest.BlockMeter{Run: w.blocks, Load: w.load, Analyze: func() { w.exec("VACUUM ANALYZE") }, Vacuum: w.vacuum, Plans: w.loadedPlans, Patience: 30 * time.Second}
}

func (w *world) load(l storetest.Load) {
	w.Helper()
	ready := "settled"
	if l.Lanes > 1 {
		ready = "backlog"
	}
	w.exec(strings.NewReplacer("$ready$", ready, "$prefix$", l.Prefix, "$rows$", strconv.Itoa(l.Rows), "$held$", strconv.Itoa(l.Held), "$lanes$", strconv.Itoa(l.Lanes)).Replace(loadJobs))
}

// blocks counts the blocks of tables and indexes that a store touches. Its sessions report them when they end.
func (w *world) blocks(work func(store.Store)) int {
	w.Helper()
	// Earlier work of this session, such as a vacuum, must not be counted later. Where there is a collector, it is reported while operations are prepared.
	if !w.hasCollector() {
		w.exec("SELECT pg_stat_force_next_flush()")
	}
	before := w.pages()
	db := w.open(postgres.Config{URL: w.url, MaxConns: 2})
	work(db)
	w.ok(db.Close())
	w.awaitSessionsEnd()
	return w.pages() - before
}

// vacuum vacuums the tables that load does not fill.
func (w *world) vacuum() {
	w.Helper()
	w.exec("VACUUM holdfast_batch, holdfast_expiry, holdfast_deadline, holdfast_outbox, holdfast_cancel, holdfast_unique, holdfast_progress, holdfast_feed, holdfast_hold, holdfast_trend")
}

// loadedPlans checks how statements read the tables that load fills. With all jobs in one lane the lane is not selective, and after a vacuum an index
// is cheap to read as a whole: a plan that is good with eight lanes may read everything here.
func (w *world) loadedPlans(t *testing.T) {
	whole := w.TB
	w.TB = t
	defer func() { w.TB = whole }()
	texts := sqltext.Load("postgres")
	plans.Check(t, texts, func(name, text string) storetest.Plan {
		settings := texts["configure_planner"]
		if runsUnconfigured(name) {
			settings = settingsOf(name, texts)
		}
		p := w.plan(name, text, settings)
		p.Sorted = false
		p.Accesses = slices.DeleteFunc(p.Accesses, func(a storetest.Access) bool {
			return !slices.Contains([]string{"ready", "later", "finished", "job", "attempt"}, a.Table)
		})
		return p
	})
}
