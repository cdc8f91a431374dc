-- name: batch_lock
-- Membership under these locks is the fence. All transactions lock batches in this order, so there is no deadlock. A separate statement, so that the
-- following ones see everything that was committed while it waited.
SELECT id, worker, coalesce(lost, ''), claimed_at, expires_at, jobs, tokens, failures, crashes, releases, generations, started
  FROM holdfast_batch WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE

-- name: batch_make
-- The arrays are aligned: each member has the same position in all of them.
INSERT INTO holdfast_batch (id, worker, lost, claimed_at, expires_at, jobs, tokens, failures, crashes, releases, generations, started)
VALUES ($1::uuid, $2::text, nullif($3::text, ''), $4::timestamptz, $5::timestamptz,
        $6::uuid[], $7::integer[], $8::integer[], $9::integer[], $10::integer[], $11::integer[], $12::boolean[])

-- name: batch_shrink
-- What is left of a batch after some members were removed.
UPDATE holdfast_batch SET jobs = $2::uuid[], tokens = $3::integer[], failures = $4::integer[], crashes = $5::integer[],
       releases = $6::integer[], generations = $7::integer[], started = $8::boolean[] WHERE id = $1::uuid

-- name: batch_drop
-- A batch is deleted with its last member.
DELETE FROM holdfast_batch WHERE id = ANY ($1::uuid[])

-- name: cancel_find
-- Which of these jobs have a cancel request. The table is nearly empty.
SELECT job FROM holdfast_cancel WHERE job = ANY ($1::uuid[])

-- name: cancel_drop
-- The request was applied, or no longer matters.
DELETE FROM holdfast_cancel WHERE job = ANY ($1::uuid[])

-- name: find_unique_in_batches
-- Members of these batches with a unique key, and whether success keeps it. If no job has a unique key, no member is searched for. OFFSET keeps the search
-- for each batch: before the tables are analyzed, PostgreSQL 18 would rather read all keys once.
SELECT m.job, m.unique_done FROM holdfast_batch l CROSS JOIN LATERAL (
    SELECT u.job, j.unique_done FROM holdfast_unique u JOIN holdfast_job j ON j.id = u.job WHERE u.job = ANY (l.jobs) OFFSET 0) m
 WHERE (SELECT true FROM holdfast_unique LIMIT 1) AND l.id = ANY ($1::uuid[])

-- name: unique_free
-- In the transaction that ends the job: a draft with the same key is a duplicate before its commit, and a new job after it.
DELETE FROM holdfast_unique WHERE job = ANY ($1::uuid[])

-- name: finish
-- Without "gently", this refuses a row that exists already, which is cheaper than to check for it. If that happens, Settle is repeated with the
-- "gently" form, which skips the row: it proves that the job has ended, and must not keep other jobs from ending.
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, fingerprint, result, discarded_at, benign)
SELECT d.job, d.token, d.failures, d.crashes, d.releases, d.generation, timestamptz 'epoch' + d.started * interval '1 microsecond', $1::timestamptz,
       d.state, d.worker, d.code, d.fingerprint, d.result::json, CASE WHEN d.benign THEN $1::timestamptz END, d.benign
  FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[], $8::bigint[], $9::text[],
              $10::text[], $11::text[], $12::text[], $13::text[], $14::boolean[])
    AS d (job, token, failures, crashes, releases, generation, started, state, worker, code, fingerprint, result, benign)
{gently}

-- name: attempt_add
-- Inserted in the transaction that ends the attempt.
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at,
                              code, category, message, detail, context, dependency, fingerprint, benign, why, said)
SELECT d.job, d.token, d.generation, d.worker, timestamptz 'epoch' + d.started * interval '1 microsecond', $1::timestamptz, d.to_state, d.charge, d.count, d.cap,
       timestamptz 'epoch' + d.due * interval '1 microsecond', d.code, d.category, d.message, d.detail, d.context::json, d.dependency, d.fingerprint, d.benign, d.why, d.said
  FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::integer[], $10::integer[],
              $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::boolean[], $20::text[], $21::text[])
    AS d (job, token, generation, worker, started, to_state, charge, count, cap,
          due, code, category, message, detail, context, dependency, fingerprint, benign, why, said)
{gently}

