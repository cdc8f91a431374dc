-- Parts of inspect.sql that differ on PostgreSQL.

-- name: configure_planner_inspect
-- A query is faster than its compilation, so jit is off. Most queries read the first rows by a key: a bitmap scan finds all rows before it returns
-- one, which the planner takes for cheap in a table that was never analyzed, and a sequential scan is no alternative. The settings end with the
-- transaction.
SELECT set_config('jit', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)

-- name: configure_planner_whole
-- For queries that read whole tables, such as an integrity check: jit is off. Nested loops are off because the planner believes statistics from when a
-- table was nearly empty: after a redrive of 50,000 jobs it compared each of them with each of their events. A hash or merge join costs little more where
-- there are few rows, and its time does not grow with the square. The settings end with the transaction.
SELECT set_config('jit', 'off', true), set_config('enable_nestloop', 'off', true)

-- part: due
-- When a queued job is due. If it has a hold, a thousand years were added to its due_at.
CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - interval '8766000 hours' END

-- part: line of a job
-- A ready job is in one of the two lines of its lane. As an array, because with IN the planner finds the line and reads all of it.
r.lane = ANY (ARRAY[j.lane, -j.lane])

-- part: lines of a lane
-- The lines for first attempts and for retries. As an array for the same reason.
r.lane = ANY (ARRAY[n.id, -n.id])

-- part: took
-- The duration of an attempt in microseconds.
CAST(extract(epoch FROM a.ended_at - a.started_at) * 1000000 AS bigint)

-- part: step of a trend
-- The step of a trend that a minute belongs to. Steps are given in microseconds and counted from 1970.
date_bin($2::bigint * interval '1 microsecond', t.step, timestamptz 'epoch')

-- part: facts of a row
-- Read by key, whatever the statistics say.
CROSS JOIN LATERAL (SELECT k.queue, k.created_at FROM holdfast_job k WHERE k.id = l.job LIMIT 1) AS j

-- part: numbered lines
-- From a JSON list: a number and the lines that belong to it.
(SELECT CAST(w.value ->> 0 AS integer) AS number, w.value -> 1 AS lines FROM json_array_elements(CAST(CAST($1 AS text) AS json)) AS w)

-- part: lines of a number
-- Reads each line by key.
json_array_elements_text(v.lines) AS w CROSS JOIN LATERAL (SELECT 1 FROM holdfast_ready r WHERE r.lane = CAST(w.value AS integer) ORDER BY r.priority, r.job LIMIT $2) AS n

-- part: names
-- From a JSON list.
(SELECT w.value AS name FROM json_array_elements_text(CAST(CAST($1 AS text) AS json)) AS w)

-- part: lines
-- From a JSON list.
(SELECT CAST(w.value AS integer) AS lane FROM json_array_elements_text(CAST(CAST($2 AS text) AS json)) AS w)

-- part: job of a page
JOIN holdfast_job j ON j.id = page.id

-- part: waits of a page
-- From the page to the waits of each job. As a join the planner may read all waits in their order.
CROSS JOIN LATERAL (SELECT a.* FROM holdfast_after a WHERE a.job = page.id AND a.upstream <> a.job OFFSET 0) AS w

-- part: counts of a name
CROSS JOIN LATERAL (SELECT y.* FROM holdfast_error_count y WHERE y.fingerprint = v.name AND y.step BETWEEN $3 AND $4 OFFSET 0) AS t
