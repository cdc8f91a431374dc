-- Parts of inspect_feed.sql that differ on PostgreSQL.

-- part: jobs of a page
-- The job ids of a page in hex, from the requested event on.
replace(array_to_string(o.jobs[CAST($1 + 2 - o.first AS integer):CAST($1 + 1 + $2 - o.first AS integer)], ''), '-', '')

-- part: tokens of a page
-- The tokens of a page as JSON, from the requested event on.
CAST(array_to_json(o.tokens[CAST($1 + 2 - o.first AS integer):CAST($1 + 1 + $2 - o.first AS integer)]) AS text)

-- part: lines of a page
-- The event ids of a page as JSON, from the requested event on.
CAST(array_to_json(o.story[CAST($1 + 2 - o.first AS integer):CAST($1 + 1 + $2 - o.first AS integer)]) AS text)

-- part: named jobs
-- From a JSON list of texts: 32 hex digits of an id, followed by a token.
SELECT v.n - 1 AS n, CAST(substr(v.value, 1, 32) AS uuid) AS job, CAST(substr(v.value, 33) AS integer) AS token
  FROM json_array_elements_text(CAST(CAST($1 AS text) AS json)) WITH ORDINALITY AS v (value, n)

-- part: named lines
-- From a JSON list of numbers.
SELECT v.n - 1 AS n, CAST(v.value AS bigint) AS line
  FROM json_array_elements_text(CAST(CAST($1 AS text) AS json)) WITH ORDINALITY AS v (value, n)

-- part: hash of the head
-- In hex.
encode(f.hash, 'hex')

-- part: hash of the anchor
-- In hex.
encode(f.anchored, 'hex')

-- part: hash of a line
-- In hex.
encode(e.hash, 'hex')

-- name: inspect_lease
-- Whether a job is leased in a batch, with a token.
SELECT 1 FROM holdfast_leased m WHERE m.batch = $1 AND m.job = $2 AND m.token = $3
