package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// retriedJobs adds jobs that failed once and then completed.
const retriedJobs = `
INSERT INTO holdfast_lane (queue, kind) VALUES ('default', 'kind');
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, args)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 1, 'kind', 'default', 0, now(), '{}' FROM generate_series(1, 50000) n;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 2, 1, 0, 0, 1, now(), now(), 'complete' FROM generate_series(1, 50000) n;
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, code)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 1, 1, 'w', now(), now(), 'queued', 'failure', 1, 'BROKEN' FROM generate_series(1, 50000) n;
ANALYZE`

// An integrity check compares every job with its attempts. With the planner settings of the queries for a page of jobs, it would compare every job
// with every attempt, and take more than a minute and a half. It takes about a second.
func TestAnIntegrityCheckComparesEachJobWithItsOwnAttempts(t *testing.T) {
	w := newWorld(t)
	w.exec(retriedJobs)
	ctx, cancel := context.WithTimeout(w.ctx, 45*time.Second)
	defer cancel()
	_, err := w.store.CheckIntegrity(ctx)
	w.ok(err)
}

// jobsWithEverything adds the jobs $from$ to $to$ with a row in every table that grows: four in ten are ready, later, processing or finished.
const jobsWithEverything = `
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, run_at, expire_at, owner, unique_key, idempotency_key, group_id, args)
	SELECT id(n), 1, 'kind', 'default', 0, now(), now(), now() + interval '1 day', 'owner', 'key-' || n, 'key-' || n, id(n - n % 10), '{}' FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_ready (lane, priority, job, generation) SELECT -1, 0, id(n), 2 FROM generate_series($from$, $to$) n WHERE n % 4 = 0;
INSERT INTO holdfast_later (due_at, job, generation, hold)
	SELECT now() + interval '1000 years', id(n), 2, CASE WHEN n % 8 = 1 THEN '' END FROM generate_series($from$, $to$) n WHERE n % 4 = 1;
INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, tokens, started)
	SELECT id(n), 'w', now(), now() + interval '1 day', ARRAY[id(n)], ARRAY[2], ARRAY[true] FROM generate_series($from$, $to$) n WHERE n % 4 = 2;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state)
	SELECT id(n), 3, 1, 0, 0, 2, now(), now(), 'complete' FROM generate_series($from$, $to$) n WHERE n % 4 = 3;
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, code)
	SELECT id(n), token, 1, 'w', now(), now(), 'queued', 'failure', 1, 'BROKEN' FROM generate_series($from$, $to$) n, generate_series(1, 2) token;
INSERT INTO holdfast_event (job, at, name, actor, token, generation)
	SELECT id(n), now(), CASE n % 2 WHEN 0 THEN 'redrive' ELSE 'manual retry' END, 'ada', 2, 2 FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_unique (owner, kind, key, job) SELECT 'owner', 'kind', 'key-' || n, id(n) FROM generate_series($from$, $to$) n WHERE n % 4 < 3;
INSERT INTO holdfast_idempotency (owner, key, digest, job, created_at) SELECT 'owner', 'key-' || n, '', id(n), now() FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_expiry (expire_at, job) SELECT now() + interval '1 day', id(n) FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_deadline (at, job, token) SELECT now() + interval '1 day', id(n), 2 FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_late_settlement (job, token, to_state, at, took) SELECT id(n), 1, 'complete', now(), '1 second' FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_redriven (redrive, job, generation, at) SELECT id(1), id(n), 2, now() FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_progress (job, since) SELECT id(n), now() FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_cancel (job, at, actor) SELECT id(n), now(), 'ada' FROM generate_series($from$, $to$) n WHERE n % 4 = 2;
INSERT INTO holdfast_artifact (job, name, ref, created_at) SELECT id(n), 'result', 'file', now() FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_tombstone (job, kind, queue, group_id, state, finished_at, purged_at, rule)
	SELECT id(1000000 + n), 'kind', 'default', id(n - n % 10), 'complete', now(), now(), 'old' FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_group (id, parent, created_at, sealed_at, state, settled_at, complete, failed, cancelled)
	SELECT id(n), CASE WHEN n % 100 > 0 THEN id(n - n % 100) END, now(), now(), state, CASE state WHEN 'ready' THEN now() END, 10, 0, 0
	  FROM generate_series($from$, $to$) n, LATERAL (SELECT CASE WHEN n % 3 = 0 THEN 'ready' ELSE 'processing' END AS state) s WHERE n % 10 = 0;
INSERT INTO holdfast_after (upstream, job, regardless) SELECT id(n - 1), id(n), n % 3 = 0 FROM generate_series($from$, $to$) n WHERE n % 4 IN (0, 1);
INSERT INTO holdfast_error_group (fingerprint, code, failures, first_seen, last_seen) SELECT 'print-' || n, 'BROKEN', 2, now(), now() FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_error_count (fingerprint, step, kind, queue, dependency, version, failures)
	SELECT 'print-' || n, now(), 'kind', 'default', '', '', 2 FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_record (namespace, name, version, body, kept_at) SELECT 'key', 'name-' || n, 1, '{}', now() FROM generate_series($from$, $to$) n;
INSERT INTO holdfast_hold (scope, name, source, at_most, since, until, actor)
	SELECT CASE n % 2 WHEN 0 THEN 'owner' ELSE 'tag' END, 'name-' || n, 'limit', 1, now() - interval '1 day', now() + interval '1 day', 'ada' FROM generate_series($from$, $to$) n;`

