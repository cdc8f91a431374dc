-- The integrity check. Each statement below is one rule and returns the rows that break it; it returns none while the rule holds. A statement is named by its
-- rule, which `holdfast doctor` prints. Its columns are: the job, or else the name of another row, and what is wrong. Every statement is complete in itself, so
-- that it reads one moment of a store that is in use. Where a rule reads from job_rows, the inspector puts audit_job_rows in front as a common table. $1 is the
-- store's clock; in a rule that begins with "overdue:" it is the clock less the time that duties are allowed.
--
-- No statement may compare every row of a table with every row of another, whatever statistics the planner has. Tables are joined by equal columns, and a
-- subquery that runs for each row reads one table by its key: PostgreSQL plans these statements without nested loops (configure_planner_whole), so a join in
-- such a subquery would read a whole table each time. The members of batches are joined as a materialized table, because otherwise the planner may run the
-- join once for each batch, whose members it lists in a loop.

-- name: audit_job_rows
-- Every row that says where a job is, with its counters. Facts are not read.
SELECT 'ready' AS place, job, token, failures, crashes, releases, generation FROM holdfast_ready
UNION ALL
SELECT 'later', job, token, failures, crashes, releases, generation FROM holdfast_later
UNION ALL
SELECT 'leased', job, token, failures, crashes, releases, generation FROM holdfast_leased
UNION ALL
SELECT state, job, token, failures, crashes, releases, generation FROM holdfast_finished

-- name: audit: a job has a state row
-- Acknowledged jobs are not lost.
SELECT lost.id, NULL, 'it has no state row: it is neither ready, nor later, nor leased, nor finished'
  FROM (SELECT id FROM holdfast_job EXCEPT SELECT job FROM job_rows) AS lost

-- name: audit: a job has only one state row
-- A job in two batches, or twice in one, has two state rows as well.
SELECT s.job, NULL, 'it has ' || count(*) || ' state rows: ' || string_agg(s.place, ', ')
  FROM job_rows s GROUP BY s.job HAVING count(*) > 1

-- name: audit: a state row belongs to a job that exists
-- A job without facts can neither run nor be shown.
SELECT s.job, NULL, 'it is ' || s.place || ', but there is no job with this id'
  FROM job_rows s WHERE NOT EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = s.job)

-- name: audit: counters never go below their start
-- The tables check this too; this finds what other programs have written.
SELECT s.job, NULL, 'token ' || s.token || ', failures ' || s.failures || ', crashes ' || s.crashes || ', releases ' || s.releases || ', generation ' || s.generation
  FROM job_rows s WHERE s.token < 0 OR s.failures < 0 OR s.crashes < 0 OR s.releases < 0 OR s.generation < 1

-- name: audit: a job waits in the lane of its queue, kind, owner and dependency
-- Claims read lanes. A job in a wrong lane is claimed by the wrong worker or at another owner's turn, or escapes a hold.
SELECT j.id, NULL, 'its lane ' || j.lane || ' is not that of queue ' || j.queue || ', kind ' || j.kind || ', owner ' || coalesce(nullif(j.owner, ''), 'none')
       || ' and dependency ' || coalesce(nullif(j.dependency, ''), 'none')
  FROM holdfast_job j LEFT JOIN holdfast_lane n ON n.id = j.lane
 WHERE n.id IS NULL OR n.queue <> j.queue OR n.kind <> j.kind OR n.owner <> coalesce(j.owner, '') OR n.dependency <> coalesce(j.dependency, '')

-- name: audit: a ready job has the lane and priority of its facts
-- The key of ready is the order of claims.
SELECT r.job, NULL, 'it is ready in lane ' || r.lane || ' with priority ' || r.priority || ', its facts say lane ' || j.lane || ' and priority ' || j.priority
  FROM holdfast_ready r JOIN holdfast_job j ON j.id = r.job
 WHERE abs(r.lane) <> j.lane OR r.priority <> j.priority

-- name: audit: first attempts wait in one line, retries in the other
-- Some holds apply to retries only: they close the line of the retries.
SELECT r.job, NULL, 'it waits in line ' || r.lane || ' with ' || r.failures || ' failures'
  FROM holdfast_ready r WHERE (r.lane < 0) <> (r.failures > 0)

-- name: audit: a job has a kind and a queue
-- Without them no worker can claim it.
SELECT j.id, NULL, 'its kind or its queue is empty' FROM holdfast_job j WHERE j.kind = '' OR j.queue = ''

-- name: audit: a batch has a job
-- The row of a batch is deleted with its last member.
SELECT empty.id, NULL, 'this batch has no job left'
  FROM (SELECT id FROM holdfast_batch EXCEPT SELECT batch FROM holdfast_leased) AS empty

