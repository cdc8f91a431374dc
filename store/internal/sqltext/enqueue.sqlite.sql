-- name: lane_find
-- A process remembers committed lanes, so this is run once per lane and process.
SELECT id FROM holdfast_lane WHERE queue = $1 AND kind = $2 AND owner = $3 AND dependency = $4

-- name: lane_add
-- Two processes may meet a new kind at the same time: the second finds the lane of the first.
INSERT INTO holdfast_lane (queue, kind, owner, dependency) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: lane_list
-- The lanes with a higher id than the last one read. There may be thousands and they never change, so none is read twice.
SELECT id, queue, kind, owner, dependency FROM holdfast_lane WHERE id > $1 ORDER BY id

-- name: idempotency_add
-- The primary key decides which draft was first; no lookup comes before.
INSERT INTO holdfast_idempotency (owner, key, digest, job, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING

-- name: idempotency_find
-- Run only for a draft that was not first.
SELECT digest, job FROM holdfast_idempotency WHERE owner = $1 AND key = $2

-- name: idempotency_bind
-- The draft met a job with its unique key: its idempotency key leads to that job.
UPDATE holdfast_idempotency SET job = $3 WHERE owner = $1 AND key = $2

-- name: unique_add
-- The primary key decides which job holds the key; no lookup comes before.
INSERT INTO holdfast_unique (owner, kind, key, job) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: unique_find
-- The job that holds the key, for a draft or a manual retry that did not get it.
SELECT job FROM holdfast_unique WHERE owner = $1 AND kind = $2 AND key = $3

-- name: job_add
-- An id that exists changes nothing here; the caller refuses it.
INSERT INTO holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, run_at, expire_at, owner, tags, unique_key,
                          unique_done, idempotency_key, args, dependency, retry_within, group_id, trace)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT DO NOTHING

-- name: ready_add
-- A new job that is claimable at once. It has no due time, because it never waited.
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) VALUES ($1, $2, $3, 0, 0, 0, 0, 1)

-- name: later_add
-- A new job that waits for its time.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation) VALUES ($1, $2, 0, 0, 0, 0, 1)

-- name: expiry_add
-- A job that must start by a time.
INSERT INTO holdfast_expiry (expire_at, job) VALUES ($1, $2)
