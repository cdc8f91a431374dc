-- Statements that read jobs. They change nothing. Where a statement reads from "page", the inspector puts a common table of that name with the wanted ids in
-- front, so that one job and a list of jobs are read by the same text.

-- name: inspect_jobs
-- From the page to whole jobs, by primary keys only. Each place is joined separately, so that a damaged job that is in no place or in two is still shown.
SELECT j.id, j.kind, j.queue, CAST(j.args AS text), j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key,
       j.created_at, j.expire_at,
       CASE WHEN f.job IS NOT NULL THEN f.state
            WHEN m.job IS NOT NULL THEN 'processing'
            WHEN r.job IS NOT NULL OR l.job IS NOT NULL THEN 'queued' END,
       CASE WHEN f.job IS NULL AND m.job IS NULL THEN coalesce(r.due_at, {due}, j.created_at) END,
       coalesce(f.token, m.token, r.token, l.token),
       coalesce(f.failures, m.failures, r.failures, l.failures),
       coalesce(f.crashes, m.crashes, r.crashes, l.crashes),
       coalesce(f.releases, m.releases, r.releases, l.releases),
       coalesce(f.generation, m.generation, r.generation, l.generation),
       CASE WHEN f.job IS NOT NULL THEN f.worker ELSE m.worker END,
       CASE WHEN f.job IS NULL THEN m.expires_at END,
       CASE WHEN f.job IS NOT NULL THEN f.started_at WHEN m.started THEN m.claimed_at END,
       f.finished_at, CAST(f.result AS text), f.discarded_at,
       x.job, c.percent, c.note, c.noted_at,
       a.code, a.category, a.message, a.detail, CAST(a.context AS text), a.dependency, a.fingerprint, a.benign, j.run_at,
       coalesce(nullif(j.dependency, ''), (SELECT k.dependency FROM holdfast_kind k WHERE k.kind = j.kind)), j.retry_within,
       j.group_id, f.upstream, f.job IS NULL AND m.job IS NULL AND coalesce(l.hold = '', false), j.trace,
       s.name, coalesce(f.state = 'cancelled' AND f.benign = TRUE, false), q.key, coalesce(q.hold, false)
  FROM page
  {job of a page}
  LEFT JOIN holdfast_ready r ON {line of a job} AND r.priority = j.priority AND r.job = j.id
  LEFT JOIN holdfast_later l ON l.job = j.id
  LEFT JOIN holdfast_leased m ON m.job = j.id
  LEFT JOIN holdfast_finished f ON f.job = j.id
  LEFT JOIN holdfast_cancel x ON x.job = j.id
  LEFT JOIN holdfast_step s ON s.job = j.id
  LEFT JOIN holdfast_progress c ON c.job = j.id
  LEFT JOIN holdfast_order q ON q.job = j.id
  LEFT JOIN holdfast_attempt a ON a.job = j.id AND a.token = (
       SELECT max(b.token) FROM holdfast_attempt b
        WHERE b.job = j.id AND b.code IS NOT NULL AND b.generation = coalesce(f.generation, m.generation, r.generation, l.generation))
 ORDER BY j.id DESC

-- name: inspect_attempts
-- Every attempt that did not complete, in the order of its tokens: clocks may step back, tokens never do.
SELECT a.token, a.generation, a.worker, a.started_at, a.ended_at, a.to_state, a.charge, a.count, a.cap, a.due_at, a.why,
       a.code, a.category, a.message, a.detail, CAST(a.context AS text), a.dependency, a.fingerprint, a.benign, a.said,
       a.repeats, a.since
  FROM holdfast_attempt a
 WHERE a.job = $1
 ORDER BY a.token

-- name: inspect_late_results
-- Settlements that came too late, in the columns of inspect_attempts. Columns that the row does not have are empty.
SELECT t.token, 0, '', t.at - t.took, t.at, t.to_state, t.charge, 0, 0, NULL, t.why,
       t.code, t.category, t.message, t.detail, CAST(t.context AS text), t.dependency, t.fingerprint, t.benign, NULL, 0, NULL
  FROM holdfast_late_settlement t
 WHERE t.job = $1
 ORDER BY t.at, t.token

-- name: inspect_job_events
-- The events in the story of a job: actions of people, and of duties.
SELECT e.at, e.name, e.actor, e.reason, e.token, e.generation, e.request, CAST(e.was AS text)
  FROM holdfast_event e
 WHERE e.job = $1
 ORDER BY e.id