-- name: audit: tokens only grow
-- The fence. A job whose token is lower than those of its attempts could be settled by a worker that has lost it. The cross join makes SQLite look up attempts
-- by their key.
SELECT s.job, NULL, 'it is ' || s.place || ' with token ' || s.token || ' after an attempt with token ' || a.token
  FROM job_rows s CROSS JOIN holdfast_attempt a
 WHERE a.job = s.job AND (a.token > s.token OR (a.token = s.token AND s.place IN ('leased', 'complete')))

-- name: audit: generations only grow
-- A generation begins with a manual retry or a redrive, and no generation comes back.
SELECT s.job, NULL, 'it is ' || s.place || ' in generation ' || s.generation || ' after an attempt in generation ' || a.generation
  FROM job_rows s CROSS JOIN holdfast_attempt a
 WHERE a.job = s.job AND a.generation > s.generation

-- name: audit: a manual retry or redrive began every generation after the first
-- The event is written in the transaction that begins the generation. After retention has deleted events it cannot be known which are missing.
SELECT s.job, NULL, 'it is in generation ' || s.generation || ' after ' || coalesce(e.retries, 0) || ' manual retries and redrives'
  FROM job_rows s
  LEFT JOIN (SELECT job, count(*) AS retries FROM holdfast_event WHERE job IS NOT NULL AND name IN ('manual retry', 'redrive') GROUP BY job) AS e ON e.job = s.job
 WHERE s.generation >= 1 AND (s.generation < 1 + coalesce(e.retries, 0) OR s.generation > 1 + coalesce(e.retries, 0) AND {nothing is forgotten})

-- name: audit: a generation ends once
-- Two attempts that both ended the job, or an attempt after its end.
SELECT a.job, NULL, 'attempt ' || a.token || ' ended it as ' || a.to_state || ', and attempt ' || b.token || ' of the same generation came after'
  FROM holdfast_attempt a JOIN holdfast_attempt b ON b.job = a.job AND b.token > a.token AND b.generation = a.generation
 WHERE a.to_state IN ('failed', 'cancelled')

-- name: audit: an ended job stays ended
-- If the last attempt says failed or cancelled, so must the state row, unless a new generation has begun since.
SELECT s.job, NULL, 'attempt ' || a.token || ' ended it as ' || a.to_state || ', yet it is ' || s.place
  FROM job_rows s CROSS JOIN holdfast_attempt a
 WHERE a.job = s.job AND a.generation = s.generation AND a.to_state IN ('failed', 'cancelled') AND s.place <> a.to_state

-- name: audit: a failed job has the attempt that failed it
-- The failure is recorded on the attempt; the finished row repeats its code for lists.
SELECT f.job, NULL, 'it failed with code ' || coalesce(f.code, 'none') || ' at token ' || f.token || ', and no attempt has that failure'
  FROM holdfast_finished f LEFT JOIN holdfast_attempt a ON a.job = f.job AND a.token = f.token
 WHERE f.state = 'failed' AND (a.job IS NULL OR a.to_state <> 'failed' OR a.generation <> f.generation OR a.code IS NULL OR a.code <> f.code)

-- name: audit: a benign failure is no dead letter
-- A benign failure is discarded from the start, and the attempt that ended the job is benign too.
SELECT f.job, NULL, CASE WHEN f.discarded_at IS NULL THEN 'it ended with a benign failure, and is a dead letter' ELSE 'its end and its last attempt differ in whether the failure is benign' END
  FROM holdfast_finished f LEFT JOIN holdfast_attempt a ON a.job = f.job AND a.token = f.token
 WHERE f.state = 'failed' AND (f.benign = TRUE AND f.discarded_at IS NULL OR a.job IS NOT NULL AND a.benign <> f.benign)

-- name: audit: counters of failures and crashes match the attempts
-- In the present generation there are as many failures and crashes as attempts with that charge.
SELECT s.job, NULL, 'it counts ' || s.failures || ' failures and ' || s.crashes || ' crashes, its attempts add up to ' || coalesce(a.failures, 0) || ' and ' || coalesce(a.crashes, 0)
  FROM job_rows s
  LEFT JOIN (SELECT job, generation,
                    sum(CASE WHEN charge = 'failure' THEN 1 ELSE 0 END) AS failures,
                    sum(CASE WHEN charge = 'crash' THEN 1 ELSE 0 END) AS crashes
               FROM holdfast_attempt GROUP BY job, generation) AS a ON a.job = s.job AND a.generation = s.generation
 WHERE s.failures <> coalesce(a.failures, 0) OR s.crashes <> coalesce(a.crashes, 0)

