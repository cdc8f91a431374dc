-- name: batch_renew
-- One narrow update, however many jobs the batch has. A batch that has expired and was not reclaimed yet is valid again.
UPDATE holdfast_batch SET expires_at = $2 WHERE id = $1

-- name: cancel_list
-- Cancel requests are few, so all are read.
SELECT job FROM holdfast_cancel

-- name: save_progress
-- Replaces the progress that was reported before.
INSERT INTO holdfast_progress (job, percent, note, noted_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (job) DO UPDATE SET percent = excluded.percent, note = excluded.note, noted_at = excluded.noted_at

-- name: save_checkpoint
-- Replaces the checkpoint that was saved before.
INSERT INTO holdfast_progress (job, checkpoint) VALUES ($1, $2)
    ON CONFLICT (job) DO UPDATE SET checkpoint = excluded.checkpoint

-- name: find_promote_bound
-- The last key to promote, if there are more due jobs than the limit. Rows without facts do not count; they are left for the integrity check.
SELECT l.due_at, l.job FROM holdfast_later l CROSS JOIN holdfast_job j ON j.id = l.job
 WHERE l.due_at <= $1 ORDER BY l.due_at, l.job LIMIT 1 OFFSET $2 + 0

-- name: promote
-- Inserts all due jobs up to the key in one statement.
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
SELECT CASE WHEN l.failures > 0 THEN -j.lane ELSE j.lane END, j.priority, l.job, l.token, l.failures, l.crashes, l.releases, l.generation, l.due_at
  FROM holdfast_later l CROSS JOIN holdfast_job j ON j.id = l.job
 WHERE (l.due_at, l.job) <= ($1, $2)
    ON CONFLICT DO NOTHING

-- name: delete_promoted
-- Deletes the same range from later.
DELETE FROM holdfast_later
 WHERE (due_at, job) <= ($1, $2) AND EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = holdfast_later.job)

-- name: find_free_tag
-- The next tag behind which jobs were set aside and that is no longer held. Tags are read from one to the next by key. (An empty hold is not a tag: those jobs
-- wait for members of their group.)
WITH RECURSIVE aside (tag) AS (
    SELECT min(hold) FROM holdfast_later WHERE hold > ''
    UNION ALL
    SELECT (SELECT min(l.hold) FROM holdfast_later l WHERE l.hold > aside.tag) FROM aside WHERE aside.tag IS NOT NULL)
SELECT tag FROM aside
 WHERE tag IS NOT NULL AND tag > $2
   AND NOT EXISTS (SELECT 1 FROM holdfast_hold h WHERE h.scope = 'tag' AND h.name = aside.tag AND (h.until IS NULL OR h.until > $1))
 LIMIT 1

-- name: find_set_aside_bound
-- The last of these jobs to promote, if there are more than the limit.
SELECT l.job FROM holdfast_later l CROSS JOIN holdfast_job j ON j.id = l.job WHERE l.hold = $1 ORDER BY l.job LIMIT 1 OFFSET $2 + 0

-- name: promote_set_aside
-- Returns them to the lines from which they were taken.
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
SELECT CASE WHEN l.failures > 0 THEN -j.lane ELSE j.lane END, j.priority, l.job, l.token, l.failures, l.crashes, l.releases, l.generation,
       l.due_at - 31557600000000000
  FROM holdfast_later l CROSS JOIN holdfast_job j ON j.id = l.job
 WHERE l.hold = $1 AND l.job <= $2
    ON CONFLICT DO NOTHING

-- name: delete_promoted_set_aside
-- Deletes the same range from later.
DELETE FROM holdfast_later WHERE hold = $1 AND job <= $2 AND EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = holdfast_later.job)

-- name: job_facts
-- The facts of a job, in the columns of read_ready_jobs.
SELECT j.id, j.kind, j.queue, j.args, j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key, j.created_at,
       j.expire_at, c.since, c.checkpoint, j.run_at, j.dependency, j.retry_within, j.group_id, j.trace
  FROM holdfast_job j LEFT JOIN holdfast_progress c ON c.job = j.id
 WHERE j.id = $1

-- name: expiry_sweep
-- A job that has ended needs no expiry.
DELETE FROM holdfast_expiry
 WHERE expire_at <= $1 AND EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = holdfast_expiry.job)

