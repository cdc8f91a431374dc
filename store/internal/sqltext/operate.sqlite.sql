-- name: read_job
-- The facts by which an intervention is judged.
SELECT coalesce(owner, ''), kind, queue, lane, priority, coalesce(unique_key, ''), coalesce(expire_at, 0), coalesce(dependency, ''),
       coalesce(group_id, x''), created_at
  FROM holdfast_job WHERE id = $1

-- name: find_job_place
-- Where a job is, unless it is leased. A job is in one place, so at most one row is returned.
SELECT 'ready' AS place, token, failures, crashes, releases, generation, 'queued' AS state, 0 AS discarded, 0 AS waiting, 0 AS due_at
  FROM holdfast_ready WHERE lane IN ($2, -$2) AND priority = $3 AND job = $1
UNION ALL
SELECT 'later', token, failures, crashes, releases, generation, 'queued', 0, hold IS '',
       CASE WHEN hold IS NULL THEN due_at ELSE due_at - 31557600000000000 END
  FROM holdfast_later WHERE job = $1
UNION ALL
SELECT 'finished', token, failures, crashes, releases, generation, state, discarded_at IS NOT NULL, 0, 0
  FROM holdfast_finished WHERE job = $1
LIMIT 1

-- name: delete_finished
-- A manual retry reopens the job.
DELETE FROM holdfast_finished WHERE job = $1

-- name: set_generation_start
-- The new generation begins now.
INSERT INTO holdfast_progress (job, since) VALUES ($1, $2) ON CONFLICT (job) DO UPDATE SET since = excluded.since

-- name: job_event_add
-- An event in the story of a job: what a person did, and the job's token and generation after it.
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation, request, was) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: subject_event_add
-- An event in the story of a subject that is not a job.
INSERT INTO holdfast_event (subject, at, name, actor, reason, token, generation, request) VALUES ($1, $2, $3, $4, $5, 0, $6, $7)

-- name: cancel_add
-- The first request stays.
INSERT INTO holdfast_cancel (job, at, actor, reason) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: discard
-- The job is no longer a dead letter. Its row stays as the record of its end.
UPDATE holdfast_finished SET discarded_at = $2 WHERE job = $1

-- name: count_ahead
-- How many jobs of one line come before a key, up to a thousand.
SELECT count(*) FROM (SELECT 1 FROM holdfast_ready WHERE lane = $1 AND (priority, job) < ($2, $3) LIMIT 1000)

-- name: hold_find
-- One hold: the level of its rate limit and when it was written, and how long it is in force.
SELECT coalesce(per_second, 0.0), coalesce(burst, 0.0), coalesce(level, 0.0), coalesce(level_at, 0), coalesce(until, 0), per_second IS NOT NULL
  FROM holdfast_hold WHERE scope = $1 AND name = $2 AND source = $3

-- name: hold_place
-- Replaces the hold of the same source on the same thing.
INSERT INTO holdfast_hold (scope, name, source, retries, at_most, per_second, burst, level, level_at, since, until, expected, actor, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (scope, name, source) DO UPDATE SET retries = excluded.retries, at_most = excluded.at_most, per_second = excluded.per_second,
       burst = excluded.burst, level = excluded.level, level_at = excluded.level_at, since = excluded.since, until = excluded.until,
       expected = excluded.expected, actor = excluded.actor, reason = excluded.reason

-- name: hold_set_level
-- The level of a rate limit now.
UPDATE holdfast_hold SET level = $4, level_at = $5 WHERE scope = $1 AND name = $2 AND source = $3

-- name: hold_lift
-- Lifting a hold that does not exist is no error.
DELETE FROM holdfast_hold WHERE scope = $1 AND name = $2 AND source = $3

-- name: insert_record
-- The first writer of a record wins.
INSERT INTO holdfast_record (namespace, name, version, body, kept_at) VALUES ($1, $2, 1, $3, $4) ON CONFLICT DO NOTHING

-- name: update_record
-- Updates a record only if its version is the one that the caller read.
UPDATE holdfast_record SET version = version + 1, body = $3, kept_at = $4 WHERE namespace = $1 AND name = $2 AND version = $5

-- name: delete_record
-- Deletes a record only if its version is the one that the caller read.
DELETE FROM holdfast_record WHERE namespace = $1 AND name = $2 AND version = $3

-- name: find_record
-- Whether a record exists.
SELECT version FROM holdfast_record WHERE namespace = $1 AND name = $2

-- name: find_redriven
-- Whether a redrive has taken the job before.
SELECT generation FROM holdfast_redriven WHERE redrive = $1 AND job = $2

-- name: record_redrive
-- A job that a redrive took, and the generation that it began with it.
INSERT INTO holdfast_redriven (redrive, job, generation, at, outcome) VALUES ($1, $2, $3, $4, $5)

-- name: find_ended_redriven
-- Jobs that have ended since, in the generation that the redrive began or a later one, and whose outcome is not recorded yet.
SELECT d.job, f.state FROM holdfast_redriven d CROSS JOIN holdfast_finished f ON f.job = d.job
 WHERE d.redrive = $1 AND d.outcome IS NULL AND f.generation >= d.generation

-- name: update_redriven
-- The first recorded outcome stays.
UPDATE holdfast_redriven SET outcome = $3 WHERE redrive = $1 AND job = $2 AND outcome IS NULL

-- name: count_redriven
-- The outcomes of a redrive's jobs.
SELECT count(*), coalesce(sum(outcome IS NULL), 0), coalesce(sum(outcome = 'complete'), 0), coalesce(sum(outcome = 'failed'), 0),
       coalesce(sum(outcome = 'cancelled'), 0), coalesce(sum(outcome = 'discarded'), 0)
  FROM holdfast_redriven WHERE redrive = $1

-- name: read_args
-- The arguments into which a patch is merged.
SELECT args FROM holdfast_job WHERE id = $1

-- name: update_args
-- Arguments change only by a person's action, which the story records.
UPDATE holdfast_job SET args = $2 WHERE id = $1

-- name: update_queue
-- The queue changes only by a person's action, which the story records.
UPDATE holdfast_job SET queue = $2, lane = $3 WHERE id = $1

-- name: find_error_group
-- The status and the triage of an error group.
SELECT failures, status, coalesce(until, 0), coalesce(until_count, 0), coalesce(resolved_in, '') FROM holdfast_error_group WHERE fingerprint = $1

-- name: triage
-- What a person has decided about an error group.
UPDATE holdfast_error_group SET status = $2, until = $3, until_count = $4, resolved_in = $5, actor = $6, reason = $7 WHERE fingerprint = $1