-- name: audit: charged attempts are numbered without gaps
-- The count of an attempt is its number among the attempts of its generation with the same charge.
SELECT a.job, NULL, 'generation ' || a.generation || ' has ' || count(*) || ' attempts charged ' || a.charge || ', the last one counted ' || max(a.count)
  FROM holdfast_attempt a WHERE a.charge IN ('failure', 'crash')
 GROUP BY a.job, a.generation, a.charge HAVING max(a.count) <> count(*)

-- name: audit: no attempt beyond its limit
-- A limit of zero means none.
SELECT a.job, NULL, 'attempt ' || a.token || ' is number ' || a.count || ' of ' || a.cap || ' allowed'
  FROM holdfast_attempt a WHERE a.cap > 0 AND a.count > a.cap

-- name: audit: no attempt starts before the retry is due
-- An attempt that took no time never started: that is how expired jobs end, and jobs whose worker stopped renewing before they started. A person may have
-- rescheduled the job in between; if retention may have deleted that edit, the rule cannot be checked.
WITH member AS MATERIALIZED (SELECT job, token, generation, claimed_at, started FROM holdfast_leased)
SELECT t.job, NULL, t.what
  FROM (SELECT s.job, s.token, s.before, s.told_at, 'attempt ' || s.token || ' started before the retry was due' AS what
          FROM (SELECT a.job, a.token, a.started_at, a.ended_at, lag(a.token) OVER told AS before, lag(a.due_at) OVER told AS due_at,
                       lag(a.ended_at) OVER told AS told_at
                  FROM holdfast_attempt a
                WINDOW told AS (PARTITION BY a.job, a.generation ORDER BY a.token)) AS s
         WHERE s.started_at < s.due_at AND s.started_at < s.ended_at
        UNION ALL
        SELECT m.job, m.token, a.token, a.ended_at, 'it was started before its retry was due'
          FROM member m JOIN holdfast_attempt a ON a.job = m.job AND a.generation = m.generation
         WHERE m.started AND m.claimed_at < a.due_at
           AND a.token = (SELECT max(b.token) FROM holdfast_attempt b WHERE b.job = m.job)
        UNION ALL
        SELECT f.job, f.token, a.token, a.ended_at, 'it was completed by an attempt that started before the retry was due'
          FROM holdfast_attempt a JOIN holdfast_finished f ON f.job = a.job AND f.generation = a.generation
         WHERE f.state = 'complete' AND f.started_at < a.due_at AND f.started_at < f.finished_at
           AND a.token = (SELECT max(b.token) FROM holdfast_attempt b WHERE b.job = a.job)) AS t
 WHERE NOT EXISTS (SELECT 1 FROM holdfast_event e WHERE e.job = t.job AND e.name = 'edit' AND e.token >= t.before AND e.token < t.token)
   AND ({nothing is forgotten} OR t.told_at >= (SELECT e.at FROM holdfast_event e ORDER BY e.id LIMIT 1))

-- name: audit: no scheduled job starts before its time
-- Only the first token is checked: later attempts are bound by the attempt before them.
WITH member AS MATERIALIZED (SELECT job, token, claimed_at, started FROM holdfast_leased)
SELECT t.job, NULL, 'its first attempt started before its time'
  FROM (SELECT j.id AS job
          FROM holdfast_attempt a JOIN holdfast_job j ON j.id = a.job
         WHERE a.token = 1 AND a.started_at < j.run_at AND a.started_at < a.ended_at
        UNION
        SELECT j.id
          FROM member m JOIN holdfast_job j ON j.id = m.job
         WHERE m.token = 1 AND m.started AND m.claimed_at < j.run_at
        UNION
        SELECT j.id
          FROM holdfast_finished f JOIN holdfast_job j ON j.id = f.job
         WHERE f.token = 1 AND f.state = 'complete' AND f.started_at < j.run_at AND f.started_at < f.finished_at) AS t

-- name: audit: a ready job is due
-- Ready means claimable now.
SELECT r.job, NULL, 'it is ready before its time' FROM holdfast_ready r WHERE r.due_at > $1

-- name: overdue: an expired lease is reclaimed soon
-- Liveness: the duty reclaim of some process must have run by now.
SELECT m.job, NULL, 'worker ' || m.worker || ' stopped renewing and the lease was not reclaimed: start a worker'
  FROM holdfast_leased m WHERE m.expires_at < $1

-- name: overdue: a due job is promoted soon
-- Liveness: a job whose time has come must become claimable.
SELECT l.job, NULL, 'it is due and was not promoted: start a worker'
  FROM holdfast_later l WHERE l.due_at < $1

