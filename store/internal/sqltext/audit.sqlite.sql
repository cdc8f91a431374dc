-- Rules of the integrity check that only SQLite needs: PostgreSQL's types and constraints enforce them.

-- name: audit: the database file is not damaged
-- SQLite's own check of its pages.
SELECT NULL, 'database file', c.quick_check FROM pragma_quick_check c WHERE c.quick_check <> 'ok'

-- name: audit: a job has an id
-- Sixteen bytes, not all zero. A damaged id is shown by its bytes.
SELECT NULL, 'job x' || lower(hex(j.id)), 'its id is not one' FROM holdfast_job j WHERE length(j.id) <> 16 OR j.id = zeroblob(16)

-- name: audit: stored JSON is valid
-- Arguments, tags, results and records.
SELECT j.id, NULL, CASE WHEN json_valid(j.args) THEN 'its tags are' ELSE 'its arguments are' END || ' not valid JSON'
  FROM holdfast_job j WHERE NOT json_valid(j.args) OR NOT coalesce(json_valid(j.tags), true)
UNION ALL
SELECT f.job, NULL, 'its result is not valid JSON' FROM holdfast_finished f WHERE f.result IS NOT NULL AND NOT json_valid(f.result)
UNION ALL
SELECT NULL, 'record ' || c.namespace || '/' || c.name, 'its body is not valid JSON' FROM holdfast_record c WHERE NOT json_valid(c.body)

-- name: audit: arguments are within their limit
-- Larger arguments were written by another program.
SELECT j.id, NULL, 'its arguments have ' || octet_length(j.args) || ' bytes' FROM holdfast_job j WHERE octet_length(j.args) > 1048576

-- name: audit: the members of a lease are aligned
-- A misaligned batch has no members: its jobs can be neither settled nor reclaimed.
SELECT NULL, 'lease x' || lower(hex(l.id)), 'its jobs and its members differ in number'
  FROM holdfast_batch l
 WHERE length(l.jobs) % 16 <> 0 OR length(l.jobs) / 16 <> CASE WHEN json_valid(l.members) THEN json_array_length(l.members) ELSE -1 END

-- name: audit: a job set aside has the tag that is held
-- Otherwise the end of the hold does not promote it, and it would wait for ever.
SELECT l.job, NULL, 'it is set aside behind the tag ' || l.hold || ', which it does not have'
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
 WHERE l.hold <> '' AND NOT EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) WHERE value = l.hold)

-- part: known
-- Ten seconds after a hold was placed, no claim is in progress that could have missed it.
m.claimed_at > h.since + 10000000

-- name: audit: a page of the feed names as many as it counts
-- Otherwise the feed would report events of wrong jobs, or of none.
SELECT NULL, 'feed at ' || o.first, 'it counts ' || o.events || ' events and does not name as many'
  FROM holdfast_outbox o
 WHERE CASE WHEN o.name = 'story' THEN NOT json_valid(o.story) OR json_array_length(o.story) <> o.events
            ELSE length(o.jobs) <> 16 * o.events OR o.tokens IS NOT NULL AND (NOT json_valid(o.tokens) OR json_array_length(o.tokens) <> o.events) END
    OR (o.name = 'story') <> (o.jobs IS NULL) OR (o.name = 'story') <> (o.story IS NOT NULL)

-- part: attended
-- The group is flagged for evaluation.
g.attend <> 0