-- name: inspect_subject_events
-- The story of a subject that is not a job, newest first.
SELECT e.at, e.name, e.actor, e.reason, e.token, e.generation, e.request, CAST(e.was AS text)
  FROM holdfast_event e
 WHERE e.subject = $1
 ORDER BY e.id DESC
 LIMIT $2

-- name: inspect_ahead
-- Ready jobs of the same queue that sort before this one, of whatever owner, counted up to a thousand.
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast_job j
          JOIN holdfast_lane n ON n.queue = j.queue
          JOIN holdfast_ready r ON {lines of a lane}
         WHERE j.id = $1 AND (r.priority, r.job) < (j.priority, j.id)
         LIMIT 1000) AS ahead

-- name: inspect_holds
-- Holds that have not expired.
SELECT h.scope, h.name, h.source, h.retries, h.at_most, h.per_second, h.burst, h.level, h.level_at, h.since, h.until, h.expected, h.actor, h.reason
  FROM holdfast_hold h
 WHERE h.until IS NULL OR h.until > $1

-- name: inspect_records
-- A namespace is read whole: it has as many records as there are breakers, budgets, or owners with a weight.
SELECT c.name, c.version, CAST(c.body AS text), c.kept_at
  FROM holdfast_record c
 WHERE c.namespace = $1

-- name: inspect_workers
-- Workers whose last report is still valid.
SELECT w.name, w.queues, w.kinds, w.slots, w.started_at, w.seen_at, w.until, w.version, w.codes, w.policy, w.misses
  FROM holdfast_worker w
 WHERE w.until > $1
 ORDER BY w.name

-- name: inspect_kinds
-- The dependencies of kinds. There are as few rows as kinds.
SELECT k.kind, k.dependency FROM holdfast_kind k

-- name: inspect_counts
-- Each place is counted separately: the narrow tables are scanned once, and the facts of a job are looked up by key. A job that was set aside behind a hold is
-- due; a job that waits for members of its group is not.
WITH member AS MATERIALIZED (SELECT job FROM holdfast_leased)
SELECT j.queue, j.kind, 'queued' AS state, true AS due, count(*), min(j.created_at)
  FROM (SELECT r.job FROM holdfast_ready r UNION ALL SELECT l.job FROM holdfast_later l WHERE l.hold <> '') AS q JOIN holdfast_job j ON j.id = q.job
 GROUP BY j.queue, j.kind
UNION ALL
SELECT j.queue, j.kind, 'queued', false, count(*), min(j.created_at)
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
 WHERE l.hold IS NULL OR l.hold = ''
 GROUP BY j.queue, j.kind
UNION ALL
SELECT j.queue, j.kind, 'processing', false, count(*), min(j.created_at)
  FROM member m JOIN holdfast_job j ON j.id = m.job
 GROUP BY j.queue, j.kind
UNION ALL
SELECT j.queue, j.kind, f.state, false, count(*), min(j.created_at)
  FROM holdfast_finished f JOIN holdfast_job j ON j.id = f.job
 GROUP BY j.queue, j.kind, f.state
 ORDER BY 1, 2, 3, 4

-- name: inspect_trends
-- The results of attempts within a time, over all shards. Both bounds are given, so that the planner reads by the key whatever it knows of the table's size.
SELECT {step of a trend}, t.queue, CAST(sum(t.complete) AS bigint), CAST(sum(t.failed) AS bigint), CAST(sum(t.retried) AS bigint), CAST(sum(t.cancelled) AS bigint)
  FROM holdfast_trend t
 WHERE t.step BETWEEN $1 AND $3
 GROUP BY 1, 2

-- name: inspect_newest_job
-- Ids are ordered by the time they were made, so the last one is the newest job, or nearly.
SELECT j.id, j.created_at FROM holdfast_job j ORDER BY j.id DESC LIMIT 1

