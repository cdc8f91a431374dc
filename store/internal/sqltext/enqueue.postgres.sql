-- name: lane_make
-- Lanes are created outside the transactions that use them, in a fixed order, so that no transaction waits for another one's lane.
INSERT INTO holdfast_lane (queue, kind, owner, dependency)
SELECT d.queue, d.kind, d.owner, d.dependency FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS d (queue, kind, owner, dependency)
 ORDER BY d.queue, d.kind, d.owner, d.dependency
ON CONFLICT DO NOTHING

-- name: lane_find
-- A separate statement, because an insert that meets an existing lane does not return it.
SELECT l.id, l.queue, l.kind, l.owner, l.dependency FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS d (queue, kind, owner, dependency)
  JOIN holdfast_lane l ON l.queue = d.queue AND l.kind = d.kind AND l.owner = d.owner AND l.dependency = d.dependency

-- name: lane_read
-- Lanes that a claim has met for the first time. A lane never changes, so each is read once.
SELECT l.id, l.queue, l.kind, l.owner, l.dependency FROM holdfast_lane l WHERE l.id = ANY ($1::integer[])

-- name: enqueue
-- One statement and one reading of the clock decide where every draft waits. A draft that waits for others is inserted into holdfast_later with the
-- hold '' and a thousand years added to its due time.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
draft AS MATERIALIZED (
    SELECT d.id, d.lane, d.kind, d.queue, d.priority, d.max_attempts, d.owner, d.tags, d.unique_key, d.unique_done, d.idempotency_key, d.dependency, d.retry_within, d.group_id, d.waits, d.trace, d.args, c.now,
           CASE WHEN coalesce(d.run_at, c.now + d.delay * interval '1 microsecond') > c.now
                THEN coalesce(d.run_at, c.now + d.delay * interval '1 microsecond') END AS due,
           coalesce(d.expire_at, c.now + d.expire_in * interval '1 microsecond') AS expire
      FROM clock c,
           unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::smallint[], $6::integer[], $7::text[], $8::text[], $9::text[], $10::text[],
                  $11::timestamptz[], $12::bigint[], $13::timestamptz[], $14::bigint[], $15::text[], $16::boolean[], $17::text[], $18::text[], $19::bigint[], $20::uuid[], $21::boolean[])
           AS d (id, lane, kind, queue, priority, max_attempts, owner, tags, args, trace,
                 run_at, delay, expire_at, expire_in, unique_key, unique_done, idempotency_key, dependency, retry_within, group_id, waits)
), job AS (
    INSERT INTO holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, run_at, expire_at, owner, tags,
                              unique_key, unique_done, idempotency_key, dependency, retry_within, group_id, trace, args)
    SELECT id, lane, kind, queue, priority, max_attempts, now, due, expire, owner, tags::text[],
           unique_key, unique_done, idempotency_key, dependency, retry_within, group_id, trace, args::json FROM draft
), expiry AS (
    INSERT INTO holdfast_expiry (expire_at, job) SELECT expire, id FROM draft WHERE expire IS NOT NULL
), later AS (
    INSERT INTO holdfast_later (due_at, job, hold)
    SELECT CASE WHEN waits THEN coalesce(due, now) + interval '8766000 hours' ELSE due END, id, CASE WHEN waits THEN '' END FROM draft WHERE due IS NOT NULL OR waits
)
INSERT INTO holdfast_ready (lane, priority, job) SELECT lane, priority, id FROM draft WHERE due IS NULL AND NOT waits

-- name: enqueue_plain
-- The same for drafts that are claimable at once and have no expiry, keys, dependency, start deadline or group: nearly all drafts, at half the work.
WITH draft AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::smallint[], $6::integer[], $7::text[], $8::text[], $9::text[], $10::text[])
        AS d (id, lane, kind, queue, priority, max_attempts, owner, tags, args, trace)
), job AS (
    INSERT INTO holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, owner, tags, args, trace)
    SELECT id, lane, kind, queue, priority, max_attempts, (SELECT holdfast_now()), owner, tags::text[], args::json, trace FROM draft
)
INSERT INTO holdfast_ready (lane, priority, job) SELECT lane, priority, id FROM draft

-- name: count_committed
-- After a commit whose answer was lost: how many of these jobs exist with the same kind, queue and arguments.
SELECT count(*) FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS d (id, kind, queue, args)
  JOIN holdfast_job j ON j.id = d.id AND j.kind = d.kind AND j.queue = d.queue AND j.args::text = d.args

-- name: find_jobs
-- Which of these ids exist.
SELECT id::text FROM holdfast_job WHERE id = ANY ($1::uuid[])

-- name: idempotency_take
-- There is no check before the insert: it waits for a concurrent transaction with the same key to end. Keys are inserted in order, so that two
-- transactions cannot wait for each other.
INSERT INTO holdfast_idempotency (owner, key, digest, job, created_at)
SELECT d.owner, d.key, decode(d.digest, 'hex'), d.job, (SELECT holdfast_now())
  FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS d (owner, key, digest, job) ORDER BY d.owner, d.key
ON CONFLICT DO NOTHING RETURNING owner, key

-- name: idempotency_find
-- A separate statement, so that it sees what the concurrent transaction committed.
SELECT i.owner, i.key, encode(i.digest, 'hex'), i.job::text FROM unnest($1::text[], $2::text[]) AS d (owner, key)
  JOIN holdfast_idempotency i ON i.owner = d.owner AND i.key = d.key

-- name: idempotency_bind
-- A draft whose unique key is held by a job: from now on its idempotency key returns that job.
UPDATE holdfast_idempotency i SET job = d.job
  FROM unnest($1::text[], $2::text[], $3::uuid[]) AS d (owner, key, job) WHERE i.owner = d.owner AND i.key = d.key

