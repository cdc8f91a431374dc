-- name: read_job
-- The facts that an intervention needs before it searches for the job.
SELECT coalesce(owner, ''), queue, kind, lane, priority, coalesce(unique_key, ''), expire_at, group_id IS NOT NULL, EXISTS (SELECT FROM holdfast_order o WHERE o.job = $1::uuid)
  FROM holdfast_job WHERE id = $1::uuid

-- name: lock_finished
-- One search in each table, each with a lock: it waits for a transaction that is moving the job, and the next search finds it.
SELECT token, failures, crashes, releases, generation, state, discarded_at IS NOT NULL FROM holdfast_finished WHERE job = $1::uuid FOR UPDATE

-- name: lock_ready
-- The key of holdfast_ready begins with lane and priority, which are facts of the job.
SELECT r.token, r.failures, r.crashes, r.releases, r.generation FROM holdfast_job j
  JOIN holdfast_ready r ON r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id WHERE j.id = $1::uuid FOR UPDATE OF r

-- name: lock_later
-- By the index on job.
SELECT token, failures, crashes, releases, generation, hold IS NOT DISTINCT FROM '' FROM holdfast_later WHERE job = $1::uuid FOR UPDATE

-- name: lock_batch_of_job
-- Membership is not indexed: the table has one row for each batch in progress, and only interventions search this way.
SELECT id, worker, coalesce(lost, ''), claimed_at, expires_at, jobs, tokens, failures, crashes, releases, generations, started
  FROM holdfast_batch WHERE $1::uuid = ANY (jobs) FOR UPDATE

-- name: delete_finished
-- The other half of the move follows in the same transaction.
DELETE FROM holdfast_finished WHERE job = $1::uuid

-- name: delete_ready
-- The other half of the move follows in the same transaction.
DELETE FROM holdfast_ready r USING holdfast_job j WHERE j.id = $1::uuid AND r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id

-- name: delete_later
-- The other half of the move follows in the same transaction.
DELETE FROM holdfast_later WHERE job = $1::uuid

-- name: begin_generation
-- The time limit of the retry policy counts from here.
INSERT INTO holdfast_progress (job, since) VALUES ($1::uuid, $2::timestamptz) ON CONFLICT (job) DO UPDATE SET since = excluded.since

-- name: event_add
-- A person's action, in the transaction that performs it.
INSERT INTO holdfast_event (job, at, name, actor, reason, request, token, generation, was)
VALUES ($1::uuid, $2::timestamptz, $3::text, $4::text, nullif($5::text, ''), nullif($6::text, ''), $7::integer, $8::integer, nullif($9::text, '')::json)

-- name: cancel_add
-- The first request counts; repeating it changes nothing.
INSERT INTO holdfast_cancel (job, at, actor, reason) VALUES ($1::uuid, $2::timestamptz, $3::text, nullif($4::text, '')) ON CONFLICT DO NOTHING

-- name: discard
-- The job stays failed, and is a dead letter no longer.
UPDATE holdfast_finished SET discarded_at = $2::timestamptz WHERE job = $1::uuid

-- name: count_ahead
-- Counts in each lane by key, so that jobs behind this one cost nothing, and stops at a thousand.
SELECT count(*)::integer FROM (
    SELECT FROM holdfast_lane l CROSS JOIN LATERAL (VALUES (l.id), (-l.id)) AS x (line) CROSS JOIN LATERAL (
        SELECT FROM holdfast_ready r WHERE r.lane = x.line AND (r.priority, r.job) < ($2::smallint, $3::uuid) LIMIT 1000) r
     WHERE l.queue = $1::text LIMIT 1000) before

-- name: hold_place
-- Replaces the hold of the same source. A rate limit that is in force keeps its level, within the new burst; a new one, or one that had expired,
-- starts with the given level.
INSERT INTO holdfast_hold AS h (scope, name, source, retries, at_most, per_second, burst, level, level_at, since, until, expected, actor, reason)
VALUES ($1::text, $2::text, $3::text, $4::boolean, $5::integer, $6::double precision, $7::double precision, $8::double precision,
        CASE WHEN $6::double precision IS NOT NULL THEN $9::timestamptz END, $9::timestamptz, $10::timestamptz, $11::timestamptz, $12::text, nullif($13::text, ''))
