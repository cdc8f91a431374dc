-- name: check_settle_needs
-- Whether there is any cancel request, any unique key, any hold that limits processing jobs, and any order key. Usually there is none, and then no job is looked up.
SELECT EXISTS (SELECT 1 FROM holdfast_cancel), EXISTS (SELECT 1 FROM holdfast_unique), EXISTS (SELECT 1 FROM holdfast_hold WHERE at_most > 0), EXISTS (SELECT 1 FROM holdfast_order)

-- name: finish_complete
-- The most frequent end of a job; many rows are inserted at once.
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'complete', $9, $10)

-- name: cancel_drop
-- Finds a cancel request and deletes it in one statement, so that it is obeyed once.
DELETE FROM holdfast_cancel WHERE job = $1

-- name: finish
-- Any other end of a generation. A benign failure is discarded from the start, so it is never a dead letter.
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code,
                               fingerprint, discarded_at, benign)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)

-- name: attempt_add
-- The row of an attempt, in the transaction that ends it.
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at, code, category,
                              message, detail, context, dependency, fingerprint, benign, why, said)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)

-- name: take_released_attempt
-- Deletes a released attempt that the next released attempt will include.
DELETE FROM holdfast_attempt WHERE job = $1 AND token = $2 AND charge = 'release' AND to_state = 'queued' RETURNING repeats, coalesce(since, ended_at)

-- name: merge_releases
-- An attempt that includes the released attempts before it.
UPDATE holdfast_attempt SET repeats = $3, since = $4 WHERE job = $1 AND token = $2

-- name: return_to_ready
-- Returns a job to its lane, claimable at once. Retries have their own line.
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
SELECT CASE WHEN r.column3 > 0 THEN -j.lane ELSE j.lane END, j.priority, j.id, r.column2, r.column3, r.column4, r.column5, r.column6, r.column7
  FROM (VALUES ($1, $2, $3, $4, $5, $6, $7)) r CROSS JOIN holdfast_job j ON j.id = r.column1

-- name: return_to_later
-- Returns a job that waits for its retry delay.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation) VALUES ($7, $1, $2, $3, $4, $5, $6)

-- name: unique_free
-- Frees the unique key of a job that ends. $2 is 1 if it completed: then a key that is kept after success stays.
DELETE FROM holdfast_unique
 WHERE (owner, kind, key) = (SELECT coalesce(j.owner, ''), j.kind, j.unique_key FROM holdfast_job j
                              WHERE j.id = $1 AND j.unique_key IS NOT NULL AND NOT (j.unique_done <> 0 AND $2 <> 0))
   AND job = $1

-- name: find_settled
-- Whether this settlement was applied before: the caller may not have received the answer. Every end but a completion has an attempt row, and one attempt row
-- can stand for several tokens.
SELECT 1 FROM holdfast_attempt WHERE job = $1 AND token >= $2 AND token - repeats <= $2 AND coalesce(said, to_state) = $3
UNION ALL
SELECT 1 FROM holdfast_finished WHERE job = $1 AND token = $2 AND state = 'complete' AND state = $3
LIMIT 1

-- name: late_add
-- A settlement that came too late is kept as evidence. The first one for a token stays.
INSERT INTO holdfast_late_settlement (job, token, to_state, at, took, charge, code, category, message, detail, context, dependency, fingerprint,
                           benign, why)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
 WHERE EXISTS (SELECT 1 FROM holdfast_job WHERE id = $1)
    ON CONFLICT DO NOTHING

-- name: deadline_add
-- The time by which the next attempt has to start. (Two attempts may end at the same instant: then the later token counts.)
INSERT INTO holdfast_deadline (at, job, token) VALUES ($1, $2, $3) ON CONFLICT (at, job) DO UPDATE SET token = excluded.token

-- name: find_failed_jobs
-- Kind and queue of failed jobs, for the counts of their error groups.
SELECT id, kind, queue FROM holdfast_job WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: error_group_add
-- The first failure with a fingerprint gives the group its code and message.
INSERT INTO holdfast_error_group (fingerprint, code, category, message, detail, failures, first_seen, last_seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)

-- name: add_failures
-- Run once for each group and call, whatever the number of failures.
UPDATE holdfast_error_group SET failures = failures + $2, last_seen = max(last_seen, $3) WHERE fingerprint = $1

-- name: change_error_status
-- New failures change what people have decided about the group: it is open or regressed.
UPDATE holdfast_error_group SET status = $2, until = NULL, until_count = NULL WHERE fingerprint = $1

-- name: add_error_counts
-- The failures of a group by step and place.
INSERT INTO holdfast_error_count (fingerprint, step, kind, queue, dependency, version, failures) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (fingerprint, step, kind, queue, dependency, version) DO UPDATE SET failures = failures + excluded.failures

-- name: add_trend_counts
-- The results of attempts: one row for each step and queue of the transaction. There is one writer at a time, so one shard is enough.
INSERT INTO holdfast_trend (step, queue, shard, complete, failed, retried, cancelled) VALUES ($1, $2, 0, $3, $4, $5, $6)
    ON CONFLICT (step, queue, shard) DO UPDATE SET complete = complete + excluded.complete, failed = failed + excluded.failed,
       retried = retried + excluded.retried, cancelled = cancelled + excluded.cancelled