-- name: merge_releases
-- Merges consecutive released attempts of a job: the new one counts the previous one as a repeat, and the previous one is deleted.
WITH gone AS (
    DELETE FROM holdfast_attempt p USING unnest($1::uuid[], $2::integer[]) AS d (job, token)
     WHERE p.job = d.job AND p.token = d.token - 1 AND p.charge = 'release' AND p.to_state = 'queued'
    RETURNING p.job, p.token, p.repeats, coalesce(p.since, p.ended_at) AS since
)
UPDATE holdfast_attempt a SET repeats = g.repeats + 1, since = g.since FROM gone g WHERE a.job = g.job AND a.token = g.token + 1

-- name: ready_add
-- Makes jobs claimable. Lane and priority are facts of the job; a job with failures waits in the lane's line for retries. Returns the places and
-- their queues.
WITH added AS (
    INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
    SELECT CASE WHEN d.failures > 0 THEN -j.lane ELSE j.lane END, j.priority, j.id, d.token, d.failures, d.crashes, d.releases, d.generation, $1::timestamptz
      FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[])
        AS d (job, token, failures, crashes, releases, generation) JOIN holdfast_job j ON j.id = d.job
    {gently} RETURNING lane, priority
)
SELECT l.queue, a.lane, a.priority FROM (SELECT DISTINCT lane, priority FROM added) AS a JOIN holdfast_lane l ON l.id = abs(a.lane)

-- name: later_add
-- Makes jobs wait for their due time.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation)
SELECT timestamptz 'epoch' + d.due * interval '1 microsecond', d.job, d.token, d.failures, d.crashes, d.releases, d.generation
  FROM unnest($1::bigint[], $2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[])
    AS d (due, job, token, failures, crashes, releases, generation)
{gently}

-- name: find_settled
-- How earlier settlements with the same tokens ended. A completed attempt has no attempt row, only the finished row. One attempt row can stand for
-- several tokens.
SELECT d.n, coalesce(a.said, a.to_state, ''), CASE WHEN f.state = 'complete' THEN f.state ELSE '' END, j.id IS NOT NULL
  FROM unnest($1::integer[], $2::uuid[], $3::integer[]) AS d (n, job, token)
  LEFT JOIN holdfast_job j ON j.id = d.job
  LEFT JOIN holdfast_attempt a ON a.job = d.job AND a.token >= d.token AND a.token - a.repeats <= d.token
  LEFT JOIN holdfast_finished f ON f.job = d.job AND f.token = d.token

-- name: complete_lock
-- In a transaction of the caller: membership under this lock is the fence until that transaction ends. A separate statement, so that the next one sees
-- everything that was committed while it waited.
SELECT 1 FROM holdfast_batch WHERE id = $1::uuid FOR UPDATE

