-- What the questions of inspect_feed.sql need in SQLite's own words.

-- part: jobs of a page
-- Their ids in hex, from the wanted one on.
hex(substr(o.jobs, 16 * max($1 + 1 - o.first, 0) + 1, 16 * $2))

-- part: tokens of a page
-- All of them, as JSON: cutting a list here takes longer than reading it whole.
o.tokens

-- part: lines of a page
-- All of them, as JSON.
o.story

-- part: named jobs
-- A JSON list of texts: 32 digits of an id, and behind them a token.
SELECT key AS n, unhex(substr(value, 1, 32)) AS job, CAST(substr(value, 33) AS INTEGER) AS token FROM json_each($1)

-- part: named lines
-- A JSON list of numbers.
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
