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

-- name: find_replaceable
-- A queued job that was never claimed, with its content, how it waits, and when it is due.
SELECT j.args, j.queue, j.priority, coalesce(j.tags, ''), j.max_attempts, coalesce(j.dependency, ''), j.created_at, coalesce(j.expire_at, 0),
       l.job IS NULL, coalesce(l.hold = '', 0), coalesce(l.hold > '', 0),
       coalesce(CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - 31557600000000000 END, r.due_at, j.created_at)
  FROM holdfast_job j
  LEFT JOIN holdfast_later l ON l.job = j.id AND l.token = 0 AND l.generation = 1
  LEFT JOIN holdfast_ready r ON r.lane = j.lane AND r.priority = j.priority AND r.job = j.id AND r.token = 0 AND r.generation = 1
 WHERE j.id = $1 AND (l.job IS NOT NULL OR r.job IS NOT NULL)

-- name: replace_job
-- The job takes the content of a draft; the story records what it replaces.
UPDATE holdfast_job SET lane = $2, queue = $3, priority = $4, max_attempts = $5, expire_at = $6, tags = $7, unique_done = $8, args = $9,
       dependency = $10, retry_within = $11, trace = $12 WHERE id = $1

-- name: expiry_drop
-- The job has another expiry now, or none.
DELETE FROM holdfast_expiry WHERE expire_at = $1 AND job = $2

-- name: unique_pass
-- A new job takes over the key of a job that has not ended. Unless the job has the key, nothing changes.
UPDATE holdfast_unique SET job = $5 WHERE owner = $1 AND kind = $2 AND key = $3 AND job = $4
   AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = $4)

-- name: unique_lose
-- A job whose key has passed to another job ends and is retried without it.
UPDATE holdfast_job SET unique_key = NULL WHERE id = $1

-- name: find_token
-- The token and generation of a job that has not ended. A job is in one place, so at most one row is returned.
SELECT r.token AS token, r.generation AS generation FROM holdfast_job j
  JOIN holdfast_ready r ON r.lane IN (j.lane, -j.lane) AND r.priority = j.priority AND r.job = j.id WHERE j.id = $1
UNION ALL
SELECT l.token, l.generation FROM holdfast_later l WHERE l.job = $1
UNION ALL
SELECT m.value ->> 0, m.value ->> 4 FROM holdfast_batch b CROSS JOIN json_each(b.members) AS m WHERE substr(b.jobs, 16 * m.key + 1, 16) = $1