-- name: unique_take
-- The primary key alone prevents duplicates. Keys are inserted in order, so that two transactions cannot wait for each other.
INSERT INTO holdfast_unique (owner, kind, key, job)
SELECT d.owner, d.kind, d.key, d.job FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS d (owner, kind, key, job)
 ORDER BY d.owner, d.kind, d.key
ON CONFLICT DO NOTHING RETURNING owner, kind, key

-- name: unique_find
-- A separate statement, so that it sees what the concurrent transaction committed.
SELECT u.owner, u.kind, u.key, u.job::text FROM unnest($1::text[], $2::text[], $3::text[]) AS d (owner, kind, key)
  JOIN holdfast_unique u ON u.owner = d.owner AND u.kind = d.kind AND u.key = d.key

-- name: notify
-- Wakes other processes. It is sent outside the transactions that do the work, because every commit with a notification takes one global lock.
SELECT pg_notify('holdfast', $1::text)

-- name: now
-- The only clock of the store.
SELECT holdfast_now()

-- name: check_missed_wakes
-- What may have been notified before a process listened: whether any job is ready, and whether there is a cancel request. A worker that is woken for
-- a job of another queue makes one claim in vain; to name the queues, every lane would have to be searched.
SELECT (SELECT true FROM holdfast_ready r ORDER BY r.lane, r.priority, r.job LIMIT 1) IS NOT NULL, EXISTS (SELECT FROM holdfast_cancel)

-- name: replace_lock
-- Drafts that replace the job with one key take turns. The locks come before all others, in one order, and end with the transaction. Keys share 4096 locks, because the server's table of
-- locks is small.
SELECT pg_advisory_xact_lock(l.number)
  FROM (SELECT DISTINCT 5721944081410000 + (hashtextextended(k.key, 0) & 4095) AS number FROM unnest($1::text[]) AS k (key) ORDER BY number) AS l

-- name: lock_replaceable
-- A queued job that was never claimed. A claim skips the locked row; a row that a claim has locked is waited for, and found no more.
WITH later AS (
    SELECT job FROM holdfast_later WHERE job = $1::uuid AND token = 0 AND generation = 1 FOR UPDATE
), ready AS (
    SELECT r.job FROM holdfast_job j JOIN holdfast_ready r ON r.lane = j.lane AND r.priority = j.priority AND r.job = j.id
     WHERE j.id = $1::uuid AND r.token = 0 AND r.generation = 1 FOR UPDATE OF r
)
SELECT job::text FROM later UNION ALL SELECT job::text FROM ready

-- name: read_replaceable
-- A separate statement, so that it sees what was committed while the lock was waited for: the content of the job, how it waits, when it is due, and the time.
SELECT j.args::text, j.queue, j.priority, coalesce(array_to_json(j.tags)::text, ''), j.max_attempts, coalesce(j.dependency, ''),
       (extract(epoch FROM j.created_at) * 1000000)::bigint, l.job IS NULL, coalesce(l.hold = '', false), coalesce(l.hold > '', false),
       (extract(epoch FROM coalesce(CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - interval '8766000 hours' END, r.due_at, j.created_at)) * 1000000)::bigint,
       (extract(epoch FROM holdfast_now()) * 1000000)::bigint
  FROM holdfast_job j
  LEFT JOIN holdfast_later l ON l.job = j.id
  LEFT JOIN holdfast_ready r ON r.lane = j.lane AND r.priority = j.priority AND r.job = j.id
 WHERE j.id = $1::uuid

-- name: find_claimed
-- Whether a job has ended, and whether it was claimed before or is retried. Neither is true of a job that moved meanwhile.
SELECT EXISTS (SELECT FROM holdfast_finished WHERE job = $1::uuid),
       EXISTS (SELECT FROM holdfast_later WHERE job = $1::uuid AND (token > 0 OR generation > 1))
       OR EXISTS (SELECT FROM holdfast_job j JOIN holdfast_ready r ON r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id
                   WHERE j.id = $1::uuid AND (r.token > 0 OR r.generation > 1))
       OR EXISTS (SELECT FROM holdfast_batch WHERE $1::uuid = ANY (jobs))

-- name: replace_job
-- The job takes the content of a draft; the story records what it replaces. Its start time stays unless $9 says otherwise.
WITH job AS (
    UPDATE holdfast_job SET lane = $2::integer, queue = $3::text, priority = $4::smallint, max_attempts = $5::integer, expire_at = $6::timestamptz, tags = $7::text[],
           unique_done = $8::boolean, run_at = CASE WHEN $9::boolean THEN $10::timestamptz ELSE run_at END, args = $11::json, dependency = nullif($12::text, ''),
           retry_within = $13::bigint, trace = nullif($14::text, '')
     WHERE id = $1::uuid RETURNING id, expire_at
)
INSERT INTO holdfast_expiry (expire_at, job) SELECT expire_at, id FROM job WHERE expire_at IS NOT NULL

-- name: expiry_drop
-- The job has another expiry now, or none.
DELETE FROM holdfast_expiry e USING holdfast_job j WHERE j.id = $1::uuid AND e.expire_at = j.expire_at AND e.job = j.id

-- name: unique_pass
-- A new job takes over the key of a job that has not ended. Unless the job has the key, nothing changes.
UPDATE holdfast_unique SET job = $2::uuid WHERE job = $1::uuid AND NOT EXISTS (SELECT FROM holdfast_finished WHERE job = $1::uuid) RETURNING job::text

-- name: unique_lose
-- A job whose key has passed to another job ends and is retried without it.
UPDATE holdfast_job SET unique_key = NULL WHERE id = $1::uuid
