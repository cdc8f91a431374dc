-- name: advance_lock
-- One process advances groups at a time. The lock ends with the transaction.
SELECT pg_try_advisory_xact_lock(5721944081463208)

-- name: check_work_to_advance
-- Without groups, ends of jobs need not be read, and without jobs in lines, no line needs to be looked at.
SELECT EXISTS (SELECT FROM holdfast_group), coalesce((SELECT true FROM holdfast_order o WHERE o.live ORDER BY o.owner, o.key, o.seq LIMIT 1), false)

-- name: advance_pages
-- The pages after the last one that groups have followed, without their jobs.
SELECT o.first, o.events FROM holdfast_outbox o WHERE o.first > (SELECT followed FROM holdfast_feed WHERE one = 1) ORDER BY o.first LIMIT $1::integer

-- name: find_ended_members
-- The group members among the jobs that ended. Each job is read by its id, and filtered by its group afterwards: if no job had a group when the table
-- was analyzed, the planner takes the index on group_id for empty and would read all of it.
SELECT j.id, j.group_id FROM holdfast_outbox o CROSS JOIN LATERAL unnest(o.jobs) AS m (job)
 CROSS JOIN LATERAL (SELECT k.id, k.group_id FROM holdfast_job k WHERE k.id = m.job OFFSET 0) AS j
 WHERE o.first > (SELECT followed FROM holdfast_feed WHERE one = 1) AND o.first <= $1::bigint AND o.name IN ('complete', 'failed', 'cancelled') AND j.group_id IS NOT NULL

-- name: set_advanced
-- Queued last, because Sequence needs this row too.
UPDATE holdfast_feed SET advanced = greatest(advanced, $1::bigint), followed = greatest(followed, $1::bigint) WHERE one = 1

-- name: group_expire
-- Marks expired groups as ending: they take no more members, and the remaining ones are cancelled. Only the first generation expires: a person who
-- reopens a group wants to see its members finish.
UPDATE holdfast_group SET ending = 'expired', sealed_at = coalesce(sealed_at, (SELECT holdfast_now())), state = 'processing', live = NULL, attend = true
 WHERE id = ANY (ARRAY (
    SELECT g.id FROM holdfast_group g WHERE g.expire_at <= (SELECT holdfast_now()) AND g.expire_at IS NOT NULL AND g.settled_at IS NULL AND g.ending IS NULL AND g.generation = 1
     ORDER BY g.expire_at LIMIT $1::integer FOR UPDATE SKIP LOCKED))

-- name: lock_flagged_groups
-- Flagged groups. One that another transaction has locked stays flagged, and is checked by a later step.
SELECT {group_row} FROM holdfast_group g WHERE g.attend ORDER BY g.id DESC LIMIT $1::integer FOR UPDATE SKIP LOCKED

-- name: find_flagged_groups
-- The same without a lock: waiting members are processed even if another transaction has locked their group.
SELECT g.id FROM holdfast_group g WHERE g.attend ORDER BY g.id DESC LIMIT $1::integer

-- name: lock_touched_groups
-- Groups of which a member has ended. An open group is checked when it is sealed.
SELECT {group_row} FROM holdfast_group g WHERE g.id = ANY ($1::uuid[]) AND g.sealed_at IS NOT NULL AND g.settled_at IS NULL ORDER BY g.id DESC FOR UPDATE SKIP LOCKED

-- name: count_touched_groups
-- The same without a lock. If it counts more groups than were locked, another transaction has locked one.
SELECT count(*)::integer FROM holdfast_group g WHERE g.id = ANY ($1::uuid[]) AND g.sealed_at IS NOT NULL AND g.settled_at IS NULL

-- part: group_row
g.id, coalesce(g.name, ''), coalesce(g.owner, ''), g.parent, g.quorum, g.then_jobs::text, coalesce(g.ending, ''), g.generation, g.sealed_at IS NOT NULL, g.settled_at IS NOT NULL, g.attend, g.live

