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
       CASE WHEN f.job IS NULL AND m.job IS NULL THEN coalesce(r.due_at, l.due_at, j.created_at) END,
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
       a.code, a.category, a.message, a.detail, CAST(a.context AS text), a.dependency, a.fingerprint, a.benign, j.run_at
  FROM page
  JOIN holdfast_job j ON j.id = page.id
  LEFT JOIN holdfast_ready r ON r.lane = j.lane AND r.priority = j.priority AND r.job = j.id
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
-- What people did to one job.
SELECT e.at, e.name, e.actor, e.reason, e.token, e.generation
  FROM holdfast_event e
 WHERE e.job = $1
 ORDER BY e.id

-- name: inspect ahead
-- Claimable jobs of the same queue that sort before this one, counted to a thousand: beyond that nobody counts on it.
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast_job j
          JOIN holdfast_lane n ON n.queue = j.queue
          JOIN holdfast_ready r ON r.lane = n.id
         WHERE j.id = $1 AND (r.priority, r.job) < (j.priority, j.id)
         LIMIT 1000) AS ahead

-- name: inspect holds
-- Holds whose time has not run out.
SELECT h.scope, h.name, h.since, h.until, h.actor, h.reason
  FROM holdfast_hold h
 WHERE h.until IS NULL OR h.until > $1
 ORDER BY h.scope, h.name

-- name: inspect workers
-- Workers whose last report is still to be believed.
SELECT w.name, w.queues, w.kinds, w.slots, w.started_at, w.seen_at, w.until
  FROM holdfast_worker w
 WHERE w.until > $1
 ORDER BY w.name

-- name: inspect counts
-- Each place is counted on its own: the narrow tables are scanned once, and a job's facts are looked up by key.
SELECT j.queue, j.kind, 'queued' AS state, true AS due, count(*), min(j.created_at)
  FROM holdfast_ready r JOIN holdfast_job j ON j.id = r.job
 GROUP BY j.queue, j.kind
UNION ALL
SELECT j.queue, j.kind, 'queued', false, count(*), min(j.created_at)
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
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