-- name: inspect_first_attempts
-- How many jobs made a first attempt, and how many completed by it. A job that completed without a charge did; every other job that was tried has a charged
-- attempt. Both bounds are given for every table, so that each is read by its key whatever the planner knows of its size.
SELECT t.kind, CAST(sum(t.jobs) AS bigint), CAST(sum(t.complete) AS bigint)
  FROM (SELECT j.kind, count(*) AS jobs, count(*) AS complete
          FROM holdfast_finished f JOIN holdfast_job j ON j.id = f.job
         WHERE f.job BETWEEN $1 AND $2 AND j.id BETWEEN $1 AND $2 AND j.created_at > $3
           AND f.state = 'complete' AND f.failures = 0 AND f.crashes = 0 AND f.generation = 1
         GROUP BY j.kind
        UNION ALL
        SELECT j.kind, count(DISTINCT a.job), 0
          FROM holdfast_attempt a JOIN holdfast_job j ON j.id = a.job
         WHERE a.job BETWEEN $1 AND $2 AND j.id BETWEEN $1 AND $2 AND j.created_at > $3 AND a.charge IN ('failure', 'crash')
         GROUP BY j.kind) AS t
 GROUP BY t.kind

-- name: inspect_retry_stats
-- The results of failed attempts, by kind, code and number. The next attempt is looked for within the generation. A released attempt is skipped, and a failure
-- without a charge (an expiry) is an end without another attempt.
SELECT t.kind, t.code, t.number, count(*),
       sum(CASE WHEN t.next IS NULL AND t.to_state = 'queued' AND f.state = 'complete' AND f.generation = t.generation THEN 1 ELSE 0 END),
       sum(CASE WHEN t.next = 'tried' THEN 1 ELSE 0 END),
       sum(CASE WHEN t.to_state = 'failed' OR t.next = 'ended' THEN 1 ELSE 0 END),
       CAST(sum(t.took) AS bigint),
       CAST(sum(CASE WHEN f.state = 'failed' THEN t.took ELSE 0 END) AS bigint)
  FROM (SELECT j.kind, a.job, a.generation, a.code, a.charge, a.count AS number, a.to_state, {took} AS took,
               CASE WHEN lead(a.generation) OVER told = a.generation
                    THEN CASE WHEN lead(a.charge) OVER told IN ('failure', 'crash') THEN 'tried' ELSE 'ended' END END AS next
          FROM holdfast_attempt a JOIN holdfast_job j ON j.id = a.job
         WHERE a.job BETWEEN $1 AND $2 AND j.id BETWEEN $1 AND $2 AND j.created_at > $3 AND (a.charge IN ('failure', 'crash') OR a.to_state = 'failed')
        WINDOW told AS (PARTITION BY a.job ORDER BY a.token)) AS t
  LEFT JOIN holdfast_finished f ON f.job = t.job AND f.job BETWEEN $1 AND $2
 WHERE t.charge IN ('failure', 'crash')
 GROUP BY t.kind, t.code, t.number

-- name: inspect_segments
-- The lines and priorities that have ready jobs, from one line to the next and within it from one priority to the next, with the oldest job of each. The jobs
-- behind it are not read.
WITH RECURSIVE line (number, lane) AS (
    SELECT 1, (SELECT min(r.lane) FROM holdfast_ready r WHERE r.lane > -2147483647)
    UNION ALL
    SELECT l.number + 1, (SELECT min(r.lane) FROM holdfast_ready r WHERE r.lane > l.lane) FROM line l WHERE l.lane IS NOT NULL AND l.number < $1),
{segments} FROM line l WHERE l.lane IS NOT NULL {next segments}
SELECT s.lane, s.priority, (SELECT n.queue FROM holdfast_lane n WHERE n.id = abs(s.lane)),
       (SELECT j.created_at FROM holdfast_job j WHERE j.id = (
               SELECT r.job FROM holdfast_ready r WHERE r.lane = s.lane AND r.priority = s.priority ORDER BY r.job LIMIT 1)),
       (SELECT n.kind FROM holdfast_lane n WHERE n.id = abs(s.lane))
  FROM segment s WHERE s.priority IS NOT NULL LIMIT $1

-- part: segments
-- The first priority of each line.
segment (lane, priority) AS (SELECT l.lane, (SELECT min(r.priority) FROM holdfast_ready r WHERE r.lane = l.lane)

-- part: next segments
-- The next priorities of each line.
    UNION ALL
    SELECT s.lane, (SELECT min(r.priority) FROM holdfast_ready r WHERE r.lane = s.lane AND r.priority > s.priority) FROM segment s WHERE s.priority IS NOT NULL)

-- name: inspect_segments_of_lines
-- The same for some lines.
WITH RECURSIVE {segments} FROM {lines} AS l {next segments}
SELECT s.lane, s.priority FROM segment s WHERE s.priority IS NOT NULL LIMIT $1