-- name: after_due
-- Of the members that wait for ended members ($1), or in flagged groups ($2), those whose wait is over: all members they wait for have ended, or one
-- of them has not ended as it must. That is the first that shows that a success is missing, or else the first that shows that the member is not needed; it
-- is the member itself if retention deleted a member of which it needed a failure or a cancellation. Candidates are found by job: all waiting members share the hold '', so its index would not
-- help. Members that still have to wait are not returned, so fewer than $3 rows are all there are.
WITH candidate AS MATERIALIZED (
    SELECT a.job FROM unnest($1::uuid[]) AS d (id) JOIN holdfast_after a ON a.upstream = d.id WHERE (SELECT l.hold FROM holdfast_later l WHERE l.job = a.job) = ''
     UNION
    SELECT j.id FROM unnest($2::uuid[]) AS d (id) JOIN holdfast_job j ON j.group_id = d.id WHERE (SELECT l.hold FROM holdfast_later l WHERE l.job = j.id) = ''
)
SELECT c.job, b.upstream, coalesce(b.state, ''), coalesce(b.skipped, false), coalesce(b.skips, false) FROM candidate c LEFT JOIN LATERAL (
    SELECT a.upstream, f.state, f.state = 'cancelled' AND f.benign AS skipped, a.outcome IS NOT NULL OR f.state = 'cancelled' AND f.benign AS skips
      FROM holdfast_after a JOIN holdfast_finished f ON f.job = a.upstream
     WHERE a.job = c.job AND a.upstream <> a.job
       AND CASE WHEN a.outcome IS NULL THEN NOT a.regardless AND f.state <> 'complete' ELSE f.state <> a.outcome OR f.state = 'cancelled' AND f.benign END
     UNION ALL
    SELECT a.upstream, '', false, true FROM holdfast_after a
     WHERE a.job = c.job AND a.upstream = c.job
       AND CASE WHEN a.upstream = a.job THEN a.outcome::integer END > (SELECT count(*) FROM holdfast_after e WHERE e.job = c.job AND e.upstream <> c.job AND e.outcome IS NOT NULL)
     ORDER BY 4, 1 LIMIT 1) b ON true
 WHERE b.upstream IS NOT NULL OR NOT EXISTS (
    SELECT FROM holdfast_after a JOIN holdfast_job u ON u.id = a.upstream WHERE a.job = c.job AND a.upstream <> c.job AND NOT EXISTS (SELECT FROM holdfast_finished f WHERE f.job = a.upstream))
 LIMIT $3::integer

-- name: after_lock
-- Waits, in one order, for transactions that are moving one of the members. The row may be gone afterwards.
SELECT l.job, l.token, l.failures, l.crashes, l.releases, l.generation FROM holdfast_later l WHERE l.job = ANY ($1::uuid[]) AND l.hold IS NOT DISTINCT FROM '' ORDER BY l.job FOR UPDATE

-- name: after_start
-- Releases members whose wait is over. A member that is due, or that never had a due time of its own, becomes claimable at once, even if the clock
-- was set back; the others wait for their due time. The rows are locked already.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
free AS MATERIALIZED (
    SELECT l.ctid AS place, l.due_at - interval '8766000 hours' AS due_at, l.job, l.token, l.failures, l.crashes, l.releases, l.generation,
           CASE WHEN l.failures > 0 THEN -j.lane ELSE j.lane END AS lane, j.priority, j.queue,
           l.due_at - interval '8766000 hours' <= (SELECT now FROM clock) OR l.due_at - interval '8766000 hours' = j.created_at AS due
      FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job WHERE l.job = ANY ($1::uuid[]) AND l.hold IS NOT DISTINCT FROM ''
), gone AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM free WHERE due))
), rest AS (
    UPDATE holdfast_later SET due_at = due_at - interval '8766000 hours', hold = NULL WHERE ctid = ANY (ARRAY (SELECT place FROM free WHERE NOT due))
), start AS (
    INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
    SELECT lane, priority, job, token, failures, crashes, releases, generation, due_at FROM free WHERE due
    ON CONFLICT DO NOTHING
)
SELECT DISTINCT queue, lane, priority FROM free WHERE due

