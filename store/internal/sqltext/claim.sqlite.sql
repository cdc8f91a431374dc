-- name: begin_read
-- Begins a read transaction, so that a claim reads everything at one moment.
BEGIN

-- name: hold_read
-- All holds; there are few. Levels and their instants are returned as they were written, so that the writer can compare them with those that a plan began with.
-- The edit counter is returned even if there is no hold.
SELECT (SELECT f.edits FROM holdfast_feed f WHERE f.one = 1), h.scope, h.name, h.source, h.retries, h.at_most, h.per_second, h.burst, h.level, coalesce(h.level_at, 0), coalesce(h.until, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_hold h ON true

-- name: kind_read
-- The dependency of each kind. Read only if a dependency is held.
SELECT kind, dependency FROM holdfast_kind

-- name: read_weights
-- The weights of owners.
SELECT name, body FROM holdfast_record WHERE namespace = 'share'

-- name: find_lines
-- Up to $1 non-empty lines of ready, from one line to the next by key. The jobs in them are not read.
WITH RECURSIVE line (n) AS (
    SELECT min(lane) FROM holdfast_ready WHERE lane >= -9223372036854775807
    UNION ALL
    SELECT (SELECT min(r.lane) FROM holdfast_ready r WHERE r.lane > line.n) FROM line WHERE line.n IS NOT NULL)
SELECT n FROM line WHERE n IS NOT NULL LIMIT $1 + 0

-- name: probe_lines
-- Which of these lines are not empty. Used when a claim has fewer lines than there are non-empty ones.
SELECT l.value FROM json_each($1) l WHERE EXISTS (SELECT 1 FROM holdfast_ready r WHERE r.lane = l.value)

-- name: find_priorities
-- The priorities that have jobs in a line, from one to the next by key.
WITH RECURSIVE found (n) AS (
    SELECT min(priority) FROM holdfast_ready WHERE lane = $1
    UNION ALL
    SELECT (SELECT min(r.priority) FROM holdfast_ready r WHERE r.lane = $1 AND r.priority > found.n) FROM found WHERE found.n IS NOT NULL)
SELECT n FROM found WHERE n IS NOT NULL

-- name: peek
-- The next keys of a line up to a priority, for the merge of lines. The join skips rows without facts, which are left for the integrity check. (With a bare
-- parameter as LIMIT, SQLite would prepare the statement again at every run.)
SELECT r.priority, r.job
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job
 WHERE r.lane = $1 AND (r.priority, r.job) > ($2, $3) AND r.priority <= $4 AND length(r.job) = 16
 ORDER BY r.priority, r.job LIMIT $5 + 0

-- name: read_ready_jobs
-- The facts of the first jobs of a line, between two priorities and behind a job of the first of them. The key of ready is the order of the claim, so nothing
-- is sorted. A job that was never claimed and never retried has no row in holdfast_progress, so none is searched for.
SELECT r.job, j.kind, j.queue, j.args, j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key, j.created_at,
       j.expire_at, c.since, c.checkpoint, j.run_at, j.dependency, j.retry_within, j.group_id, j.trace,
       r.priority, r.token + 1, r.failures, r.crashes, r.releases, r.generation
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job
  LEFT JOIN holdfast_progress c ON c.job = CASE WHEN r.token > 0 OR r.generation > 1 THEN r.job END
 WHERE r.lane = $1 AND (r.priority, r.job) > ($3, $5) AND r.priority <= $4 AND length(r.job) = 16
 ORDER BY r.priority, r.job LIMIT $2 + 0

-- name: read_ready_rows
-- The first rows of a line, without the facts of the jobs.
SELECT priority, job, token + 1, failures, crashes, releases, generation FROM holdfast_ready
 WHERE lane = $1 AND length(job) = 16 ORDER BY priority, job LIMIT $2 + 0

-- name: read_facts
-- The facts of some jobs, in the columns of read_ready_jobs. Jobs with neighbouring ids are read one after the other.
SELECT j.id, j.kind, j.queue, j.args, j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key, j.created_at,
       j.expire_at, c.since, c.checkpoint, j.run_at, j.dependency, j.retry_within, j.group_id, j.trace
  FROM holdfast_job j LEFT JOIN holdfast_progress c ON c.job = j.id
 WHERE j.id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: set_aside
-- A job with a held tag moves to later with a due time a thousand years ahead, so that neither promotion nor claims read it.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
SELECT coalesce(r.due_at, j.created_at) + 31557600000000000, r.job, r.token, r.failures, r.crashes, r.releases, r.generation, $4
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job
 WHERE r.lane = $1 AND r.priority = $2 AND r.job = $3
    ON CONFLICT DO NOTHING

-- name: read_live_members
-- The members of all batches, for holds that limit processing jobs.
SELECT jobs, members FROM holdfast_batch

-- name: find_job_lanes
-- The lanes of some jobs.
SELECT id, lane FROM holdfast_job WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: read_ready_range
-- The rows of a line from one job to another of the same priority, without facts. The writer compares them with a claim plan.
SELECT job, token + 1 FROM holdfast_ready WHERE lane = $1 AND priority = $2 AND job >= $3 AND job <= $4 ORDER BY job

-- name: delete_ready_range
-- Removes claimed jobs from ready by a key range instead of a list of ids.
DELETE FROM holdfast_ready WHERE lane = $1 AND priority = $2 AND job >= $3 AND job <= $4

-- name: batch_add
-- One row for each batch.
INSERT INTO holdfast_batch (id, worker, lost, claimed_at, expires_at, jobs, members) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: batch_find
-- A batch and its members. Read once per batch and call.
SELECT id, worker, lost, claimed_at, expires_at, jobs, members FROM holdfast_batch WHERE id = $1

-- name: find_batches_of_job
-- The batches that may contain a job. Only interventions of people need it, so the table is searched and no index is kept.
SELECT id, worker, lost, claimed_at, expires_at, jobs, members FROM holdfast_batch WHERE instr(jobs, $1) > 0

-- name: batch_expired
-- The batches that were not renewed in time, oldest first.
SELECT id, worker, lost, claimed_at, expires_at, jobs, members FROM holdfast_batch WHERE expires_at <= $1 ORDER BY expires_at, id

-- name: batch_update
-- The members of a batch after some were settled or more have started.
UPDATE holdfast_batch SET jobs = $2, members = $3 WHERE id = $1

-- name: batch_drop
-- The last member was removed.
DELETE FROM holdfast_batch WHERE id = $1
