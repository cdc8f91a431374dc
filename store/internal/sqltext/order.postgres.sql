-- part: order lock
5721944081400000 + (hashtextextended(o.owner || chr(1) || o.key, 0) & 4095)

-- name: order_lock
-- Enqueues into one line take turns, so that seq is the order of their commits. All take the locks in one order. Other operations only try the lock. Lines share 4096 locks, because
-- the server's table of locks is small: an enqueue into ten thousand lines would fill it.
SELECT pg_advisory_xact_lock(l.number)
  FROM (SELECT DISTINCT {order lock} AS number FROM unnest($1::text[], $2::text[]) AS o (owner, key) ORDER BY number) AS l

-- name: order_add
-- New jobs go to the ends of their lines, in the order of the call.
INSERT INTO holdfast_order (job, owner, key, hold, live)
SELECT d.job, d.owner, d.key, d.hold, true
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::boolean[]) WITH ORDINALITY AS d (job, owner, key, hold, n) ORDER BY d.n

-- name: order_leave
-- Jobs that have left their lines.
UPDATE holdfast_order SET live = false, held = false WHERE job = ANY ($1::uuid[]) AND live

-- name: order_hold
-- Dead letters, which keep the others of their lines waiting.
UPDATE holdfast_order SET held = true WHERE job = ANY ($1::uuid[]) AND live

-- name: order_return
-- Jobs that had left their lines go to the ends of them. Dead letters that held their lines are still in them.
WITH released AS (UPDATE holdfast_order SET held = false WHERE job = ANY ($1::uuid[]) AND held AND live)
UPDATE holdfast_order SET live = true, seq = DEFAULT WHERE job = ANY ($1::uuid[]) AND NOT live

-- name: order_advance
-- Starts the first job of each line of these jobs if it waits, and removes jobs from the lines that have ended before it. A line that another transaction is
-- changing is left out; AdvanceGroups looks at it later. A job that is due, or that never had a due time of its own, becomes claimable; another waits for its time.
-- No two of these lists are joined with each other: the planner expects few rows in each and would compare all with all.
WITH line AS MATERIALIZED (
    SELECT o.owner, o.key FROM (SELECT DISTINCT o.owner, o.key FROM holdfast_order o WHERE o.job = ANY ($1::uuid[])) AS o WHERE pg_try_advisory_xact_lock({order lock})
), head AS MATERIALIZED (
    SELECT l.owner, l.key, h.job, coalesce(h.seq, 9223372036854775807) AS seq FROM line l LEFT JOIN LATERAL (
        SELECT o.job, o.seq FROM holdfast_order o JOIN holdfast_job j ON j.id = o.job LEFT JOIN holdfast_finished f ON f.job = o.job
         WHERE o.live AND o.owner = l.owner AND o.key = l.key AND (f.job IS NULL OR o.hold AND f.state = 'failed' AND f.discarded_at IS NULL)
         ORDER BY o.owner, o.key, o.seq LIMIT 1) AS h ON true
), ended AS (
    UPDATE holdfast_order o SET live = false, held = false FROM head h WHERE o.live AND o.owner = h.owner AND o.key = h.key AND o.seq < h.seq
), waiting AS MATERIALIZED (
    SELECT w.ctid AS place, w.due_at - interval '8766000 hours' AS due_at, w.job FROM head h JOIN holdfast_later w ON w.job = h.job
     WHERE w.hold IS NOT DISTINCT FROM '' FOR UPDATE OF w SKIP LOCKED
), free AS MATERIALIZED (
    SELECT w.place, w.due_at <= c.now OR w.due_at = j.created_at AS due
      FROM (SELECT holdfast_now() AS now OFFSET 0) AS c CROSS JOIN waiting w JOIN holdfast_job j ON j.id = w.job
), gone AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM free WHERE due))
    RETURNING job, due_at - interval '8766000 hours' AS due_at, token, failures, crashes, releases, generation
), rest AS (
    UPDATE holdfast_later SET due_at = due_at - interval '8766000 hours', hold = NULL WHERE ctid = ANY (ARRAY (SELECT place FROM free WHERE NOT due))
), start AS (
    INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
    SELECT CASE WHEN g.failures > 0 THEN -j.lane ELSE j.lane END, j.priority, g.job, g.token, g.failures, g.crashes, g.releases, g.generation,
           CASE WHEN g.due_at <> j.created_at THEN g.due_at END
      FROM gone g JOIN holdfast_job j ON j.id = g.job
    RETURNING job, lane, priority
)
SELECT j.queue, s.lane, s.priority, s.job::text FROM start s JOIN holdfast_job j ON j.id = s.job

-- name: order_find_stuck
-- Of the lines after a position, up to a number: those whose first job waits, or has ended without holding the line, or is gone; and the last one.
WITH RECURSIVE line AS (
    (SELECT o.owner, o.key, o.job, o.hold, 1 AS n FROM holdfast_order o WHERE o.live AND (o.owner, o.key) > ($1::text, $2::text) ORDER BY o.owner, o.key, o.seq LIMIT 1)
    UNION ALL
    SELECT x.owner, x.key, x.job, x.hold, l.n + 1 FROM line l CROSS JOIN LATERAL (
        SELECT o.owner, o.key, o.job, o.hold FROM holdfast_order o WHERE o.live AND (o.owner, o.key) > (l.owner, l.key) ORDER BY o.owner, o.key, o.seq LIMIT 1) AS x
     WHERE l.n < $3::integer
), seen AS (
    SELECT l.*, coalesce(w.hold = '', false) OR j.id IS NULL OR f.job IS NOT NULL AND NOT (l.hold AND f.state = 'failed' AND f.discarded_at IS NULL) AS stuck
      FROM line l LEFT JOIN holdfast_job j ON j.id = l.job LEFT JOIN holdfast_later w ON w.job = l.job LEFT JOIN holdfast_finished f ON f.job = l.job
)
SELECT s.owner, s.key, s.job::text, s.stuck, s.n FROM seen s WHERE s.stuck OR s.n = $3::integer ORDER BY s.n

-- name: inspect_held_lines
-- The lines that dead letters hold, the oldest job first, and how many jobs wait in each, up to a thousand. The lowest id makes a search by the key of it.
-- The planner knows nothing of a new table: without the lateral joins it may begin with all dead letters.
SELECT o.owner, o.key, o.job, j.kind, j.queue, coalesce(f.code, ''), f.finished_at,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast_order w WHERE w.owner = o.owner AND w.key = o.key AND w.live AND w.seq > o.seq LIMIT 1000) AS behind)
  FROM holdfast_order o
 CROSS JOIN LATERAL (SELECT f.code, f.finished_at FROM holdfast_finished f WHERE f.job = o.job AND f.state = 'failed' AND f.discarded_at IS NULL OFFSET 0) AS f
 CROSS JOIN LATERAL (SELECT j.kind, j.queue FROM holdfast_job j WHERE j.id = o.job OFFSET 0) AS j
 WHERE o.job > $2 AND o.held AND o.live
 ORDER BY o.job LIMIT $1

-- name: inspect_line
-- The first job of the line in which a job waits.
SELECT a.job FROM holdfast_order o JOIN holdfast_order a ON a.owner = o.owner AND a.key = o.key AND a.live AND a.seq < o.seq
 WHERE o.job = $1 AND o.live ORDER BY a.seq LIMIT 1