-- name: after_cancel
-- Cancels members that never run because of how another ended, and records which one; it is unknown if retention deleted it. The end is benign if the member
-- was not needed.
WITH gone AS (DELETE FROM holdfast_later l WHERE l.job = ANY ($2::uuid[]) AND l.hold IS NOT DISTINCT FROM '' RETURNING l.job, l.token, l.failures, l.crashes, l.releases, l.generation)
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, finished_at, state, upstream, benign)
SELECT g.job, g.token, g.failures, g.crashes, g.releases, g.generation, $1::timestamptz, 'cancelled', d.upstream, d.benign
  FROM unnest($2::uuid[], $3::uuid[], $4::boolean[]) AS d (job, upstream, benign) JOIN gone g ON g.job = d.job
ON CONFLICT DO NOTHING

-- name: after_cancel_note
-- One event for each of them.
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation)
SELECT d.job, $1::timestamptz, 'cancel', 'holdfast', d.reason, d.token, d.generation
  FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::integer[]) AS d (job, reason, token, generation)

-- name: find_uncancelled_members
-- The next $3 members of an ending group ($1), from id $2 downwards, that have neither ended nor got a cancel request.
SELECT j.id FROM holdfast_job j WHERE j.group_id = $1::uuid AND j.id <= $2::uuid
   AND NOT EXISTS (SELECT FROM holdfast_finished f WHERE f.job = j.id) AND NOT EXISTS (SELECT FROM holdfast_cancel c WHERE c.job = j.id)
 ORDER BY j.id DESC LIMIT $3::integer

-- name: group_cancel_queued
-- Cancels the queued ones, wherever they wait. Rows that another transaction has locked are left to a later step.
WITH waiting AS MATERIALIZED (
    SELECT r.ctid AS place, r.job, r.token, r.failures, r.crashes, r.releases, r.generation FROM unnest($2::uuid[]) AS d (id) JOIN holdfast_job j ON j.id = d.id
      JOIN holdfast_ready r ON r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id FOR UPDATE OF r SKIP LOCKED
), resting AS MATERIALIZED (
    SELECT l.ctid AS place, l.job, l.token, l.failures, l.crashes, l.releases, l.generation FROM unnest($2::uuid[]) AS d (id)
      JOIN holdfast_later l ON l.job = d.id FOR UPDATE OF l SKIP LOCKED
), gone_waiting AS (
    DELETE FROM holdfast_ready WHERE ctid = ANY (ARRAY (SELECT place FROM waiting))
), gone_resting AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM resting))
), ended AS MATERIALIZED (
    SELECT * FROM waiting UNION ALL SELECT * FROM resting
), finished AS (
    INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, finished_at, state)
    SELECT job, token, failures, crashes, releases, generation, $1::timestamptz, 'cancelled' FROM ended ON CONFLICT DO NOTHING
), freed AS (
    DELETE FROM holdfast_unique WHERE job = ANY (ARRAY (SELECT job FROM ended))
)
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation)
SELECT job, $1::timestamptz, 'cancel', 'holdfast', $3::text, token, generation FROM ended

-- name: group_cancel_leased
-- Adds cancel requests for the processing ones, under the lock of their batch, as Cancel does. Batches that another transaction has locked are left
-- to a later step.
WITH held AS MATERIALIZED ( -- read under the lock: members may have left the batch since this statement began
    SELECT l.id, l.jobs, l.tokens, l.generations FROM holdfast_batch l WHERE l.jobs && $2::uuid[] ORDER BY l.id FOR UPDATE SKIP LOCKED
), working AS MATERIALIZED (
    SELECT m.job, coalesce(m.token, 1) AS token, coalesce(m.generation, 1) AS generation
      FROM held h CROSS JOIN LATERAL unnest(h.jobs, h.tokens, h.generations) AS m (job, token, generation) WHERE m.job = ANY ($2::uuid[])
), asked AS (
    INSERT INTO holdfast_cancel (job, at, actor, reason) SELECT job, $1::timestamptz, 'holdfast', $3::text FROM working ON CONFLICT DO NOTHING RETURNING job
)
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation)
SELECT w.job, $1::timestamptz, 'cancel', 'holdfast', $3::text, w.token, w.generation FROM working w JOIN asked a ON a.job = w.job