-- name: inspect_queues
-- The names of queues that ever had a job, from one to the next by key.
WITH RECURSIVE known (name) AS (
    SELECT min(n.queue) FROM holdfast_lane n WHERE n.queue >= ''
    UNION ALL
    SELECT (SELECT min(n.queue) FROM holdfast_lane n WHERE n.queue > k.name) FROM known k WHERE k.name IS NOT NULL)
SELECT k.name FROM known k WHERE k.name IS NOT NULL LIMIT $1

-- name: inspect_line_counts
-- How many jobs are ready in lines that belong together, up to a number.
SELECT v.number, (SELECT count(*) FROM (SELECT 1 FROM {lines of a number} LIMIT $2) AS counted) FROM {numbered lines} AS v

-- name: inspect_depths
-- Jobs that are not in ready, by queue: a limited number of rows of each place, with the facts of these by key. A job that was set aside behind a hold counts
-- as ready. The bounds exclude nothing: they make the planner read by the key, whatever it knows of table sizes.
SELECT 'later', CASE WHEN l.hold <> '' THEN 'ready' WHEN l.hold IS NULL AND l.failures > 0 THEN 'retrying' ELSE 'later' END, j.queue,
       count(*), min(CASE WHEN l.hold <> '' THEN j.created_at WHEN l.hold IS NULL THEN l.due_at END)
  FROM (SELECT w.* FROM holdfast_later w WHERE w.due_at BETWEEN $2 AND $3 ORDER BY w.due_at, w.job LIMIT $1) AS l {facts of a row}
 GROUP BY 2, 3
UNION ALL
SELECT 'leased', 'processing', j.queue, count(*), NULL FROM (SELECT m.job FROM holdfast_leased m LIMIT $1) AS l {facts of a row} GROUP BY j.queue
UNION ALL
SELECT 'dead', 'dead', j.queue, count(*), NULL
  FROM (SELECT f.job FROM holdfast_finished f WHERE f.state = 'failed' AND f.discarded_at IS NULL AND f.job BETWEEN $4 AND $5 ORDER BY f.job DESC LIMIT $1) AS l {facts of a row}
 GROUP BY j.queue

-- name: inspect_error_trends
-- When the failures of error groups happened, in steps.
SELECT t.fingerprint, {step of a trend}, CAST(sum(t.failures) AS bigint)
  FROM {names} AS v {counts of a name}
 GROUP BY 1, 2

-- name: inspect_error_hours
-- The same, with where they happened.
SELECT t.fingerprint, {step of a trend}, t.kind, t.queue, t.dependency, t.version, CAST(sum(t.failures) AS bigint)
  FROM {names} AS v {counts of a name}
 GROUP BY 1, 2, 3, 4, 5, 6

-- name: inspect_error_outcomes
-- For each error group its dead letters, up to a number (found by fingerprint: the order makes the planner use that index), and the states of the jobs of its
-- newest failures.
SELECT g.fingerprint,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast_finished f
                               WHERE f.state = 'failed' AND f.fingerprint BETWEEN g.fingerprint AND g.fingerprint AND f.discarded_at IS NULL
                               ORDER BY f.fingerprint, f.job LIMIT $2) AS d),
       (SELECT string_agg(coalesce((SELECT f.state FROM holdfast_finished f WHERE f.job = m.job), 'live'), ' ')
          FROM (SELECT DISTINCT n.job
                  FROM (SELECT a.job FROM holdfast_attempt a WHERE a.fingerprint = g.fingerprint ORDER BY a.ended_at DESC LIMIT $3) AS n) AS m),
       g.first_seen
  FROM holdfast_error_group g
 WHERE g.fingerprint IN (SELECT v.name FROM {names} AS v)

-- name: inspect_failed_codes
-- The codes of failed jobs, from one to the next by key.
WITH RECURSIVE segment (code) AS (
    SELECT min(f.code) FROM holdfast_finished f WHERE f.state = 'failed' AND f.code >= ''
    UNION ALL
    SELECT (SELECT min(f.code) FROM holdfast_finished f WHERE f.state = 'failed' AND f.code > s.code) FROM segment s WHERE s.code IS NOT NULL)
SELECT s.code FROM segment s WHERE s.code IS NOT NULL LIMIT $1
