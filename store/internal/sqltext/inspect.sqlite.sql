-- The parts of inspect.sql that are specific to SQLite.

-- part: due
-- When a queued job is due. A job that was set aside behind a hold has a due time a thousand years later.
CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - 31557600000000000 END

-- part: line of a job
-- A ready job waits in one of the two lines of its lane.
r.lane IN (j.lane, -j.lane)

-- part: lines of a lane
-- First attempts and retries.
r.lane IN (n.id, -n.id)

-- part: took
-- The duration of an attempt, in microseconds.
a.ended_at - a.started_at

-- part: step of a trend
-- The step that contains a minute. Steps are counted from 1970.
t.step - t.step % $2

-- part: facts of a row
-- By key, whatever the planner knows of table sizes.
CROSS JOIN holdfast_job j ON j.id = l.job

-- part: numbered lines
-- From a JSON list of pairs: a number and the lines that belong to it.
(SELECT w.value ->> 0 AS number, w.value -> 1 AS lines FROM json_each($1) AS w)

-- part: lines of a number
json_each(v.lines) AS w CROSS JOIN holdfast_ready r ON r.lane = w.value

-- part: names
-- From a JSON list.
(SELECT w.value AS name FROM json_each($1) AS w)

-- part: lines
-- From a JSON list.
(SELECT w.value AS lane FROM json_each($2) AS w)

-- part: job of a page
-- From the page to the jobs, whatever the planner knows of table sizes.
CROSS JOIN holdfast_job j ON j.id = page.id

-- part: waits of a page
-- The same for what the jobs wait for.
CROSS JOIN holdfast_after w ON w.job = page.id AND w.upstream <> w.job

-- part: counts of a name
CROSS JOIN holdfast_error_count t ON t.fingerprint = v.name AND t.step BETWEEN $3 AND $4
