-- name: add_group_listener
-- AdvanceGroups needs the ends of members in the feed. Written outside the transaction that creates the group, so that callers' transactions do not wait
-- for each other; and only once.
INSERT INTO holdfast_listen (event, listener)
SELECT d.event, 'group' FROM unnest(ARRAY['cancelled', 'complete', 'failed']) AS d (event)
ON CONFLICT DO NOTHING

-- name: group_add
-- If the id exists, nothing is inserted.
INSERT INTO holdfast_group (id, name, owner, parent, quorum, expire_at, then_jobs, created_at)
SELECT $1::uuid, nullif($2::text, ''), nullif($3::text, ''), $4::uuid, $5::integer,
       coalesce($6::timestamptz, c.now + $7::bigint * interval '1 microsecond'), $8::text::json, c.now FROM (SELECT holdfast_now() AS now) c
ON CONFLICT DO NOTHING RETURNING created_at, expire_at

-- name: share_lock_groups
-- A transaction that adds members locks their groups against a seal until it commits. Groups are locked in descending order of their ids, children
-- before parents, by every transaction that waits for them.
SELECT id::text, sealed_at IS NOT NULL FROM holdfast_group WHERE id = ANY ($1::uuid[]) ORDER BY id DESC FOR SHARE

-- name: lock_groups
-- The same for a transaction that will update the groups: taking the stronger lock at once avoids a deadlock between two transactions that both hold
-- the shared lock.
SELECT id::text, sealed_at IS NOT NULL FROM holdfast_group WHERE id = ANY ($1::uuid[]) ORDER BY id DESC FOR NO KEY UPDATE

-- name: find_group_of_job
-- The group of a job, or an empty text.
SELECT coalesce(group_id::text, '') FROM holdfast_job WHERE id = $1::uuid

-- name: raise_group_cursor
-- A member of a sealed group has added members to it. The cursor must not have passed one of them. (There is no max of uuids, but an order.)
UPDATE holdfast_group g SET attend = true, live = CASE WHEN g.live IS NOT NULL THEN greatest(g.live, (SELECT d.id FROM unnest($2::uuid[]) AS d (id) ORDER BY d.id DESC LIMIT 1)) END
 WHERE g.id = $1::uuid AND g.sealed_at IS NOT NULL AND g.settled_at IS NULL

-- name: flag_groups
-- Flags groups for AdvanceGroups although no member has just ended.
UPDATE holdfast_group SET attend = true WHERE id = ANY ($1::uuid[]) AND NOT attend

-- name: group_seal
-- Seals a group, once. All its members may have ended already, so it is flagged for AdvanceGroups.
UPDATE holdfast_group SET sealed_at = coalesce(sealed_at, (SELECT holdfast_now())), live = CASE WHEN sealed_at IS NULL THEN NULL ELSE live END,
       attend = attend OR sealed_at IS NULL, state = CASE WHEN sealed_at IS NULL THEN 'processing' ELSE state END
 WHERE id = $1::uuid RETURNING id::text

-- name: find_non_member
-- The first of these jobs that is not a member of the group.
SELECT d.upstream::text FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS d (upstream, group_id, n)
 WHERE NOT EXISTS (SELECT FROM holdfast_job j WHERE j.id = d.upstream AND j.group_id = d.group_id) ORDER BY d.n LIMIT 1

-- name: step_add
-- The names of members. The primary key refuses a name that another member of the group has.
INSERT INTO holdfast_step (group_id, name, job) SELECT d.group_id, d.name, d.job FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS d (group_id, name, job)

-- name: find_steps
-- The members that have these names, each found by its key, whatever the planner knows of the table's size. The groups are locked.
SELECT d.group_id::text, d.name, s.job::text FROM unnest($1::uuid[], $2::text[]) AS d (group_id, name)
 CROSS JOIN LATERAL (SELECT t.job FROM holdfast_step t WHERE t.group_id = d.group_id AND t.name = d.name LIMIT 1) AS s

-- name: after_add
-- Written with the job that waits, and never changed.
INSERT INTO holdfast_after (upstream, job, regardless, outcome)
SELECT d.upstream, d.job, d.regardless, d.outcome FROM unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::text[]) AS d (upstream, job, regardless, outcome)

