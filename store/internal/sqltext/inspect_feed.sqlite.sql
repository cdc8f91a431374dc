-- The parts of inspect_feed.sql that are specific to SQLite.

-- part: jobs of a page
-- Their ids in hex, beginning with the first that is wanted.
hex(substr(o.jobs, 16 * max($1 + 1 - o.first, 0) + 1, 16 * $2))

-- part: tokens of a page
-- All tokens as JSON: cutting the list here takes longer than reading it whole.
o.tokens

-- part: lines of a page
-- All row ids of events, as JSON.
o.story

-- part: named jobs
-- From a JSON list of texts: the 32 hex digits of an id, followed by a token.
SELECT key AS n, unhex(substr(value, 1, 32)) AS job, CAST(substr(value, 33) AS INTEGER) AS token FROM json_each($1)

-- part: named lines
-- From a JSON list of numbers.
SELECT key AS n, value AS line FROM json_each($1)

-- part: hash of the head
-- In hex.
hex(f.hash)

-- part: hash of the anchor
-- In hex.
hex(f.anchored)

-- part: hash of a line
-- In hex.
hex(e.hash)

-- name: inspect_lease
-- Whether a job is leased in a batch, with a token.
SELECT 1 FROM holdfast_batch b CROSS JOIN json_each(CASE WHEN json_valid(b.members) THEN b.members END) AS m
 WHERE b.id = $1 AND substr(b.jobs, 16 * m.key + 1, 16) = $2 AND m.value ->> 0 = $3