-- name: audit: a finished job has a known state
-- The tables check this too; this finds what other programs have written.
SELECT f.job, NULL, 'its state is ' || f.state FROM holdfast_finished f WHERE f.state NOT IN ('complete', 'failed', 'cancelled')

-- name: audit: an attempt ends in a known state
-- The tables check this too; this finds what other programs have written.
SELECT a.job, NULL, 'attempt ' || a.token || ' ended in state ' || a.to_state FROM holdfast_attempt a WHERE a.to_state NOT IN ('queued', 'failed', 'cancelled')

-- name: audit: a result belongs to a complete job, a code to a failed one
-- The tables check this too; this finds what other programs have written.
SELECT f.job, NULL, 'it is ' || f.state || ' with the wrong result, code, fingerprint or discard'
  FROM holdfast_finished f
 WHERE (f.result IS NOT NULL AND f.state <> 'complete') OR (f.code IS NOT NULL AND f.state <> 'failed') OR (f.code IS NULL AND f.state = 'failed')
    OR (f.fingerprint IS NOT NULL AND f.state <> 'failed') OR (f.discarded_at IS NOT NULL AND f.state <> 'failed')

-- name: audit: a unique key is held by a job that may hold it
-- The holder exists, has the key, and has not ended; a complete job may keep the key if it asked to.
SELECT u.job, NULL,
       CASE WHEN j.id IS NULL THEN 'it does not exist, yet it holds'
            WHEN f.job IS NOT NULL THEN 'it has ended, yet it holds'
            ELSE 'it has another key, yet it holds' END || ' the unique key ' || u.key || ' of kind ' || u.kind
  FROM holdfast_unique u
  LEFT JOIN holdfast_job j ON j.id = u.job
  LEFT JOIN holdfast_finished f ON f.job = u.job
 WHERE j.id IS NULL OR coalesce(j.owner, '') <> u.owner OR j.kind <> u.kind OR coalesce(j.unique_key, '') <> u.key
    OR (f.job IS NOT NULL AND NOT (f.state = 'complete' AND j.unique_done))

-- name: audit: a job with a unique key holds it
-- From enqueue until its end, through every retry; a complete job that asked to keep the key still holds it.
SELECT j.id, NULL, 'it does not hold its unique key ' || j.unique_key || ' of kind ' || j.kind
  FROM holdfast_job j
  LEFT JOIN holdfast_finished f ON f.job = j.id
 WHERE j.unique_key <> '' AND (f.job IS NULL OR (f.state = 'complete' AND j.unique_done))
   AND NOT EXISTS (SELECT 1 FROM holdfast_unique u WHERE u.owner = coalesce(j.owner, '') AND u.kind = j.kind AND u.key = j.unique_key AND u.job = j.id)

-- name: audit: an idempotency key leads to a job that exists
-- Otherwise a repeated enqueue would return no job.
SELECT i.job, NULL, 'it does not exist, yet the idempotency key ' || i.key || ' leads to it'
  FROM holdfast_idempotency i WHERE NOT EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = i.job)

-- name: audit: only a processing job has a cancel request
-- The settlement that obeys the request deletes it.
SELECT x.job, NULL, 'it has a cancel request, yet it is not processing'
  FROM (SELECT job FROM holdfast_cancel EXCEPT SELECT job FROM holdfast_leased) AS x

-- name: audit: attempts, events and other rows belong to a job that exists
-- Attempts, late results, events, expiries, deadlines, carried values, artifacts and waits. Events outlive a purged job, and possibly its tombstone: after that
-- the rule cannot be checked for them.
SELECT t.job, NULL, 'it does not exist, yet there is ' || t.what || ' of it'
  FROM (SELECT DISTINCT job, 'an attempt' AS what FROM holdfast_attempt
        UNION ALL SELECT DISTINCT job, 'a late result' FROM holdfast_late_settlement
        UNION ALL SELECT DISTINCT e.job, 'an event' FROM holdfast_event e
                   WHERE e.job IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_tombstone s WHERE s.job = e.job)
                     AND (SELECT coalesce(sum(p.jobs), 0) FROM holdfast_purge_count p) <= (SELECT count(*) FROM holdfast_tombstone)
        UNION ALL SELECT job, 'an expiry' FROM holdfast_expiry
        UNION ALL SELECT job, 'a deadline' FROM holdfast_deadline
        UNION ALL SELECT job, 'a carried value' FROM holdfast_progress
        UNION ALL SELECT DISTINCT job, 'an artifact' FROM holdfast_artifact
        UNION ALL SELECT DISTINCT job, 'a wait for others' FROM holdfast_after
        UNION ALL SELECT job, 'a step name' FROM holdfast_step
        UNION ALL SELECT DISTINCT upstream, 'a wait for it' FROM holdfast_after) AS t
 WHERE NOT EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = t.job)