ON CONFLICT (scope, name, source) DO UPDATE SET
   retries = excluded.retries, at_most = excluded.at_most, per_second = excluded.per_second, burst = excluded.burst, level_at = excluded.level_at,
   level = CASE WHEN excluded.per_second IS NULL OR h.per_second IS NULL OR h.until <= excluded.since THEN excluded.level
                ELSE least(excluded.burst, h.burst, h.level + greatest(0, extract(epoch FROM excluded.since - h.level_at)) * h.per_second) END,
   since = excluded.since, until = excluded.until, expected = excluded.expected, actor = excluded.actor, reason = excluded.reason

-- name: hold_lift
-- Lifting a hold that does not exist is not an error. Returns a row if a hold was in force.
WITH lifted AS (DELETE FROM holdfast_hold WHERE scope = $1::text AND name = $2::text AND source = $3::text RETURNING until)
SELECT 1 FROM lifted WHERE until IS NULL OR until > $4::timestamptz

-- name: hold_fill
-- Adds tokens to a rate limit, or takes them out. What has accrued since the last change is added first, up to the burst.
UPDATE holdfast_hold SET level_at = $5::timestamptz,
       level = greatest(0, least(burst, least(burst, level + greatest(0, extract(epoch FROM $5::timestamptz - level_at)) * per_second) + $4::double precision))
 WHERE scope = $1::text AND name = $2::text AND source = $3::text AND per_second IS NOT NULL

-- name: subject_event_add
-- One event of a subject that is not a job.
INSERT INTO holdfast_event (subject, at, name, actor, reason, request, token, generation)
VALUES ($1::text, $2::timestamptz, $3::text, $4::text, nullif($5::text, ''), nullif($6::text, ''), 0, $7::integer)

-- name: job_event_add
-- One event of a job, wherever it is.
INSERT INTO holdfast_event (job, at, name, actor, reason, request, token, generation)
SELECT id, $2::timestamptz, $3::text, $4::text, nullif($5::text, ''), nullif($6::text, ''), token, generation FROM holdfast_jobs WHERE id = $1::uuid LIMIT 1

-- name: insert_record
-- A concurrent insert waits here for the first one to end, and then inserts nothing.
INSERT INTO holdfast_record (namespace, name, version, body, kept_at)
VALUES ($1::text, $2::text, 1, $3::text::json, (SELECT holdfast_now())) ON CONFLICT DO NOTHING

-- name: update_record
-- Compare and set: nothing is updated unless the version is the one that was read.
UPDATE holdfast_record SET version = version + 1, body = $4::text::json, kept_at = (SELECT holdfast_now())
 WHERE namespace = $1::text AND name = $2::text AND version = $3::integer

-- name: delete_record
-- Compare and delete.
DELETE FROM holdfast_record WHERE namespace = $1::text AND name = $2::text AND version = $3::integer

-- name: find_record
-- Whether a record of this name exists.
SELECT version FROM holdfast_record WHERE namespace = $1::text AND name = $2::text FOR UPDATE

-- name: triage
-- An operator's decision on an error group. Without a status it is a note, and the group stays as it is.
UPDATE holdfast_error_group SET status = coalesce(nullif($2::text, ''), status),
       until = CASE WHEN $2::text = '' THEN until WHEN $3::bigint > 0 THEN $8::timestamptz + $3::bigint * interval '1 microsecond' END,
       until_count = CASE WHEN $2::text = '' THEN until_count WHEN $4::bigint > 0 THEN failures + $4::bigint END,
       resolved_in = CASE WHEN $2::text = '' THEN resolved_in ELSE nullif($5::text, '') END,
       actor = CASE WHEN $2::text = '' THEN actor ELSE $6::text END,
       reason = CASE WHEN $2::text = '' THEN reason ELSE nullif($7::text, '') END
 WHERE fingerprint = $1::text
