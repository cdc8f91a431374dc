package postgres_test

import (
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// fillings fill every table that grows with a million rows or, where that proves as much, with thousands, on the server. A job has rows in several
// places at once, which does not matter for plans; the page budgets need some that do not.
var fillings = map[string]string{
	"lane": `(queue, kind) SELECT CASE WHEN n < 8 THEN 'default' WHEN n = 8 THEN 'alone' ELSE 'queue-' || n % 20 END, 'kind-' || n FROM generate_series(1, 200) n`,
	"job": `(id, lane, kind, queue, priority, created_at, owner, unique_key, idempotency_key, group_id, args)
		SELECT id(n), 1 + n % 8, 'kind-' || 1 + n % 8, CASE WHEN n % 8 = 7 THEN 'alone' ELSE 'default' END, 0, now(), CASE WHEN n % 4 = 0 THEN 'owner-' || n % 1000 END,
		       'key-' || n, 'key-' || n, CASE WHEN n % 4 = 1 THEN id(n % 1000) END, '{"to":"somebody@example.org","template":"welcome"}' FROM generate_series(1, 1000000) n`,
	"ready": `(lane, priority, job, token, failures, crashes, releases, generation)
		SELECT 1 + n % 8, 0, id(n), 0, 0, 0, 0, 1 FROM generate_series(1, 1000100) n WHERE n NOT BETWEEN 900001 AND 900100`,
	"later": `(due_at, job, token, failures, crashes, releases, generation)
		SELECT now() + (n - 2000) * interval '1 second', id(n), 0, 0, 0, 0, 1 FROM generate_series(1, 1002200) n
		 WHERE n NOT BETWEEN 200001 AND 202000 AND n NOT BETWEEN 400001 AND 400100 AND n NOT BETWEEN 900001 AND 900100`,
	"finished": `(job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, fingerprint)
		SELECT id(n), 1, 0, 0, 0, 1, now(), now(), CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'complete' END, 'worker-' || n % 7,
		       CASE WHEN n % 10 = 0 THEN 'GW_5XX' END, CASE WHEN n % 10 = 0 THEN 'fingerprint-' || n % 100 END FROM generate_series(500001, 1500000) n`,
	"attempt": `(job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, code, category, message, fingerprint)
		SELECT id(n), 1, 1, 'worker-' || n % 7, now(), now(), 'queued', 'failure', 1, 5, 'GW_5XX', 'gateway', 'the gateway answered 503',
		       CASE WHEN n % 10 = 0 THEN 'fingerprint-' || n % 100 END FROM generate_series(500001, 1500000) n`,
	"unique":          `(owner, kind, key, job) SELECT '', 'kind-1', 'key-' || 1000000 + n, id(n) FROM generate_series(1, 1000000) n`,
	"idempotency":     `(owner, key, digest, job, created_at) SELECT '', 'key-' || 1000000 + n, '\x00', id(n), now() FROM generate_series(1, 1000000) n`,
	"expiry":          `(expire_at, job) SELECT now() + (n - 2000) * interval '1 second', id(200000 + n) FROM generate_series(1, 1000000) n`,
	"late_settlement": `(job, token, to_state, at, took) SELECT id(n), 1, 'complete', now(), '1 second' FROM generate_series(1, 100000) n`,
	"event":           `(job, at, name, actor, token, generation) SELECT id(n), now(), 'manual retry', 'ada', 1, 1 FROM generate_series(1, 100000) n`,
	"deadline":        `(at, job, token) SELECT now() + (n - 2000) * interval '1 second', id(n), 0 FROM generate_series(1, 100000) n`,
	"redriven":        `(redrive, job, generation, at) SELECT id(n % 10), id(n), 2, now() FROM generate_series(1, 100000) n`,
	"error_group":     `(fingerprint, code, failures, first_seen, last_seen) SELECT 'fingerprint-' || n, 'GW_5XX', n, now(), now() - n * interval '1 second' FROM generate_series(1, 100000) n`,
	"error_count": `(fingerprint, step, kind, queue, dependency, version, failures)
		SELECT 'fingerprint-' || n % 1000, timestamptz 'epoch' + n / 1000 * interval '5 minutes', 'kind-1', 'default', '', '', 1 FROM generate_series(1, 100000) n`,
	"trend": `(step, queue, shard, complete, failed, retried, cancelled)
		SELECT timestamptz 'epoch' + n / 100 * interval '1 minute', 'queue-' || n % 25, n % 100 / 25, 1, 0, 0, 0 FROM generate_series(1, 100000) n`,
	"record":   `(namespace, name, version, body, kept_at) SELECT 'namespace-' || n % 1000, 'name-' || n, 1, '{}', now() FROM generate_series(1, 100000) n`,
	"progress": `(job, since) SELECT id(n), now() FROM generate_series(1, 10000) n`,
	"cancel":   `(job, at, actor) SELECT id(n), now(), 'ada' FROM generate_series(300001, 302000) n`,
	"group": `(id, owner, parent, expire_at, created_at, sealed_at, state, attend)
		SELECT id(n), 'owner-' || n % 1000, CASE WHEN n % 10 > 0 THEN id(n / 10) END, CASE WHEN n % 5 = 0 THEN now() + (n - 100) * interval '1 minute' END, now(), now(), 'processing', n % 1000 = 0
		  FROM generate_series(1, 100000) n`,
	"step":  `(group_id, name, job) SELECT id(n % 1000), 'step-' || n, id(n) FROM generate_series(1, 100000) n`,
	"after": `(upstream, job, regardless) SELECT id(n), id(n + 1), n % 3 = 0 FROM generate_series(1, 100000) n`,
	"outbox": `(first, events, name, at, jobs, tokens)
		SELECT CASE WHEN n < 99000 THEN n END, 1, 'complete', now() - interval '1 hour', ARRAY[id(n)], ARRAY[1] FROM generate_series(1, 100000) n`,
	"tombstone": `(job, kind, queue, group_id, state, finished_at, purged_at, rule)
		SELECT id(2000000 + n), 'kind-1', 'default', CASE WHEN n % 4 = 0 THEN id(n % 1000) END, 'complete', now(), now() + n * interval '1 second', 'old' FROM generate_series(1, 100000) n`,
	"artifact": `(job, name, ref, created_at, expire_at) SELECT id(n), 'result', 'file', now(), now() + n * interval '1 second' FROM generate_series(1, 100000) n`,
	"batch": `(id, worker, claimed_at, expires_at, jobs, tokens, started)
		SELECT id(n), 'worker-' || n % 7, now(), now() + CASE WHEN n > 20 THEN interval '1 hour' ELSE interval '-1 hour' END,
		       array_agg(id(n * 100 + m)), array_agg(1), array_agg(true) FROM generate_series(1, 1000) n, generate_series(1, 20) m GROUP BY n`,
}

// fillTable fills one table and creates its indexes afterwards, as the schema has them, which is twice as fast. Autovacuum is off while plans are
// checked, and the tables are unlogged because nothing has to survive.
const fillTable = `DO $fill$ DECLARE one record; BEGIN
	ALTER TABLE holdfast_%[1]s SET UNLOGGED, SET (autovacuum_enabled = off);
	CREATE TEMP TABLE kept ON COMMIT DROP AS
		SELECT format('ALTER TABLE holdfast_%[1]s DROP CONSTRAINT %%I', conname) AS off, format('ALTER TABLE holdfast_%[1]s ADD CONSTRAINT %%I %%s', conname, pg_get_constraintdef(oid)) AS back
		  FROM pg_constraint WHERE conrelid = 'holdfast_%[1]s'::regclass AND contype IN ('p', 'u')
		 UNION ALL
		SELECT format('DROP INDEX %%I', indexname), indexdef FROM pg_indexes
		 WHERE tablename = 'holdfast_%[1]s' AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE conrelid = 'holdfast_%[1]s'::regclass);
	FOR one IN SELECT off FROM kept LOOP EXECUTE one.off; END LOOP;
	INSERT INTO holdfast_%[1]s %[2]s;
	FOR one IN SELECT back FROM kept LOOP EXECUTE one.back; END LOOP;
END $fill$`

// fillTables fills the tables over two connections.
func (w *world) fillTables() {
	w.Helper()
	w.exec(`CREATE FUNCTION id(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT lpad(to_hex(n), 32, '0')::uuid $$`)
	tables := make(chan string, len(fillings))
	for table := range fillings {
		tables <- table
	}
	close(tables)
	var fillers sync.WaitGroup
	for range 2 {
		conn, err := pgx.Connect(w.ctx, w.url)
		w.ok(err)
		fillers.Go(func() {
			defer conn.Close(w.ctx)
			_, err := conn.Exec(w.ctx, "SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0; SET max_parallel_workers_per_gather = 0")
			for table := range tables {
				if err == nil {
					_, err = conn.Exec(w.ctx, fmt.Sprintf(fillTable, table, fillings[table]))
				}
			}
			if err != nil {
				w.Error(err)
			}
		})
	}
	fillers.Wait()
}
