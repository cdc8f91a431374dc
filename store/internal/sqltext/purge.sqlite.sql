-- name: find_purgeable
-- Ended jobs in the order of their ids, with what their retention depends on.
SELECT f.job, j.kind, j.queue, coalesce(j.owner, ''), coalesce(j.group_id, x''), coalesce(g.state, ''), f.state, coalesce(f.code, ''), f.finished_at,
       f.token, f.generation, coalesce(j.expire_at, 0), f.state = 'failed' AND f.discarded_at IS NULL,
       g.id IS NOT NULL AND g.settled_at IS NULL OR EXISTS (SELECT 1 FROM holdfast_artifact a WHERE a.job = f.job AND a.expired_at IS NULL),
       f.state = 'cancelled' AND f.benign, CASE WHEN j.group_id IS NOT NULL THEN coalesce((SELECT s.name FROM holdfast_step s WHERE s.job = f.job), '') ELSE '' END
  FROM holdfast_finished f CROSS JOIN holdfast_job j ON j.id = f.job LEFT JOIN holdfast_group g ON g.id = j.group_id
 WHERE f.job > $1 ORDER BY f.job LIMIT $2 + 0

-- name: recheck_purgeable
-- Which of these jobs are still ended, and not kept by an unsettled group or by an artifact.
SELECT f.job, f.token, f.generation FROM holdfast_finished f CROSS JOIN holdfast_job j ON j.id = f.job LEFT JOIN holdfast_group g ON g.id = j.group_id
 WHERE f.job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
   AND NOT (g.id IS NOT NULL AND g.settled_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM holdfast_artifact a WHERE a.job = f.job AND a.expired_at IS NULL)

-- name: tombstone_add
-- What remains of a purged job.
INSERT INTO holdfast_tombstone (job, kind, queue, owner, group_id, group_state, state, code, finished_at, purged_at, rule, skipped, step)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: purge_count
-- The count of purged jobs, which outlives the tombstones.
INSERT INTO holdfast_purge_count (rule, kind, state, code, jobs, last) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (rule, kind, state, code) DO UPDATE SET jobs = jobs + excluded.jobs, last = max(last, excluded.last)

-- name: purge_redriven
-- The outcome of a redriven job is its end, and has to be recorded before that is deleted.
UPDATE holdfast_redriven SET outcome = (SELECT f.state FROM holdfast_finished f WHERE f.job = holdfast_redriven.job)
 WHERE outcome IS NULL AND job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
   AND EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = holdfast_redriven.job AND f.generation >= holdfast_redriven.generation)

-- name: purge_idempotency
-- Their own idempotency keys, except those that lead to another job.
DELETE FROM holdfast_idempotency
 WHERE (owner, key) IN (SELECT coalesce(j.owner, ''), j.idempotency_key FROM holdfast_job j
                         WHERE j.id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AND j.idempotency_key IS NOT NULL)
   AND job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_unique
-- Unique keys that they kept after success.
DELETE FROM holdfast_unique
 WHERE (owner, kind, key) IN (SELECT coalesce(j.owner, ''), j.kind, j.unique_key FROM holdfast_job j
                               WHERE j.id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AND j.unique_key IS NOT NULL)
   AND job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_expiry
-- The time by which the job had to start.
DELETE FROM holdfast_expiry WHERE expire_at = $1 AND job = $2

-- name: purge_attempts
-- Their attempts.
DELETE FROM holdfast_attempt WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_late
-- Their late settlements.
DELETE FROM holdfast_late_settlement WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_carry
-- Their checkpoints, progress and generation starts.
DELETE FROM holdfast_progress WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_cancel
-- Their cancel requests.
DELETE FROM holdfast_cancel WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_order
-- Their places in lines. AdvanceGroups moves on the lines that they held.
DELETE FROM holdfast_order WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_upstreams
-- The members for which they waited.
DELETE FROM holdfast_after WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_steps
-- Their step names.
DELETE FROM holdfast_step WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_waiters
-- The jobs that waited for them.
DELETE FROM holdfast_after WHERE upstream IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_artifacts
-- Their artifacts, which have all expired.
DELETE FROM holdfast_artifact WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_finished
-- Their ends.
DELETE FROM holdfast_finished WHERE job IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: purge_jobs
-- Their facts, last: the other statements read them.
DELETE FROM holdfast_job WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: artifact_keep
-- Replaces the artifact of that name, and keeps the time of the first one.
INSERT INTO holdfast_artifact (job, name, ref, size, created_at, expire_at) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (job, name) DO UPDATE SET ref = excluded.ref, size = excluded.size, expire_at = excluded.expire_at, expired_at = NULL

-- name: artifact_expire
-- The artifact is deleted. Its record stays.
INSERT INTO holdfast_artifact (job, name, ref, size, created_at, expired_at) VALUES ($1, $2, $3, $4, $5, $5)
    ON CONFLICT (job, name) DO UPDATE SET expired_at = excluded.expired_at
