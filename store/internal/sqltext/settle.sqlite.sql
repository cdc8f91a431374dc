-- name: check_settle_needs
-- Whether anybody asked to cancel, whether anybody holds a unique key, and whether a hold counts what is in workers' hands.
-- Usually none of these: then no job is searched for.
SELECT EXISTS (SELECT 1 FROM holdfast_cancel), EXISTS (SELECT 1 FROM holdfast_unique), EXISTS (SELECT 1 FROM holdfast_hold WHERE at_most > 0)

-- name: finish_complete
-- The common case, many rows abreast.
INSERT INTO holdfast_finished (job, token, failures, crashes, interrupts, generation, started_at, finished_at, state, worker, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'complete', $9, $10)

-- name: cancel_drop
-- A request to cancel is obeyed and removed in the same breath.
DELETE FROM holdfast_cancel WHERE job = $1

-- name: finish
-- Any other end of a generation. A benign one is no dead letter from the start.
INSERT INTO holdfast_finished (job, token, failures, crashes, interrupts, generation, started_at, finished_at, state, worker, code,
                               fingerprint, discarded_at, benign)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)

-- name: attempt_add
-- The attempt's own line, in the transaction that ends it.
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, due_at, code, category,
                              message, detail, context, dependency, fingerprint, benign, why, said)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)

-- name: take_released_attempt
-- A released attempt that the one after it will stand for.
DELETE FROM holdfast_attempt WHERE job = $1 AND token = $2 AND charge = 'interrupt' AND to_state = 'queued' RETURNING repeats, coalesce(since, ended_at)

-- name: merge_releases
-- The attempt that stands for those released before it.
UPDATE holdfast_attempt SET repeats = $3, since = $4 WHERE job = $1 AND token = $2

-- name: return_to_ready
-- Back to its lane, at once; retries have a line of their own there.
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, interrupts, generation, due_at)
SELECT CASE WHEN r.column3 > 0 THEN -j.lane ELSE j.lane END, j.priority, j.id, r.column2, r.column3, r.column4, r.column5, r.column6, r.column7
  FROM (VALUES ($1, $2, $3, $4, $5, $6, $7)) r CROSS JOIN holdfast_job j ON j.id = r.column1

-- name: return_to_later
-- Back, but not before its time.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, interrupts, generation) VALUES ($7, $1, $2, $3, $4, $5, $6)

-- name: unique_free
-- The job gives its unique key back as it ends. $2 is 1 when it completed: a key that outlives success stays.
DELETE FROM holdfast_unique
 WHERE (owner, kind, key) = (SELECT coalesce(j.owner, ''), j.kind, j.unique_key FROM holdfast_job j
                              WHERE j.id = $1 AND j.unique_key IS NOT NULL AND NOT (j.unique_done <> 0 AND $2 <> 0))
   AND job = $1

-- name: find_settled
-- Whether this very settlement was applied before: the caller may not have heard the answer. Only a completion has no
-- attempt to prove it; one attempt can stand for several tokens.
SELECT 1 FROM holdfast_attempt WHERE job = $1 AND token >= $2 AND token - repeats <= $2 AND coalesce(said, to_state) = $3
UNION ALL
SELECT 1 FROM holdfast_finished WHERE job = $1 AND token = $2 AND state = 'complete' AND state = $3
LIMIT 1

-- name: late_add
-- Too late to count, kept as evidence; the first word stands.
INSERT INTO holdfast_late (job, token, to_state, at, took, charge, code, category, message, detail, context, dependency, fingerprint,
                           benign, why)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
 WHERE EXISTS (SELECT 1 FROM holdfast_job WHERE id = $1)
    ON CONFLICT DO NOTHING

-- name: deadline_add
-- A promise that the next attempt starts in time. (The clock may stand still between two attempts: the later one counts.)
INSERT INTO holdfast_deadline (at, job, token) VALUES ($1, $2, $3) ON CONFLICT (at, job) DO UPDATE SET token = excluded.token

-- name: find_failed_jobs
-- What failed jobs are, for the tally of their trouble.
SELECT id, kind, queue FROM holdfast_job WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: error_group_add
-- The first failure of its sort gives the group its words.
INSERT INTO holdfast_error_group (fingerprint, code, category, message, detail, failures, first_seen, last_seen) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)

-- name: add_failures
-- Once for each group and call, however many failures there were.
UPDATE holdfast_error_group SET failures = failures + $2, last_seen = max(last_seen, $3) WHERE fingerprint = $1

-- name: change_error_status
-- The group is not what people made of it any more.
UPDATE holdfast_error_group SET status = $2, until = NULL, until_count = NULL WHERE fingerprint = $1

-- name: add_error_counts
-- Where and when, in steps.
INSERT INTO holdfast_error_tally (fingerprint, step, kind, queue, dependency, version, failures) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (fingerprint, step, kind, queue, dependency, version) DO UPDATE SET failures = failures + excluded.failures

-- name: add_trend_counts
-- What became of attempts, for trends: a row for each step and queue of the whole transaction. Who writes is alone, so one shard will do.
INSERT INTO holdfast_tally (step, queue, shard, complete, failed, retried, cancelled) VALUES ($1, $2, 0, $3, $4, $5, $6)
    ON CONFLICT (step, queue, shard) DO UPDATE SET complete = complete + excluded.complete, failed = failed + excluded.failed,
       retried = retried + excluded.retried, cancelled = cancelled + excluded.cancelled
