-- What the questions of inspect.sql need in PostgreSQL's own words.

-- name: configure_planner_inspect
-- A question is answered sooner than it would be compiled. And most ask for the first rows by a key: a bitmap finds all of them before it gives one,
-- which the planner believes to be cheap as long as nobody counted the rows; and a scan of the table is no way out. The settings end with the transaction.
SELECT set_config('jit', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)

-- name: configure_planner_whole
-- A question that reads whole tables, such as an audit, is compiled no more than others, and otherwise planned as PostgreSQL likes best. The setting ends with the transaction.
SELECT set_config('jit', 'off', true)

-- part: due
-- When a waiting job was due: one that was set aside behind a hold says it a thousand years late.
CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - interval '8766000 hours' END

-- part: line of a job
-- A job that is ready waits in one of its lane's two lines. As an array, because IN would find the line and read all of it.
r.lane = ANY (ARRAY[j.lane, -j.lane])

-- part: lines of a lane
-- First attempts and retries, as an array for the same reason.
r.lane = ANY (ARRAY[n.id, -n.id])

-- part: took
-- How long an attempt took, in microseconds.
CAST(extract(epoch FROM a.ended_at - a.started_at) * 1000000 AS bigint)

-- part: step of a trend
-- The step that a minute belongs to. Steps have so many microseconds and are counted from 1970.
date_bin($2::bigint * interval '1 microsecond', t.step, timestamptz 'epoch')

-- part: facts of a row
-- By key, whatever is known of the tables' sizes.
CROSS JOIN LATERAL (SELECT k.queue, k.created_at FROM holdfast_job k WHERE k.id = l.job LIMIT 1) AS j

-- part: numbered lines
-- Of a JSON list: a number and the lines that belong to it.
(SELECT CAST(w.value ->> 0 AS integer) AS number, w.value -> 1 AS lines FROM json_array_elements(CAST(CAST($1 AS text) AS json)) AS w)

-- part: lines of a number
-- From line to line by key.
json_array_elements_text(v.lines) AS w CROSS JOIN LATERAL (SELECT 1 FROM holdfast_ready r WHERE r.lane = CAST(w.value AS integer) ORDER BY r.priority, r.job LIMIT $2) AS n

-- part: names
-- Of a JSON list.
(SELECT w.value AS name FROM json_array_elements_text(CAST(CAST($1 AS text) AS json)) AS w)

-- part: lines
-- Of a JSON list.
(SELECT CAST(w.value AS integer) AS lane FROM json_array_elements_text(CAST(CAST($2 AS text) AS json)) AS w)

-- part: job of a page
JOIN holdfast_job j ON j.id = page.id

-- part: tallies of a name
CROSS JOIN LATERAL (SELECT y.* FROM holdfast_error_tally y WHERE y.fingerprint = v.name AND y.step BETWEEN $3 AND $4 OFFSET 0) AS t
