-- What the questions of inspect.sql need in PostgreSQL's own words.

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
