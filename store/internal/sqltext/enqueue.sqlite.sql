-- name: lane_find
-- Lanes live in memory once committed; this is asked once per lane and process.
SELECT id FROM holdfast_lane WHERE queue = $1 AND kind = $2 AND owner = $3 AND dependency = $4

-- name: lane_add
-- Two processes may meet a new kind at once: the second finds the first one's lane.
INSERT INTO holdfast_lane (queue, kind, owner, dependency) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: lane_list
-- The lanes that are younger than one. There may be thousands, and they never change: none is read twice.
SELECT id, queue, kind, owner, dependency FROM holdfast_lane WHERE id > $1 ORDER BY id

-- name: idempotency_add
-- The primary key decides who was first; nothing is looked up before.
INSERT INTO holdfast_idempotency (owner, key, digest, job, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING

-- name: idempotency_find
-- Asked only by the draft that came second.
SELECT digest, job FROM holdfast_idempotency WHERE owner = $1 AND key = $2

-- name: idempotency_bind
-- A draft that met a unique twin leaves its idempotency key with that twin.
UPDATE holdfast_idempotency SET job = $3 WHERE owner = $1 AND key = $2

-- name: unique_add
-- The primary key decides who holds the key; nothing is looked up before.
INSERT INTO holdfast_unique (owner, kind, key, job) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING

-- name: unique_find
-- Who holds the key, for the draft or the manual retry that lost.
SELECT job FROM holdfast_unique WHERE owner = $1 AND kind = $2 AND key = $3

-- name: job_add
-- An id that exists already changes nothing here, and is refused by the caller.
INSERT INTO holdfast_job (id, lane, kind, queue, priority, max_attempts, created_at, run_at, expire_at, owner, tags, unique_key,
                          unique_done, idempotency_key, args, dependency, retry_within, group_id, trace)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT DO NOTHING

-- name: ready_add
-- A new job that may run at once. It has no due time: nobody ever waited for it.
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, interrupts, generation) VALUES ($1, $2, $3, 0, 0, 0, 0, 1)

-- name: later_add
-- A new job that must wait for its time.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, interrupts, generation) VALUES ($1, $2, 0, 0, 0, 0, 1)

-- name: expiry_add
-- A job that must start by a time.
INSERT INTO holdfast_expiry (expire_at, job) VALUES ($1, $2)