-- name: overdue: a job set aside is promoted soon after its hold has ended
-- Liveness: a job behind a tag must become ready when the hold on the tag has expired. (When a hold was lifted is not known.)
SELECT l.job, NULL, 'the hold on its tag ' || l.hold || ' has ended and it was not promoted: start a worker'
  FROM holdfast_later l
 WHERE l.hold IS NOT NULL
   AND EXISTS (SELECT 1 FROM holdfast_hold h WHERE h.scope = 'tag' AND h.name = l.hold AND h.until < $1)
   AND NOT EXISTS (SELECT 1 FROM holdfast_hold h WHERE h.scope = 'tag' AND h.name = l.hold AND (h.until IS NULL OR h.until >= $1))

-- name: audit: a limit is not exceeded
-- No more jobs are processing than a hold allows. Counted are jobs that were claimed while the hold was certainly known to claims: not reclaimed jobs, not jobs
-- that are being expired, and not jobs whose dependency is that of their kind, which may have been declared since. Patterns and holds that change by themselves
-- are not checked. Each processing job is listed under the four names that a hold may have, and a name includes its scope, so that one equal column joins them.
WITH member AS MATERIALIZED (SELECT job, failures, claimed_at, lost FROM holdfast_leased)
SELECT NULL, 'hold on ' || h.scope || ' ' || h.name || ' by ' || h.source, 'more than ' || h.at_most || ' of its jobs are processing'
  FROM holdfast_hold h
  JOIN (SELECT s.scope || ' ' || CASE s.scope WHEN 'queue' THEN j.queue WHEN 'kind' THEN j.kind WHEN 'owner' THEN j.owner ELSE j.dependency END AS name, p.failures, p.claimed_at
          FROM member p JOIN holdfast_job j ON j.id = p.job
         CROSS JOIN (SELECT 'queue' AS scope UNION ALL SELECT 'kind' UNION ALL SELECT 'owner' UNION ALL SELECT 'dependency') AS s
         WHERE p.lost IS NULL AND (j.expire_at IS NULL OR j.expire_at > p.claimed_at)) AS m ON m.name = h.scope || ' ' || h.name
 WHERE h.at_most > 0 AND h.source IN ('operator', 'limit') AND h.name NOT LIKE '%*' AND (h.until IS NULL OR h.until > $1)
   AND (NOT h.retries OR m.failures > 0) AND {known}
 GROUP BY h.scope, h.name, h.source, h.at_most HAVING count(*) > h.at_most

-- name: audit: an error group counts all its failures
-- Counts by step are written with the group, and may be deleted before it.
SELECT NULL, 'error ' || t.fingerprint,
       CASE WHEN g.fingerprint IS NULL THEN 'failures are counted, yet there is no group' ELSE 'it counts ' || g.failures || ' failures, its steps add up to ' || t.failures END
  FROM (SELECT fingerprint, sum(failures) AS failures FROM holdfast_error_count GROUP BY fingerprint) AS t
  LEFT JOIN holdfast_error_group g ON g.fingerprint = t.fingerprint
 WHERE g.fingerprint IS NULL OR g.failures < t.failures

-- name: audit: a redriven job has reached its generation
-- The row is written in the transaction that begins the generation, and outlives a purged job.
SELECT v.job, NULL, CASE WHEN s.job IS NULL THEN 'it has no state row' ELSE 'it is in generation ' || s.generation END
       || ', yet it was redriven into generation ' || v.generation
  FROM holdfast_redriven v LEFT JOIN job_rows s ON s.job = v.job
 WHERE s.generation < v.generation
    OR s.job IS NULL AND (v.outcome IS NULL OR EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = v.job))

-- name: audit: a record has a version
-- The table checks this too; this finds what other programs have written. Without a version the record cannot be updated.
SELECT NULL, 'record ' || c.namespace || '/' || c.name, 'its version is ' || c.version FROM holdfast_record c WHERE c.version < 1

-- name: audit: the creation of an API key is in the audit log
-- While no event has been deleted by retention. An audit log that was deleted together with its anchor does not mention the keys that exist.
SELECT NULL, 'key ' || r.name, 'no event records its creation: events were deleted'
  FROM holdfast_record r WHERE r.namespace = 'key' AND {nothing is forgotten} AND NOT EXISTS (SELECT 1 FROM holdfast_event e WHERE e.subject = 'key/' || r.name)
