-- name: group_add
-- An id that exists changes nothing here; the caller refuses it.
INSERT INTO holdfast_group (id, name, owner, parent, quorum, expire_at, then_jobs, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING

-- name: find_group_state
-- Whether a group takes members. The write transaction keeps it so until the commit.
SELECT state FROM holdfast_group WHERE id = $1

-- name: group_seal
-- Seals a group once. attend counts the flags, so an evaluation that began before sees that it has changed.
UPDATE holdfast_group SET sealed_at = $2, state = 'processing', attend = attend + 1, live = NULL WHERE id = $1 AND sealed_at IS NULL

-- name: raise_group_cursor
-- A member of a sealed group has added a member to it. The cursor must not have passed the new one.
UPDATE holdfast_group SET attend = attend + 1, live = CASE WHEN live IS NOT NULL THEN max(live, $2) END WHERE id = $1 AND settled_at IS NULL

-- name: flag_group
-- Flags a group for evaluation although no member has just ended.
UPDATE holdfast_group SET attend = attend + 1 WHERE id = $1

-- name: clear_group_flag
-- The group was evaluated, and has not been flagged again meanwhile.
UPDATE holdfast_group SET attend = 0 WHERE id = $1 AND attend = $2

-- name: save_group_cursor
-- Every member with a higher id has ended. Not written if the group was flagged meanwhile, because a member may have restarted.
UPDATE holdfast_group SET live = $2 WHERE id = $1 AND attend = $3

-- name: group_find
-- The state of a group.
SELECT state, generation, coalesce(ending, ''), coalesce(expire_at, 0), attend, coalesce(live, x''), quorum, coalesce(parent, x''),
       coalesce(owner, ''), coalesce(then_jobs, '')
  FROM holdfast_group WHERE id = $1

-- name: find_last_live_member
-- The member with the highest id that has not ended, from the cursor down.
SELECT j.id FROM holdfast_job j
 WHERE j.group_id = $1 AND j.id <= $2 AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)
 ORDER BY j.id DESC LIMIT 1

-- name: find_live_child_group
-- A group inside it that has not settled.
SELECT id FROM holdfast_group WHERE parent = $1 AND settled_at IS NULL LIMIT 1

-- name: find_uncancelled_members
-- Members that have not ended and have no cancel request yet, from the cursor down.
SELECT j.id FROM holdfast_job j
 WHERE j.group_id = $1 AND j.id <= $2 AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)
   AND NOT EXISTS (SELECT 1 FROM holdfast_cancel c WHERE c.job = j.id)
 ORDER BY j.id DESC LIMIT $3 + 0

-- name: group_count
-- How the members have ended: stored jobs, purged jobs, and groups inside.
SELECT count(*), coalesce(sum(f.state = 'complete'), 0), coalesce(sum(f.state = 'failed'), 0), coalesce(sum(f.state = 'cancelled' AND NOT f.benign), 0),
       coalesce(sum(f.state = 'cancelled' AND f.benign), 0)
  FROM holdfast_job j CROSS JOIN holdfast_finished f ON f.job = j.id WHERE j.group_id = $1
UNION ALL
SELECT count(*), coalesce(sum(t.state = 'complete'), 0), coalesce(sum(t.state = 'failed'), 0), coalesce(sum(t.state = 'cancelled' AND NOT t.skipped), 0),
       coalesce(sum(t.skipped), 0)
  FROM holdfast_tombstone t WHERE t.group_id = $1
UNION ALL
SELECT count(*), coalesce(sum(g.state = 'ready'), 0), coalesce(sum(g.state <> 'ready'), 0), 0, 0 FROM holdfast_group g WHERE g.parent = $1

-- name: group_settle
-- Once per generation, and only if the group was not flagged since its members were counted: a member may have restarted.
UPDATE holdfast_group SET state = $2, settled_at = $3, complete = $4, failed = $5, cancelled = $6, skipped = $8, attend = 0, live = NULL
 WHERE id = $1 AND attend = $7 AND settled_at IS NULL AND sealed_at IS NOT NULL

-- name: group_end
-- The live members are to be cancelled. The first decision stays.
UPDATE holdfast_group SET ending = $2, sealed_at = coalesce(sealed_at, $3), state = 'processing', attend = attend + 1, live = NULL
 WHERE id = $1 AND settled_at IS NULL AND ending IS NULL

-- name: end_child_groups
-- The same for the groups inside it.
UPDATE holdfast_group SET ending = $2, sealed_at = coalesce(sealed_at, $3), state = 'processing', attend = attend + 1, live = NULL
 WHERE parent = $1 AND settled_at IS NULL AND ending IS NULL

-- name: reset_group_cursor
-- A member has restarted.
UPDATE holdfast_group SET live = NULL, attend = attend + 1 WHERE id = $1

