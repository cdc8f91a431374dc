-- name: claim-holds
-- The active holds. There are few or none, so the lanes are filtered in memory.
SELECT scope, name FROM holdfast_hold WHERE until IS NULL OR until > $1

-- name: claim-peek
-- The next keys of one lane, for the merge across lanes. The join passes over rows without facts: they are the audit's. (A
-- bare parameter as LIMIT would have SQLite prepare the statement again at every run.)
SELECT r.priority, r.job
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job
 WHERE r.lane = $1 AND (r.priority, r.job) > ($2, $3) AND length(r.job) = 16
 ORDER BY r.priority, r.job LIMIT $4 + 0

-- name: claim-read
-- The facts of a lane's first jobs, up to a key. The key order of ready is the order of the claim: nothing is sorted.
SELECT j.id, j.kind, j.queue, j.args, j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key, j.created_at,
       j.expire_at, r.token + 1, r.failures, r.crashes, r.interrupts, r.generation, c.since, c.checkpoint, r.priority, j.run_at
  FROM holdfast_ready r CROSS JOIN holdfast_job j ON j.id = r.job LEFT JOIN holdfast_carry c ON c.job = r.job
 WHERE r.lane = $1 AND (r.priority, r.job) <= ($2, $3) AND length(r.job) = 16
 ORDER BY r.priority, r.job LIMIT $4 + 0

-- name: claim-take
-- Everything in the lane up to the last key read becomes a member, in one pass. Up to the second key they start at once.
-- What has been in a lost worker's hands before is presumed started from then on.
INSERT INTO holdfast_member (job, lease, token, failures, crashes, interrupts, generation, started)
SELECT job, $4, token + 1, failures, crashes, interrupts, generation,
       (priority, job) <= ($5, $6) OR interrupts > 0 OR crashes > 0
  FROM holdfast_ready
 WHERE lane = $1 AND (priority, job) <= ($2, $3)
    ON CONFLICT DO NOTHING

-- name: claim-leave
-- The same range leaves ready: one range, no list of ids.
DELETE FROM holdfast_ready WHERE lane = $1 AND (priority, job) <= ($2, $3)

-- name: claim-leave-known
-- The careful form of claim-leave, for a range with rows that have no facts: those stay for the audit.
DELETE FROM holdfast_ready
 WHERE lane = $1 AND (priority, job) <= ($2, $3)
   AND length(job) = 16 AND EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = holdfast_ready.job)

-- name: claim-drop-unknown
-- Undoes claim-take for rows that have no facts.
DELETE FROM holdfast_member
 WHERE lease = $1 AND NOT (length(job) = 16 AND EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = holdfast_member.job))

-- name: claim-members
-- Who was really taken, when the count did not agree.
SELECT job FROM holdfast_member WHERE lease = $1

-- name: lease-add
-- One row per claim; members counts its jobs, so that the lease can go with its last one without a search.
INSERT INTO holdfast_lease (id, worker, lost, claimed_at, expires_at, members) VALUES ($1, $2, $3, $4, $5, $6)

-- name: lease-shrink
-- Changes nothing when no member would be left: then the lease goes.
UPDATE holdfast_lease SET members = members - $2 WHERE id = $1 AND members > $2

-- name: lease-drop
-- The last member has left.
DELETE FROM holdfast_lease WHERE id = $1