-- name: find_expired
-- Queued jobs that can no longer start in time, wherever they wait. Processing jobs are not affected. Each due expiry is looked up by key in three places:
-- first attempts, retries, and later.
SELECT e.expire_at, e.job, coalesce(r.token, t.token, l.token), coalesce(r.failures, t.failures, l.failures), coalesce(r.crashes, t.crashes, l.crashes),
       coalesce(r.releases, t.releases, l.releases), coalesce(r.generation, t.generation, l.generation)
  FROM holdfast_expiry e CROSS JOIN holdfast_job j ON j.id = e.job
  LEFT JOIN holdfast_ready r ON r.lane = j.lane AND r.priority = j.priority AND r.job = j.id
  LEFT JOIN holdfast_ready t ON t.lane = -j.lane AND t.priority = j.priority AND t.job = j.id
  LEFT JOIN holdfast_later l ON l.job = e.job
 WHERE e.expire_at <= $1 AND coalesce(r.token, t.token, l.token) IS NOT NULL
 ORDER BY e.expire_at, e.job LIMIT $2 + 0

-- name: delete_ready
-- Removes a job from its lane. The key is in the facts.
DELETE FROM holdfast_ready
 WHERE lane IN (SELECT lane FROM holdfast_job WHERE id = $1 UNION ALL SELECT -lane FROM holdfast_job WHERE id = $1)
   AND priority = (SELECT priority FROM holdfast_job WHERE id = $1) AND job = $1

-- name: delete_later
-- The job no longer waits for its time.
DELETE FROM holdfast_later WHERE job = $1

-- name: find_due_deadlines
-- Deadlines that have passed, with how the job waits, if it still does.
SELECT d.at, d.job, d.token, coalesce(r.token, l.token, -1), coalesce(r.generation, l.generation, 0)
  FROM holdfast_deadline d
  LEFT JOIN holdfast_job j ON j.id = d.job
  LEFT JOIN holdfast_ready r ON r.lane IN (j.lane, -j.lane) AND r.priority = j.priority AND r.job = j.id
  LEFT JOIN holdfast_later l ON l.job = d.job
 WHERE d.at <= $1 ORDER BY d.at, d.job LIMIT $2 + 0

-- name: delete_deadlines
-- A deadline is examined once, whether it was met or missed.
DELETE FROM holdfast_deadline WHERE (at, job) <= ($1, $2)

-- name: upsert_worker
-- The first report says when the worker started, the last one until when it counts as alive.
INSERT INTO holdfast_worker (name, queues, kinds, slots, started_at, seen_at, until, version, codes, policy, misses) VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (name) DO UPDATE SET queues = excluded.queues, kinds = excluded.kinds, slots = excluded.slots,
                                     seen_at = excluded.seen_at, until = excluded.until, version = excluded.version,
                                     codes = excluded.codes, policy = excluded.policy, misses = excluded.misses

-- name: declare_kind
-- The dependency of a kind, written only if it has changed.
INSERT INTO holdfast_kind (kind, dependency) VALUES ($1, $2)
    ON CONFLICT (kind) DO UPDATE SET dependency = excluded.dependency WHERE holdfast_kind.dependency <> excluded.dependency

-- name: delete_worker
-- A worker that stops is removed at once.
DELETE FROM holdfast_worker WHERE name = $1

-- name: check_work
-- Whether there is work, or a cancel request, after another process has written.
SELECT EXISTS (SELECT 1 FROM holdfast_ready), EXISTS (SELECT 1 FROM holdfast_cancel)

-- name: data_version
-- Changes when another connection has committed, and not when this one has.
PRAGMA data_version

-- name: begin
-- Takes the write lock at once. A transaction that read first and wrote later could fail with SQLITE_BUSY in the middle.
BEGIN IMMEDIATE

-- name: commit
-- Returns when the transaction is on disk.
COMMIT

-- name: rollback
-- Undoes the whole transaction.
ROLLBACK

-- name: savepoint
-- The part of a transaction that belongs to one call.
SAVEPOINT holdfast

-- name: savepoint_rollback
-- Undoes the innermost savepoint and keeps it open.
ROLLBACK TO holdfast

-- name: savepoint_release
-- Ends the innermost savepoint.
RELEASE holdfast
