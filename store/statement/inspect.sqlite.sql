-- What the questions of inspect.sql need in SQLite's own words.

-- part: due
-- When a waiting job was due: one that was set aside behind a hold says it a thousand years late.
CASE WHEN l.hold IS NULL THEN l.due_at ELSE l.due_at - 31557600000000000 END

-- part: line of a job
-- A job that is ready waits in one of its lane's two lines.
r.lane IN (j.lane, -j.lane)

-- part: lines of a lane
-- First attempts and retries.
r.lane IN (n.id, -n.id)

-- part: took
-- How long an attempt took, in microseconds.
a.ended_at - a.started_at