-- name: complete
-- Everything that a settlement writes when it completes one job, in one statement, because each statement in a caller's transaction is a round trip. It
-- returns no row if the lease is lost. The counts go to a row of their own (shards 16 and higher) that no other open transaction of a caller uses: other
-- settlements must not wait for this one to commit. If the caller's process hangs before its commit, the database ends its session after a quarter
-- of what is left of the lease, because leases of the same batch cannot be renewed or reclaimed meanwhile. A shorter limit of the caller stays.
WITH member AS MATERIALIZED (
    SELECT m.n::integer AS n, cardinality(b.jobs) AS size, b.worker, coalesce(b.lost, b.worker) AS attempted_by, b.expires_at, c.now, m.started,
           coalesce(m.failures, 0) AS failures, coalesce(m.crashes, 0) AS crashes, coalesce(m.releases, 0) AS releases, coalesce(m.generation, 1) AS generation,
           CASE WHEN $4::bigint > 0 THEN greatest(b.claimed_at, c.now - $4::bigint * interval '1 microsecond') ELSE c.now END AS began
      FROM holdfast_batch b
     CROSS JOIN LATERAL unnest(b.jobs, b.tokens, b.failures, b.crashes, b.releases, b.generations, b.started)
           WITH ORDINALITY AS m (job, token, failures, crashes, releases, generation, started, n)
     CROSS JOIN (SELECT holdfast_now() AS now OFFSET 0) AS c
     WHERE b.id = $1::uuid AND m.job = $2::uuid AND coalesce(m.token, 1) = $3::integer
), overruled AS (
    DELETE FROM holdfast_cancel WHERE job = $2::uuid AND EXISTS (SELECT FROM member) RETURNING job
), ended AS (
    INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, result, benign)
    SELECT $2::uuid, $3::integer, m.failures, m.crashes, m.releases, m.generation, CASE WHEN $4::bigint > 0 OR m.started THEN m.began END, m.now,
           CASE WHEN o.job IS NULL THEN 'complete' ELSE 'cancelled' END, m.worker, CASE WHEN o.job IS NULL THEN $5::text::json END, false
      FROM member m LEFT JOIN overruled o ON true
    ON CONFLICT DO NOTHING
), attempted AS (
    INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, count, cap, benign, said)
    SELECT $2::uuid, $3::integer, m.generation, m.attempted_by, m.began, m.now, 'cancelled', 0, $7::integer, false, 'complete' FROM member m, overruled
    ON CONFLICT DO NOTHING
), freed AS (
    DELETE FROM holdfast_unique WHERE job = $2::uuid AND EXISTS (SELECT FROM member)
       AND (EXISTS (SELECT FROM overruled) OR NOT (SELECT j.unique_done FROM holdfast_job j WHERE j.id = $2::uuid))
), shrunk AS (
    UPDATE holdfast_batch b SET jobs = b.jobs[:m.n - 1] || b.jobs[m.n + 1:], tokens = b.tokens[:m.n - 1] || b.tokens[m.n + 1:],
           failures = b.failures[:m.n - 1] || b.failures[m.n + 1:], crashes = b.crashes[:m.n - 1] || b.crashes[m.n + 1:],
           releases = b.releases[:m.n - 1] || b.releases[m.n + 1:], generations = b.generations[:m.n - 1] || b.generations[m.n + 1:],
           started = b.started[:m.n - 1] || b.started[m.n + 1:]
      FROM member m WHERE b.id = $1::uuid AND m.size > 1
), dropped AS (
    DELETE FROM holdfast_batch WHERE id = $1::uuid AND (SELECT m.size FROM member m) = 1
), shard AS MATERIALIZED (
    SELECT s.n FROM generate_series(16, 79) AS s (n) WHERE EXISTS (SELECT FROM member) AND pg_try_advisory_xact_lock(5721944081463300 + s.n) LIMIT 1
), counted AS (
    INSERT INTO holdfast_trend AS t (step, queue, shard, complete, failed, retried, cancelled)
    SELECT date_bin('1 minute', m.now, timestamptz 'epoch'), $6::text, coalesce((SELECT s.n FROM shard s), 16),
           CASE WHEN o.job IS NULL THEN 1 ELSE 0 END, 0, 0, CASE WHEN o.job IS NULL THEN 0 ELSE 1 END
      FROM member m LEFT JOIN overruled o ON true
    ON CONFLICT (step, queue, shard) DO UPDATE SET complete = t.complete + excluded.complete, cancelled = t.cancelled + excluded.cancelled
)
SELECT set_config('idle_in_transaction_session_timeout', (1000 * extract(epoch FROM
           least(nullif(current_setting('idle_in_transaction_session_timeout')::interval, interval '0'), greatest(interval '1 second', (m.expires_at - m.now) / 4))))::bigint::text, true),
       NOT EXISTS (SELECT FROM overruled)
  FROM member m