-- name: lock_group_ancestors
-- Locks the groups of these jobs and all groups around them, in descending order of their ids.
WITH RECURSIVE line AS (
    SELECT g.id, g.parent FROM holdfast_group g WHERE g.id = ANY (ARRAY (
        SELECT m.group_id FROM (SELECT j.group_id FROM holdfast_job j WHERE j.id = ANY ($1::uuid[]) OFFSET 0) AS m WHERE m.group_id IS NOT NULL))
     UNION
    SELECT g.id, g.parent FROM line l JOIN holdfast_group g ON g.id = l.parent
)
SELECT g.id FROM holdfast_group g WHERE g.id = ANY (ARRAY (SELECT id FROM line)) ORDER BY g.id DESC FOR UPDATE

-- name: group_reopen
-- Settled groups start a new generation; the others only have to be checked again. The rows are locked already.
WITH before AS MATERIALIZED (
    SELECT g.id, g.settled_at IS NOT NULL AS settled FROM holdfast_group g WHERE g.id = ANY ($1::uuid[])
), opened AS (
    UPDATE holdfast_group g SET live = NULL, attend = true, state = CASE WHEN b.settled THEN 'processing' ELSE g.state END, settled_at = NULL,
           ending = CASE WHEN b.settled THEN NULL ELSE g.ending END, generation = g.generation + b.settled::integer, complete = NULL, failed = NULL, cancelled = NULL
      FROM before b WHERE g.id = b.id RETURNING g.id, g.generation, b.settled
)
INSERT INTO holdfast_event (subject, at, name, actor, reason, request, token, generation)
SELECT 'group/' || id, $2::timestamptz, 'reopened', $3::text, nullif($4::text, ''), nullif($5::text, ''), 0, generation FROM opened WHERE settled ORDER BY id DESC

-- name: lock_group
-- One group, locked, for an intervention.
SELECT coalesce(owner, ''), state, ending IS NOT NULL, generation FROM holdfast_group WHERE id = $1::uuid FOR UPDATE

-- name: group_owner
-- The owner, without a lock: finished rows of jobs are locked before groups.
SELECT coalesce(owner, '') FROM holdfast_group WHERE id = $1::uuid

-- name: group_end
-- Seals the group and marks it as ending. AdvanceGroups cancels its members.
UPDATE holdfast_group SET ending = 'cancelled', sealed_at = coalesce(sealed_at, $2::timestamptz), state = 'processing', live = NULL, attend = true WHERE id = $1::uuid

-- name: find_failed_members
-- Locks the failed members, and those that never ran because of another, of a group and its child groups. The sixth column: it failed, and was to run because
-- of how another member ended. Finished rows are locked in the order of their jobs
-- by every transaction.
WITH RECURSIVE tree AS (
    SELECT g.id FROM holdfast_group g WHERE g.id = $1::uuid
     UNION
    SELECT g.id FROM tree t JOIN holdfast_group g ON g.parent = t.id
)
SELECT f.job, f.token, f.generation, f.upstream, f.state = 'cancelled' AND f.benign,
       f.state = 'failed' AND EXISTS (SELECT FROM holdfast_after a WHERE a.job = f.job AND a.upstream <> a.job AND a.outcome IS NOT NULL), coalesce(j.owner, ''), j.kind, coalesce(j.unique_key, ''), coalesce(j.expire_at <= (SELECT holdfast_now()), false)
  FROM tree t JOIN holdfast_job j ON j.group_id = t.id JOIN holdfast_finished f ON f.job = j.id
 WHERE f.state = 'failed' AND f.discarded_at IS NULL OR f.upstream IS NOT NULL ORDER BY f.job FOR UPDATE OF f

-- name: return_to_waiting
-- Makes jobs wait for other members again, with a thousand years added to their due time, so that Promote does not see them. A due time of their own
-- that has not come yet still counts, because they never ran.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
SELECT greatest($1::timestamptz, (SELECT j.run_at FROM holdfast_job j WHERE j.id = d.job)) + interval '8766000 hours', d.job, d.token, d.failures, d.crashes, d.releases, d.generation, ''
  FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::integer[], $7::integer[]) AS d (job, token, failures, crashes, releases, generation)

-- name: events_add
-- The same event for many jobs.
INSERT INTO holdfast_event (job, at, name, actor, reason, request, token, generation)
SELECT d.job, $1::timestamptz, $2::text, $3::text, nullif($4::text, ''), nullif($5::text, ''), d.token, d.generation
  FROM unnest($6::uuid[], $7::integer[], $8::integer[]) AS d (job, token, generation)
