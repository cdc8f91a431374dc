package sqlite_test

import (
	"fmt"

	"github.com/holdfastdev/holdfast/internal/soak"
)

// manyRows is how many rows the tables get that grow with every job.
var manyRows = soak.Pick("SQLite: rows in each table whose statements are checked", 300_000, 1_000_000)

// upTo begins a statement that counts in the database.
const upTo = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT "

// floods fill every table that grows with manyRows or, where that is enough, with thousands of rows, in the order of the
// keys. A job is in several places at once here, which does not matter for query plans.
var floods = []string{
	upTo + `200) INSERT INTO holdfast_lane (queue, kind) SELECT CASE WHEN n < 8 THEN 'default' WHEN n = 8 THEN 'alone' ELSE 'queue-' || n % 20 END, 'kind-' || n FROM c`,
	upTo + fmt.Sprint(manyRows) + `) INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, owner, args, group_id)
	 SELECT unhex(printf('%032x', n)), 1 + (n - 1) / ` + fmt.Sprint(manyRows/8) + `, 'kind', 'default', 0, n, CASE WHEN n % 10 = 0 THEN 'owner' END, '{}',
	        CASE WHEN n % 10 = 1 THEN unhex(printf('%032x', n / 100)) END FROM c`,
	`INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) SELECT lane, 0, id, 0, 0, 0, 0, 1 FROM holdfast_job`,
	`INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
	 SELECT created_at, id, 0, 0, 0, 0, 1, CASE WHEN created_at % 10 = 0 THEN 'tag-' || created_at % 50 END FROM holdfast_job`,
	`INSERT INTO holdfast_deadline (at, job, token) SELECT created_at, id, 1 FROM holdfast_job`,
	`INSERT INTO holdfast_redriven (redrive, job, generation, at) SELECT unhex(printf('%032x', created_at / 1000)), id, 2, 1 FROM holdfast_job`,
	upTo + `10000) INSERT INTO holdfast_error_group (fingerprint, code, failures, first_seen, last_seen) SELECT 'f' || n, 'GW_5XX', 1, n, n FROM c`,
	upTo + `100000) INSERT INTO holdfast_error_count (fingerprint, step, kind, queue, dependency, version, failures) SELECT 'f' || n % 10000, n, 'kind', 'default', '', '', 1 FROM c`,
	upTo + `100000) INSERT INTO holdfast_trend (step, queue, shard, complete, failed, retried, cancelled) SELECT n / 10, 'queue-' || (n % 10), 0, 1, 0, 0, 0 FROM c`,
	upTo + `100000) INSERT INTO holdfast_record (namespace, name, version, body, kept_at) SELECT 'namespace-' || n % 100, n, 1, '{}', 1 FROM c`,
	`INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, fingerprint)
	 SELECT id, 1, 0, 0, 0, 1, 1, 2, CASE WHEN created_at % 10 = 0 THEN 'failed' ELSE 'complete' END, 'worker', CASE WHEN created_at % 10 = 0 THEN 'GW_5XX' END,
	        CASE WHEN created_at % 10 = 0 THEN 'f' || created_at % 100 END FROM holdfast_job`,
	`INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, code, category, message, fingerprint)
	 SELECT id, 1, 1, 'worker', 1, 2, 'queued', 'failure', 1, 5, 'GW_5XX', 'gateway', '503', CASE WHEN created_at % 10 = 0 THEN 'f' || created_at % 100 END FROM holdfast_job`,
	`INSERT INTO holdfast_unique (owner, kind, key, job) SELECT '', 'kind', 1000000 + created_at, id FROM holdfast_job`,
	`INSERT INTO holdfast_order (job, owner, key, seq, hold, live) SELECT id, '', 'key-' || created_at % 1000, created_at, 0, created_at % 2 FROM holdfast_job`,
	`INSERT INTO holdfast_idempotency (owner, key, digest, job, created_at) SELECT '', 1000000 + created_at, x'00', id, 1 FROM holdfast_job`,
	`INSERT INTO holdfast_expiry (expire_at, job) SELECT created_at, id FROM holdfast_job`,
	upTo + `100000) INSERT INTO holdfast_late_settlement (job, token, to_state, at, took) SELECT unhex(printf('%032x', n)), 1, 'complete', 1, 1 FROM c`,
	upTo + `100000) INSERT INTO holdfast_event (job, at, name, actor, token, generation) SELECT unhex(printf('%032x', n)), 1, 'manual retry', 'ada', 1, 1 FROM c`,
	`UPDATE holdfast_event SET link = id, hash = x'00' WHERE id < 99000`,
	upTo + `10000) INSERT INTO holdfast_group (id, parent, owner, created_at, sealed_at, state, attend, expire_at)
	 SELECT unhex(printf('%032x', n)), CASE WHEN n % 10 = 0 THEN unhex(printf('%032x', n / 10)) END, 'owner', 1, 1, 'processing', n % 100 = 0, CASE WHEN n % 10 = 0 THEN n END FROM c`,
	upTo + `100000) INSERT INTO holdfast_after (upstream, job, regardless) SELECT unhex(printf('%032x', n)), unhex(printf('%032x', n + 1)), 0 FROM c`,
	upTo + `100000) INSERT INTO holdfast_outbox (first, events, name, at, jobs) SELECT n, 1, CASE WHEN n % 2 THEN 'queued' ELSE 'complete' END, n, unhex(printf('%032x', n)) FROM c`,
	upTo + `100000) INSERT INTO holdfast_tombstone (job, kind, queue, state, finished_at, purged_at, rule, group_id)
	 SELECT unhex(printf('%032x', 2000000 + n)), 'kind', 'default', 'complete', n, n, 'rule', unhex(printf('%032x', n / 100)) FROM c`,
	upTo + `100000) INSERT INTO holdfast_artifact (job, name, ref, created_at, expire_at) SELECT unhex(printf('%032x', n)), 'result', 'r', 1, n FROM c`,
	upTo + `10000) INSERT INTO holdfast_progress (job, since) SELECT unhex(printf('%032x', n)), 1 FROM c`,
	upTo + `2000) INSERT INTO holdfast_cancel (job, at, actor) SELECT unhex(printf('%032x', n)), 1, 'ada' FROM c`,
	upTo + `1000) INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, members)
	 SELECT unhex(printf('%032x', n)), 'worker', 1, 2, unhex(printf('%032x%032x', 2 * n, 2 * n + 1)), '[[1,0,0,0,1,1],[1,0,0,0,1,1]]' FROM c`,
}
