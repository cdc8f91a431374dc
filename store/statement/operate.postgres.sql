-- name: job_owner
-- What an intervention needs to know of a job before it looks where the job stands.
SELECT coalesce(owner, ''), queue, kind, lane, priority, coalesce(unique_key, ''), expire_at FROM holdfast_job WHERE id = $1::uuid

-- name: at_finished
-- One look per place, each with a lock: who moves the job meanwhile is waited for, and the next look finds it.
SELECT token, failures, crashes, interrupts, generation, state, discarded_at IS NOT NULL FROM holdfast_finished WHERE job = $1::uuid FOR UPDATE

-- name: at_ready
-- The key of ready begins with lane and priority, which are facts of the job.
SELECT r.token, r.failures, r.crashes, r.interrupts, r.generation FROM holdfast_job j
  JOIN holdfast_ready r ON r.lane = j.lane AND r.priority = j.priority AND r.job = j.id WHERE j.id = $1::uuid FOR UPDATE OF r

-- name: at_later
-- By its own index.
SELECT token, failures, crashes, interrupts, generation FROM holdfast_later WHERE job = $1::uuid FOR UPDATE

-- name: at_lease
-- Membership is not indexed: there are as many rows as batches under way, and only people ask this way round.
SELECT id, worker, coalesce(lost, ''), claimed_at, expires_at, jobs, tokens, failures, crashes, interrupts, generations, started
  FROM holdfast_lease WHERE $1::uuid = ANY (jobs) FOR UPDATE

-- name: leave_finished
-- Half of a move: the other half follows in the same transaction.
DELETE FROM holdfast_finished WHERE job = $1::uuid

-- name: leave_ready
-- Half of a move: the other half follows in the same transaction.
DELETE FROM holdfast_ready r USING holdfast_job j WHERE j.id = $1::uuid AND r.lane = j.lane AND r.priority = j.priority AND r.job = j.id

-- name: leave_later
-- Half of a move: the other half follows in the same transaction.
DELETE FROM holdfast_later WHERE job = $1::uuid

-- name: begin_generation
-- The policy's patience counts from here.
INSERT INTO holdfast_carry (job, since) VALUES ($1::uuid, $2::timestamptz) ON CONFLICT (job) DO UPDATE SET since = excluded.since

-- name: event_add
-- What a person did, in the transaction that did it.
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation)
VALUES ($1::uuid, $2::timestamptz, $3::text, $4::text, nullif($5::text, ''), $6::integer, $7::integer)

-- name: cancel_add
-- The first request stands; repeating it is fine.
INSERT INTO holdfast_cancel (job, at, actor, reason) VALUES ($1::uuid, $2::timestamptz, $3::text, nullif($4::text, '')) ON CONFLICT DO NOTHING

-- name: discard
-- The job stays failed; it only leaves the dead letters.
UPDATE holdfast_finished SET discarded_at = $2::timestamptz WHERE job = $1::uuid

-- name: ahead
-- Per lane by its key, so that a million jobs behind it cost nothing; and nobody needs to know more than a thousand.
SELECT count(*)::integer FROM (
    SELECT FROM holdfast_lane l CROSS JOIN LATERAL (
        SELECT FROM holdfast_ready r WHERE r.lane = l.id AND (r.priority, r.job) < ($2::smallint, $3::uuid) LIMIT 1000) r
     WHERE l.queue = $1::text LIMIT 1000) before

-- name: pause
-- Pausing again replaces the hold.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now)
INSERT INTO holdfast_hold (scope, name, since, until, actor, reason)
SELECT $1::text, $2::text, now, CASE WHEN $3::bigint > 0 THEN now + $3::bigint * interval '1 microsecond' END, $4::text, nullif($5::text, '') FROM clock
ON CONFLICT (scope, name) DO UPDATE SET since = excluded.since, until = excluded.until, actor = excluded.actor, reason = excluded.reason

-- name: resume
-- Lifting what is not there is no error.
DELETE FROM holdfast_hold WHERE scope = $1::text AND name = $2::text
