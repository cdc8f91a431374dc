-- name: order_add
-- A new job goes to the end of its line.
INSERT INTO holdfast_order (job, owner, key, seq, hold, live)
SELECT $1, $2, $3, coalesce((SELECT max(o.seq) FROM holdfast_order o WHERE o.owner = $2 AND o.key = $3 AND o.live = 1), 0) + 1, $4, 1

-- name: order_find
-- The line of a job, and whether the job is in it.
SELECT owner, key, hold, live FROM holdfast_order WHERE job = $1

-- name: order_leave
-- The job has left its line.
UPDATE holdfast_order SET live = 0, held = 0 WHERE job = $1

-- name: order_hold
-- The job is a dead letter, which keeps the others of its line waiting, or is retried.
UPDATE holdfast_order SET held = $2 WHERE job = $1 AND held <> $2

-- name: order_return
-- A job that had left its line goes to its end.
UPDATE holdfast_order SET live = 1, seq = 1 + coalesce((SELECT max(o.seq) FROM holdfast_order o WHERE o.owner = holdfast_order.owner AND o.key = holdfast_order.key AND o.live = 1), 0)
 WHERE job = $1 AND live = 0

-- name: order_head
-- The first job of a line, and what is known of it: whether it waits, has ended without holding the line, or is gone.
SELECT o.job, coalesce(l.hold = '', 0), j.id IS NULL OR f.job IS NOT NULL AND NOT (o.hold = 1 AND f.state = 'failed' AND f.discarded_at IS NULL)
  FROM holdfast_order o
  LEFT JOIN holdfast_job j ON j.id = o.job
  LEFT JOIN holdfast_later l ON l.job = o.job
  LEFT JOIN holdfast_finished f ON f.job = o.job
 WHERE o.owner = $1 AND o.key = $2 AND o.live = 1 ORDER BY o.seq LIMIT 1

-- name: order_next_line
-- The line after a position.
SELECT owner, key FROM holdfast_order WHERE live = 1 AND (owner, key) > ($1, $2) ORDER BY owner, key LIMIT 1

-- name: find_waiting
-- How a job waits for others, and its own due time.
SELECT l.token, l.failures, l.crashes, l.releases, l.generation, l.due_at - 31557600000000000, j.created_at
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job WHERE l.job = $1 AND l.hold = ''

-- name: inspect_held_lines
-- The lines that dead letters hold, the oldest job first, and how many jobs wait in each, up to a thousand. The lowest id makes a search by the key of it.
SELECT o.owner, o.key, o.job, j.kind, j.queue, coalesce(f.code, ''), f.finished_at,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast_order w WHERE w.owner = o.owner AND w.key = o.key AND w.live = 1 AND w.seq > o.seq LIMIT 1000) AS behind)
  FROM holdfast_order o CROSS JOIN holdfast_finished f ON f.job = o.job CROSS JOIN holdfast_job j ON j.id = o.job
 WHERE o.job > $2 AND o.held = 1 AND o.live = 1 AND f.state = 'failed' AND f.discarded_at IS NULL
 ORDER BY o.job LIMIT $1

-- name: inspect_line
-- The first job of the line in which a job waits.
SELECT a.job FROM holdfast_order o JOIN holdfast_order a ON a.owner = o.owner AND a.key = o.key AND a.live = 1 AND a.seq < o.seq
 WHERE o.job = $1 AND o.live = 1 ORDER BY a.seq LIMIT 1
