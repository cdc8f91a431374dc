-- Questions about jobs. They read and change nothing. Where a text below starts from "page", the inspector puts a common
-- table of that name with the wanted ids in front, so that one job and a list of jobs are read by the same words.

-- name: inspect jobs
-- From the page to whole jobs by primary keys only. Each place is asked on its own, so that a damaged job which stands in
-- no place or in two is still shown.
SELECT j.id, j.kind, j.queue, CAST(j.args AS text), j.priority, j.owner, j.tags, j.max_attempts, j.unique_key, j.idempotency_key,
       j.created_at, j.expire_at,
       CASE WHEN f.job IS NOT NULL THEN f.state
            WHEN m.job IS NOT NULL THEN 'processing'
            WHEN r.job IS NOT NULL OR l.job IS NOT NULL THEN 'queued' END,
       CASE WHEN f.job IS NULL AND m.job IS NULL THEN coalesce(r.due_at, {due}, j.created_at) END,
       coalesce(f.token, m.token, r.token, l.token),
       coalesce(f.failures, m.failures, r.failures, l.failures),
       coalesce(f.crashes, m.crashes, r.crashes, l.crashes),
       coalesce(f.interrupts, m.interrupts, r.interrupts, l.interrupts),
       coalesce(f.generation, m.generation, r.generation, l.generation),
       CASE WHEN f.job IS NOT NULL THEN f.worker ELSE m.worker END,
       CASE WHEN f.job IS NULL THEN m.expires_at END,
       CASE WHEN f.job IS NOT NULL THEN f.started_at WHEN m.started THEN m.claimed_at END,
       f.finished_at, CAST(f.result AS text), f.discarded_at,
       x.job, c.percent, c.note, c.noted_at,
       a.code, a.category, a.message, a.detail, CAST(a.context AS text), a.dependency, a.fingerprint, a.benign, j.run_at,
       coalesce(nullif(j.dependency, ''), (SELECT k.dependency FROM holdfast_kind k WHERE k.kind = j.kind)), j.retry_within,
       j.group_id, f.upstream, f.job IS NULL AND m.job IS NULL AND coalesce(l.hold = '', false), j.trace
  FROM page
  JOIN holdfast_job j ON j.id = page.id
  LEFT JOIN holdfast_ready r ON {line of a job} AND r.priority = j.priority AND r.job = j.id
  LEFT JOIN holdfast_later l ON l.job = j.id
  LEFT JOIN holdfast_leased m ON m.job = j.id
  LEFT JOIN holdfast_finished f ON f.job = j.id
  LEFT JOIN holdfast_cancel x ON x.job = j.id
  LEFT JOIN holdfast_carry c ON c.job = j.id
  LEFT JOIN holdfast_attempt a ON a.job = j.id AND a.token = (
       SELECT max(b.token) FROM holdfast_attempt b
        WHERE b.job = j.id AND b.code IS NOT NULL AND b.generation = coalesce(f.generation, m.generation, r.generation, l.generation))
 ORDER BY j.id DESC

-- name: inspect attempts
-- Every attempt that ended other than by completing, in the order of its tokens: clocks may step back, tokens never do.
SELECT a.token, a.generation, a.worker, a.started_at, a.ended_at, a.to_state, a.charge, a.count, a.cap, a.due_at, a.why,
       a.code, a.category, a.message, a.detail, CAST(a.context AS text), a.dependency, a.fingerprint, a.benign, a.said
  FROM holdfast_attempt a
 WHERE a.job = $1
 ORDER BY a.token

-- name: inspect late
-- What arrived too late. It has the shape of an attempt; what its row does not know is left empty.
SELECT t.token, 0, '', t.at - t.took, t.at, t.to_state, t.charge, 0, 0, NULL, t.why,
       t.code, t.category, t.message, t.detail, CAST(t.context AS text), t.dependency, t.fingerprint, t.benign
  FROM holdfast_late t
 WHERE t.job = $1
 ORDER BY t.at, t.token

-- name: inspect events
-- What people did to one job, and what time did.
SELECT e.at, e.name, e.actor, e.reason, e.token, e.generation, e.request
  FROM holdfast_event e
 WHERE e.job = $1
 ORDER BY e.id

-- name: inspect story
-- The story of a subject that is no job, the newest first.
SELECT e.at, e.name, e.actor, e.reason, e.token, e.generation, e.request
  FROM holdfast_event e
 WHERE e.subject = $1
 ORDER BY e.id DESC
 LIMIT $2

-- name: inspect ahead
-- Claimable jobs of the same queue that sort before this one, of whatever owner, counted to a thousand: beyond that nobody
-- counts on it.
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast_job j
          JOIN holdfast_lane n ON n.queue = j.queue
          JOIN holdfast_ready r ON {lines of a lane}
         WHERE j.id = $1 AND (r.priority, r.job) < (j.priority, j.id)
         LIMIT 1000) AS ahead

-- name: inspect holds
-- Holds whose time has not run out.
SELECT h.scope, h.name, h.source, h.retries, h.at_most, h.per_second, h.burst, h.level, h.level_at, h.since, h.until, h.expected, h.actor, h.reason
  FROM holdfast_hold h
 WHERE h.until IS NULL OR h.until > $1

-- name: inspect records
-- A room is read whole: it has as many records as there are breakers, budgets or owners with a share of their own.
SELECT c.name, c.version, CAST(c.body AS text), c.kept_at
  FROM holdfast_record c
 WHERE c.room = $1

-- name: inspect workers
-- Workers whose last report is still to be believed.
SELECT w.name, w.queues, w.kinds, w.slots, w.started_at, w.seen_at, w.until, w.version
  FROM holdfast_worker w
 WHERE w.until > $1
 ORDER BY w.name

-- name: inspect kinds
-- What kinds were declared to call. There are as few rows as kinds.
SELECT k.kind, k.dependency FROM holdfast_kind k

-- name: inspect counts
-- Each place is counted on its own: the narrow tables are scanned once, and a job's facts are looked up by key. What was set
-- aside behind a hold is due; what waits for members of its group is not.
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
  FROM holdfast_leased m JOIN holdfast_job j ON j.id = m.job
 GROUP BY j.queue, j.kind
UNION ALL
SELECT j.queue, j.kind, f.state, false, count(*), min(j.created_at)
  FROM holdfast_finished f JOIN holdfast_job j ON j.id = f.job
 GROUP BY j.queue, j.kind, f.state
 ORDER BY 1, 2, 3, 4

-- name: inspect newest
-- Ids are ordered by the time they were made, so the last one is the newest job, or nearly.
SELECT j.id, j.created_at FROM holdfast_job j ORDER BY j.id DESC LIMIT 1

-- name: inspect first attempts
-- How many jobs made a first attempt, and how many completed by it. A job that completed without a charge did; every other that
-- tried has an attempt that was charged. The bounds are said of every table, and both of them, so that each is read by its key
-- whatever is known of its size.
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

-- name: inspect experience
-- What became of failed attempts, by kind, code and number. What comes next is looked for within the generation; an attempt that
-- was handed back for free is passed over, and a failure without a charge (an expiry) is an end without another attempt.
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