-- name: group_reopen
-- A settled group begins its next generation.
UPDATE holdfast_group SET state = 'processing', settled_at = NULL, ending = NULL, generation = generation + 1, complete = NULL, failed = NULL,
       cancelled = NULL
 WHERE id = $1 AND settled_at IS NOT NULL

-- name: find_child_groups
-- The groups inside one.
SELECT id FROM holdfast_group WHERE parent = $1

-- name: find_failed_members
-- Members that failed, and members that never ran because of another. The last column: it failed, and was to run because of how another member ended.
SELECT f.job, coalesce(f.upstream, x''), f.state = 'cancelled' AND f.benign,
       f.state = 'failed' AND EXISTS (SELECT 1 FROM holdfast_after a WHERE a.job = f.job AND a.upstream <> a.job AND a.outcome IS NOT NULL)
  FROM holdfast_job j CROSS JOIN holdfast_finished f ON f.job = j.id
 WHERE j.group_id = $1 AND (f.state = 'failed' AND f.discarded_at IS NULL OR f.upstream IS NOT NULL)

-- name: after_add
-- A job waits for a member of its group.
INSERT INTO holdfast_after (upstream, job, regardless, outcome) VALUES ($1, $2, $3, $4)

-- name: step_add
-- The name of a member. The primary key refuses a name that another member of the group has.
INSERT INTO holdfast_step (group_id, name, job) VALUES ($1, $2, $3)

-- name: find_step
-- The member that has a name.
SELECT job FROM holdfast_step WHERE group_id = $1 AND name = $2

-- name: find_upstream
-- The group of a job, and whether the job has ended.
SELECT coalesce(j.group_id, zeroblob(16)), EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id) FROM holdfast_job j WHERE j.id = $1

-- name: find_upstream_states
-- How the members ended for which a job waits; an empty state if one has not ended. In the row in which it waits for itself, outcome is the number of its
-- conditions on a failure or a cancellation.
SELECT a.upstream, a.regardless, coalesce(a.outcome, ''), coalesce(f.state, t.state, ''), coalesce(f.state = 'cancelled' AND f.benign, t.skipped, 0)
  FROM holdfast_after a LEFT JOIN holdfast_finished f ON f.job = a.upstream LEFT JOIN holdfast_tombstone t ON t.job = a.upstream
 WHERE a.job = $1 ORDER BY a.upstream

-- name: find_followers
-- The jobs that still wait for some of these.
SELECT a.job FROM holdfast_after a CROSS JOIN holdfast_later l ON l.job = a.job
 WHERE a.upstream IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AND l.hold = ''

-- name: find_waiting_members
-- The members of a group that wait for others.
SELECT j.id FROM holdfast_job j CROSS JOIN holdfast_later l ON l.job = j.id WHERE j.group_id = $1 AND l.hold = ''

-- name: after_cancel
-- Ends a job that never ran because of how a member ended for which it waited. It is benign if the job was not needed.
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, finished_at, state, upstream, benign)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'cancelled', $8, $9)

-- name: clear_group_wait
-- The members for which it waited have ended; its own time has not come yet.
UPDATE holdfast_later SET due_at = due_at - 31557600000000000, hold = NULL WHERE job = $1 AND hold = ''

-- name: wait_for_members
-- The job waits for members of its group, with a due time a thousand years ahead, so that promotion does not read it.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
VALUES ($1 + 31557600000000000, $2, $3, 0, 0, 0, $4, '')

-- name: return_to_waiting
-- The same for a job that waited before. A time of its own that has not come yet still counts, because it never ran.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
SELECT max($1, coalesce(j.run_at, 0)) + 31557600000000000, j.id, $3, 0, 0, 0, $4, '' FROM holdfast_job j WHERE j.id = $2

-- name: advance_pages
-- The jobs that have ended since AdvanceGroups last read the feed.
SELECT first, events, jobs FROM holdfast_outbox WHERE first > $1 AND name IN ('complete', 'failed', 'cancelled') ORDER BY first

-- name: find_ended_members
-- Which of these jobs are members of groups.
SELECT id, group_id FROM holdfast_job
 WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) AND +group_id IS NOT NULL

-- name: find_flagged_groups
-- Groups that are flagged for evaluation.
SELECT id FROM holdfast_group WHERE attend <> 0 AND id > $1 ORDER BY id LIMIT $2 + 0

-- name: find_expired_groups
-- Groups whose time is over. A group that a person has reopened does not expire.
SELECT id FROM holdfast_group
 WHERE expire_at <= $1 AND expire_at IS NOT NULL AND settled_at IS NULL AND ending IS NULL AND generation = 1
 ORDER BY expire_at LIMIT $2 + 0

-- name: set_advanced
-- The feed number up to which ends were handled, unless another process was faster.
UPDATE holdfast_feed SET advanced = max(advanced, $2), followed = $2 WHERE one = 1 AND followed = $1
