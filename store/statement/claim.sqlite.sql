-- name: look
-- One moment for everything a claim looks at.
BEGIN

-- name: claim-lanes
-- The lanes of a queue that no hold closes. There are few lanes, and fewer holds.
SELECT l.id FROM holdfast_lane l
 WHERE l.queue = $1
   AND NOT EXISTS (SELECT 1 FROM holdfast_hold h
                    WHERE (h.scope = 'queue' AND h.name = l.queue OR h.scope = 'kind' AND h.name = l.kind) AND (h.until IS NULL OR h.until > $2))

-- name: claim-peek
-- The next keys of one lane, for the merge across lanes. The join passes over rows without facts: they are the audit's. (A
-- bare parameter as LIMIT would have SQLite prepare the statement again at every run.)
SELECT r.priority, r.job
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job
 WHERE r.lane = $1 AND (r.priority, r.job) > ($2, $3) AND length(r.job) = 16
 ORDER BY r.priority, r.job LIMIT $4 + 0

-- name: claim-read
-- The facts of a lane's first jobs. The key order of ready is the order of the claim: nothing is sorted. A job that was
-- never claimed carries nothing, and is not searched for.
SELECT r.job, j.kind, j.queue, j.args, j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key, j.created_at,
       j.expire_at, c.since, c.checkpoint, j.run_at, r.priority, r.token + 1, r.failures, r.crashes, r.interrupts, r.generation
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job
  LEFT JOIN holdfast_carry c ON c.job = CASE WHEN r.token > 0 THEN r.job END
 WHERE r.lane = $1 AND length(r.job) = 16
 ORDER BY r.priority, r.job LIMIT $2 + 0

-- name: claim-stand
-- What stands in a lane from one job to another of the same priority, narrow rows only.
SELECT job, token + 1 FROM holdfast_ready WHERE lane = $1 AND priority = $2 AND job >= $3 AND job <= $4 ORDER BY job

-- name: claim-leave
-- What was claimed leaves ready: a range, no list of ids.
DELETE FROM holdfast_ready WHERE lane = $1 AND priority = $2 AND job >= $3 AND job <= $4

-- name: lease-add
-- One row per claim.
INSERT INTO holdfast_lease (id, worker, lost, claimed_at, expires_at, jobs, members) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: lease-find
-- Whose lease it is, and who is in it. Read once per batch and call.
SELECT id, worker, lost, claimed_at, expires_at, jobs, members FROM holdfast_lease WHERE id = $1

-- name: lease-of
-- The leases that may hold a job: only one person at a time asks, so they are searched and no index is kept.
SELECT id, worker, lost, claimed_at, expires_at, jobs, members FROM holdfast_lease WHERE instr(jobs, $1) > 0

-- name: lease-silent
-- The leases that were not renewed in time, oldest first.
SELECT id, worker, lost, claimed_at, expires_at, jobs, members FROM holdfast_lease WHERE expires_at <= $1 ORDER BY expires_at, id

-- name: lease-shrink
-- What is left of a batch after some of it was settled, or more of it has started.
UPDATE holdfast_lease SET jobs = $2, members = $3 WHERE id = $1

-- name: lease-drop
-- The last member has left.
DELETE FROM holdfast_lease WHERE id = $1
