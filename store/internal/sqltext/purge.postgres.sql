-- name: find_ended_jobs
-- Ended jobs in the order of their ids, with everything that decides about them. No locks: most of them stay. The artifacts of a job are found by a subquery
-- with a limit, because PostgreSQL 18 reads all artifacts for an EXISTS in a list of results.
SELECT f.job, f.token, f.generation, f.state, coalesce(f.code, ''), f.finished_at, f.state = 'failed' AND f.discarded_at IS NULL,
       coalesce(j.kind, ''), coalesce(j.queue, ''), coalesce(j.owner, ''), j.group_id, coalesce(g.state, ''),
       j.id IS NULL OR (j.group_id IS NOT NULL AND g.id IS NOT NULL AND g.settled_at IS NULL)
       OR (SELECT true FROM holdfast_artifact a WHERE a.job = f.job AND a.expired_at IS NULL LIMIT 1) IS NOT NULL
  FROM (SELECT * FROM holdfast_finished e WHERE e.job > $1::uuid ORDER BY e.job LIMIT $2::integer) f
  LEFT JOIN holdfast_job j ON j.id = f.job LEFT JOIN holdfast_group g ON g.id = j.group_id ORDER BY f.job

-- name: purge_lock
-- Locks the jobs that are still as they were read. One that another transaction has locked is left alone.
SELECT f.job FROM unnest($1::uuid[], $2::integer[], $3::integer[]) AS d (job, token, generation)
  JOIN holdfast_finished f ON f.job = d.job AND f.token = d.token AND f.generation = d.generation
 WHERE NOT EXISTS (SELECT FROM holdfast_artifact a WHERE a.job = f.job AND a.expired_at IS NULL) FOR UPDATE OF f SKIP LOCKED

-- name: insert_tombstones
-- The tombstones.
INSERT INTO holdfast_tombstone (job, kind, queue, owner, group_id, group_state, state, code, finished_at, purged_at, rule, skipped, step)
SELECT j.id, j.kind, j.queue, j.owner, j.group_id, g.state, f.state, f.code, f.finished_at, $1::timestamptz, d.rule,
       f.state = 'cancelled' AND f.benign, CASE WHEN j.group_id IS NOT NULL THEN (SELECT s.name FROM holdfast_step s WHERE s.job = j.id) END
  FROM unnest($2::uuid[], $3::text[]) AS d (job, rule) JOIN holdfast_finished f ON f.job = d.job JOIN holdfast_job j ON j.id = d.job
  LEFT JOIN holdfast_group g ON g.id = j.group_id
ON CONFLICT (job) DO UPDATE SET state = excluded.state, code = excluded.code, finished_at = excluded.finished_at, purged_at = excluded.purged_at, rule = excluded.rule, skipped = excluded.skipped, step = excluded.step

-- name: purge_count
-- The counts outlive the tombstones. One lock order for all transactions: many update the same rows.
INSERT INTO holdfast_purge_count AS c (rule, kind, state, code, jobs, last)
SELECT d.rule, j.kind, f.state, coalesce(f.code, ''), count(*), $1::timestamptz
  FROM unnest($2::uuid[], $3::text[]) AS d (job, rule) JOIN holdfast_finished f ON f.job = d.job JOIN holdfast_job j ON j.id = d.job
 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
ON CONFLICT (rule, kind, state, code) DO UPDATE SET jobs = c.jobs + excluded.jobs, last = greatest(c.last, excluded.last)

-- name: purge_redriven
-- Stores the outcome for redrives that took the job, because it cannot be read later.
UPDATE holdfast_redriven r SET outcome = f.state FROM holdfast_finished f
 WHERE r.job = ANY ($1::uuid[]) AND r.outcome IS NULL AND f.job = r.job AND f.generation >= r.generation

-- name: purge_keys
-- An idempotency key that led to the job leads to a new job from now on.
DELETE FROM holdfast_idempotency WHERE job = ANY ($1::uuid[])

-- name: purge_order
-- Their places in lines. AdvanceGroups moves on the lines that they held.
DELETE FROM holdfast_order WHERE job = ANY ($1::uuid[])

-- name: purge_expiry
-- Found by the expiry time, which is a fact of the job.
DELETE FROM holdfast_expiry e USING unnest($1::uuid[]) AS d (job) JOIN holdfast_job j ON j.id = d.job WHERE e.expire_at = j.expire_at AND e.job = j.id

-- name: purge_attempt
-- The attempts.
DELETE FROM holdfast_attempt WHERE job = ANY ($1::uuid[])

-- name: purge_late
-- The late settlements.
DELETE FROM holdfast_late_settlement WHERE job = ANY ($1::uuid[])

-- name: purge_carry
-- Checkpoints, progress and the start of the generation.
DELETE FROM holdfast_progress WHERE job = ANY ($1::uuid[])

-- name: purge_deadline
-- The start deadlines.
DELETE FROM holdfast_deadline WHERE job = ANY ($1::uuid[])

-- name: purge_artifact
-- The records of artifacts, all of which have expired.
DELETE FROM holdfast_artifact WHERE job = ANY ($1::uuid[])

-- name: purge_upstreams
-- What the job waited for.
DELETE FROM holdfast_after WHERE job = ANY ($1::uuid[])

-- name: purge_steps
-- Its step name.
DELETE FROM holdfast_step WHERE job = ANY ($1::uuid[])

-- name: purge_waiters
-- What waited for the job.
DELETE FROM holdfast_after WHERE upstream = ANY ($1::uuid[])

-- name: purge_job
-- The finished row, and then the facts.
WITH ended AS (DELETE FROM holdfast_finished WHERE job = ANY ($1::uuid[])) DELETE FROM holdfast_job WHERE id = ANY ($1::uuid[])

-- name: artifact_keep
-- Replaces the artifact of the same job and name. An expired artifact keeps its other values.
INSERT INTO holdfast_artifact AS a (job, name, ref, size, created_at, expire_at, expired_at)
SELECT j.id, $2::text, $3::text, $4::bigint, $7::timestamptz, CASE WHEN $5::bigint > 0 THEN $7::timestamptz + $5::bigint * interval '1 microsecond' END, CASE WHEN $6::boolean THEN $7::timestamptz END
  FROM holdfast_job j WHERE j.id = $1::uuid
ON CONFLICT (job, name) DO UPDATE SET
   ref = CASE WHEN $6::boolean AND excluded.ref = '' THEN a.ref ELSE excluded.ref END,
   size = CASE WHEN $6::boolean AND excluded.size = 0 THEN a.size ELSE excluded.size END,
   expire_at = CASE WHEN $6::boolean THEN a.expire_at ELSE excluded.expire_at END, expired_at = excluded.expired_at

-- name: read_database_size
-- The size on disk.
SELECT pg_database_size(current_database())