-- name: late_add
-- Evidence that is never applied. Repeating it adds nothing.
INSERT INTO holdfast_late_settlement (job, token, to_state, at, took, charge, code, category, message, detail, context, dependency, fingerprint, benign, why)
SELECT d.job, d.token, d.to_state, $1::timestamptz, d.took * interval '1 microsecond', d.charge, d.code, d.category, d.message, d.detail, d.context::json,
       d.dependency, d.fingerprint, d.benign, d.why
  FROM unnest($2::uuid[], $3::integer[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
              $13::text[], $14::boolean[], $15::text[])
    AS d (job, token, to_state, took, charge, code, category, message, detail, context, dependency, fingerprint, benign, why)
ON CONFLICT DO NOTHING

-- name: deadline_add
-- The deadlines for the start of the next attempt. Of two for the same time, the later one counts.
INSERT INTO holdfast_deadline (at, job, token)
SELECT timestamptz 'epoch' + d.at * interval '1 microsecond', d.job, d.token FROM unnest($1::bigint[], $2::uuid[], $3::integer[]) AS d (at, job, token)
ON CONFLICT (at, job) DO UPDATE SET token = excluded.token

-- name: add_failures
-- One row for each error group of the call, in one order for all transactions, and near the end of the transaction: many settlements update the same
-- row.
INSERT INTO holdfast_error_group AS g (fingerprint, code, category, message, detail, failures, first_seen, last_seen)
SELECT d.fingerprint, d.code, d.category, d.message, d.detail, d.failures, $1::timestamptz, $1::timestamptz
  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) AS d (fingerprint, code, category, message, detail, failures)
 ORDER BY d.fingerprint
ON CONFLICT (fingerprint) DO UPDATE SET failures = g.failures + excluded.failures, last_seen = greatest(g.last_seen, excluded.last_seen)

-- name: check_error_status
-- Whether a failure may change the status of one of these groups. Usually not, and then no further round trip is needed.
SELECT EXISTS (SELECT FROM holdfast_error_group g WHERE g.fingerprint = ANY ($1::text[]) AND g.status IN ('resolved', 'ignored'))

-- name: read_error_groups
-- The groups after these failures were counted. The rows are locked already.
SELECT g.fingerprint, g.status, g.failures, g.until, coalesce(g.until_count, 0), coalesce(g.resolved_in, '')
  FROM holdfast_error_group g WHERE g.fingerprint = ANY ($1::text[]) ORDER BY g.fingerprint

-- name: change_error_status
-- Applies the status changes that the rules decided. The rows are locked already.
WITH turn AS MATERIALIZED (
    SELECT d.* FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS d (fingerprint, status, event, reason)
), turned AS (
    UPDATE holdfast_error_group g SET status = t.status, until = NULL, until_count = NULL FROM turn t WHERE g.fingerprint = t.fingerprint
)
INSERT INTO holdfast_event (subject, at, name, actor, reason, token, generation)
SELECT 'error/' || t.fingerprint, $1::timestamptz, t.event, $2::text, t.reason, 0, 0 FROM turn t ORDER BY t.fingerprint

-- name: add_error_counts
-- Failures by place and time, in steps of five minutes.
INSERT INTO holdfast_error_count AS t (fingerprint, step, kind, queue, dependency, version, failures)
SELECT d.fingerprint, date_bin('5 minutes', $1::timestamptz, timestamptz 'epoch'), coalesce(j.kind, ''), coalesce(j.queue, ''), d.dependency, d.version, count(*)
  FROM unnest($2::text[], $3::uuid[], $4::text[], $5::text[]) AS d (fingerprint, job, dependency, version) LEFT JOIN holdfast_job j ON j.id = d.job
 GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
ON CONFLICT (fingerprint, step, kind, queue, dependency, version) DO UPDATE SET failures = t.failures + excluded.failures

-- name: add_trend_counts
-- Counts of results, for trends. Another transaction that adds to the same row waits for this one to commit, so it is the last statement, and has one
-- order for all transactions.
INSERT INTO holdfast_trend AS t (step, queue, shard, complete, failed, retried, cancelled)
SELECT $1::timestamptz, d.queue, $2::smallint, d.complete, d.failed, d.retried, d.cancelled
  FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) AS d (queue, complete, failed, retried, cancelled)
 ORDER BY d.queue
ON CONFLICT (step, queue, shard) DO UPDATE SET complete = t.complete + excluded.complete, failed = t.failed + excluded.failed,
   retried = t.retried + excluded.retried, cancelled = t.cancelled + excluded.cancelled