-- name: end_child_groups
-- Marks the child groups of an ending group as ending. One that another transaction has locked is left to a later step.
UPDATE holdfast_group SET ending = $2::text, sealed_at = coalesce(sealed_at, $3::timestamptz), state = 'processing', live = NULL, attend = true
 WHERE id = ANY (ARRAY (SELECT g.id FROM holdfast_group g WHERE g.parent = $1::uuid AND g.settled_at IS NULL AND g.ending IS NULL ORDER BY g.id DESC LIMIT $4::integer FOR UPDATE SKIP LOCKED))
RETURNING id

-- name: check_group_end
-- Whether some member or child group of an ending group is not cancelled yet.
SELECT EXISTS (SELECT FROM holdfast_job j WHERE j.group_id = $1::uuid AND j.id <= $2::uuid
          AND NOT EXISTS (SELECT FROM holdfast_finished f WHERE f.job = j.id) AND NOT EXISTS (SELECT FROM holdfast_cancel c WHERE c.job = j.id))
    OR EXISTS (SELECT FROM holdfast_group g WHERE g.parent = $1::uuid AND g.settled_at IS NULL AND g.ending IS NULL)

-- name: find_live_members
-- For each group the highest member that has not ended, searched downwards from the one found last; and whether a child group has not settled. This is a
-- subquery with a limit, because PostgreSQL 18 reads all groups for an EXISTS in a list of results.
SELECT d.id, m.id, (SELECT true FROM holdfast_group g WHERE g.parent = d.id AND g.settled_at IS NULL LIMIT 1) IS NOT NULL
  FROM unnest($1::uuid[], $2::uuid[]) AS d (id, live) LEFT JOIN LATERAL (
    SELECT j.id FROM holdfast_job j WHERE j.group_id = d.id AND j.id <= d.live AND NOT EXISTS (SELECT FROM holdfast_finished f WHERE f.job = j.id)
     ORDER BY j.id DESC LIMIT 1) m ON true

-- name: group_count
-- The outcomes of all members: jobs, tombstones of purged jobs, child groups.
SELECT d.id, m.complete, m.failed, m.cancelled, m.skipped FROM unnest($1::uuid[]) AS d (id) CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE x.state = 'complete')::integer AS complete, count(*) FILTER (WHERE x.state = 'failed')::integer AS failed,
           count(*) FILTER (WHERE x.state = 'cancelled' AND NOT x.skipped)::integer AS cancelled, count(*) FILTER (WHERE x.skipped)::integer AS skipped FROM (
        SELECT f.state, f.state = 'cancelled' AND f.benign AS skipped FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id WHERE j.group_id = d.id
         UNION ALL
        SELECT t.state, t.skipped FROM holdfast_tombstone t WHERE t.group_id = d.id
         UNION ALL
        SELECT CASE g.state WHEN 'ready' THEN 'complete' ELSE 'failed' END, false FROM holdfast_group g WHERE g.parent = d.id) x) m

-- name: group_settle
-- Stores the outcome, once per generation.
WITH settled AS (
    UPDATE holdfast_group SET state = $2::text, settled_at = $3::timestamptz, complete = $4::integer, failed = $5::integer, cancelled = $6::integer, skipped = $8::integer, attend = false, live = NULL
     WHERE id = $1::uuid AND settled_at IS NULL RETURNING id, generation
)
INSERT INTO holdfast_event (subject, at, name, actor, reason, token, generation)
SELECT 'group/' || id, $3::timestamptz, $2::text, 'holdfast', $7::text, 0, generation FROM settled

-- name: flag_parent_group
-- Flags the parent of a settled group. An open parent is checked when it is sealed; updating it here would wait for transactions that add members to
-- it.
UPDATE holdfast_group SET attend = true WHERE id = $1::uuid AND sealed_at IS NOT NULL AND settled_at IS NULL AND NOT attend

-- name: save_group_check
-- Stores the result of a check.
UPDATE holdfast_group SET live = $2::uuid, attend = $3::boolean WHERE id = $1::uuid AND (live IS DISTINCT FROM $2::uuid OR attend <> $3::boolean)
