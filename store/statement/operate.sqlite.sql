-- name: operate-job
-- What a person's word is judged by.
SELECT coalesce(owner, ''), kind, queue, lane, priority, coalesce(unique_key, ''), coalesce(expire_at, 0) FROM holdfast_job WHERE id = $1

-- name: operate-place
-- Where the job stands, leases apart. It stands in one place, so at most one row answers.
SELECT 'ready' AS place, token, failures, crashes, interrupts, generation, 'queued' AS state, 0 AS discarded
  FROM holdfast_ready WHERE lane = $2 AND priority = $3 AND job = $1
UNION ALL
SELECT 'later', token, failures, crashes, interrupts, generation, 'queued', 0 FROM holdfast_later WHERE job = $1
UNION ALL
SELECT 'finished', token, failures, crashes, interrupts, generation, state, discarded_at IS NOT NULL FROM holdfast_finished WHERE job = $1
LIMIT 1

-- name: operate-unfinish
-- A manual retry opens the job again.
DELETE FROM holdfast_finished WHERE job = $1

-- name: operate-since
-- The new generation began now.
INSERT INTO holdfast_carry (job, since) VALUES ($1, $2) ON CONFLICT (job) DO UPDATE SET since = excluded.since

-- name: operate-event
-- What a person did, and how the job stood after it.
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: operate-cancel
-- The first request stands.
INSERT INTO holdfast_cancel (job, at, actor, reason) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: operate-discard
-- Off the dead letters. The row stays: it is the proof.
UPDATE holdfast_finished SET discarded_at = $2 WHERE job = $1

-- name: operate-ahead
-- How many of one lane are claimed before a key. Nobody needs to know more than a thousand.
SELECT count(*) FROM (SELECT 1 FROM holdfast_ready WHERE lane = $1 AND (priority, job) < ($2, $3) LIMIT 1000)

-- name: hold-add
-- Pausing again replaces the hold.
INSERT INTO holdfast_hold (scope, name, since, until, actor, reason) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (scope, name) DO UPDATE SET since = excluded.since, until = excluded.until, actor = excluded.actor, reason = excluded.reason

-- name: hold-drop
-- Lifting a hold that is not there is no error.
DELETE FROM holdfast_hold WHERE scope = $1 AND name = $2