// fewJobs is how many jobs a store has when it is analyzed too early, and manyJobs how many it has then. Rows that are compared with all rows of another
// table are ten million comparisons.
const (
	fewJobs  = 3
	manyJobs = 3200
)

// An integrity check joins tables that grew since the database last collected statistics. The planner takes them for nearly empty, and a nested loop for
// cheap: a check of 50,000 jobs took two and a half minutes.
func TestAWholeTableStatementReadsEachRowAFewTimesWhateverTheStatistics(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"never collected":               func(w *world) { w.addJobs(1, manyJobs) },
		"from when there were few jobs": func(w *world) { w.addJobs(1, fewJobs); w.exec("ANALYZE"); w.addJobs(fewJobs+1, manyJobs) },
		"of today":                      func(w *world) { w.addJobs(1, manyJobs); w.exec("VACUUM ANALYZE") },
		"from when there were no jobs":  func(w *world) { w.exec("VACUUM ANALYZE"); w.addJobs(1, manyJobs) },
		"from before a redrive of all": func(w *world) {
			w.addJobs(1, manyJobs)
			w.exec("DELETE FROM holdfast_event WHERE job > id(20)")
			w.exec("VACUUM ANALYZE")
			w.addEvents()
		},
		"from before retention of a lot": func(w *world) {
			w.addJobs(1, manyJobs)
			w.exec("ANALYZE")
			w.exec("DELETE FROM holdfast_attempt WHERE token = 2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.store.Close())
			w.exec(withoutAutovacuum)
			w.exec(`CREATE FUNCTION id(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT lpad(to_hex(n), 32, '0')::uuid $$`)
			w.exec("INSERT INTO holdfast_lane (queue, kind, owner) VALUES ('default', 'kind', 'owner')")
			prepare(w)
			w.checkWholeStatements()
		})
	}
}

const withoutAutovacuum = `DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'holdfast\_%' LOOP EXECUTE 'ALTER TABLE ' || name || ' SET (autovacuum_enabled = off)'; END LOOP;
END $$`

func (w *world) addJobs(from, to int) {
	w.Helper()
	w.exec("SET session_replication_role = replica") // no events of these changes
	w.exec(strings.NewReplacer("$from$", fmt.Sprint(from), "$to$", fmt.Sprint(to)).Replace(jobsWithEverything), pgx.QueryExecModeSimpleProtocol)
	w.exec("RESET session_replication_role")
}

// addEvents adds what a redrive of every job writes.
func (w *world) addEvents() {
	w.Helper()
	w.exec("INSERT INTO holdfast_event (job, at, name, actor, token, generation) SELECT id, now(), 'redrive', 'ada', 2, 2 FROM holdfast_job")
}

// checkWholeStatements runs every statement that reads whole tables, and counts the rows that the steps of its plan pass on or drop.
func (w *world) checkWholeStatements() {
	w.Helper()
	texts := sqltext.Load("postgres")
	const limit = 60 * manyJobs // the longest statement passes some thirty rows of each job through its steps
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text, args := texts[name], ""
		switch {
		case strings.HasPrefix(name, "audit: "), strings.HasPrefix(name, "overdue: "):
			text = "WITH job_rows AS (" + texts["audit_job_rows"] + ") SELECT * FROM (" + text + ") AS broken LIMIT 100"
		case name != "inspect_counts" && name != "inspect_purge_counts":
			continue
		}
		if strings.Contains(text, "$1") {
			args = "now()"
		}
		root, shown := w.explain(texts["configure_planner_whole"], text, args, "ANALYZE, TIMING OFF")
		var rows float64
		root.walk(nil, func(n, _ *node) { rows += n.Loops * (n.Rows + float64(n.Removed) + n.Unmatched) })
		if rows > limit {
			w.Errorf("%q passes %.0f rows through its steps, with %d jobs:\n%s", name, rows, manyJobs, shown)
		}
	}
}
