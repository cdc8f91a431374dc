-- Promises that only SQLite can break: PostgreSQL's own types and checks keep them.

-- name: audit: the database file is sound
-- The database's own check of its pages.
SELECT NULL, 'database file', c.quick_check FROM pragma_quick_check c WHERE c.quick_check <> 'ok'

-- name: audit: a job has an id
-- Sixteen bytes, not all zero. A damaged id is shown by its bytes.
SELECT NULL, 'job x' || lower(hex(j.id)), 'its id is not one' FROM holdfast_job j WHERE length(j.id) <> 16 OR j.id = zeroblob(16)

-- name: audit: stored JSON can be read
-- Arguments, tags and results.
SELECT j.id, NULL, CASE WHEN json_valid(j.args) THEN 'its tags are' ELSE 'its arguments are' END || ' not valid JSON'
  FROM holdfast_job j WHERE NOT json_valid(j.args) OR NOT coalesce(json_valid(j.tags), true)
UNION ALL
SELECT f.job, NULL, 'its result is not valid JSON' FROM holdfast_finished f WHERE f.result IS NOT NULL AND NOT json_valid(f.result)

-- name: audit: arguments are within their limit
-- Larger ones were written around the store.
SELECT j.id, NULL, 'its arguments have ' || octet_length(j.args) || ' bytes' FROM holdfast_job j WHERE octet_length(j.args) > 1048576

-- name: audit: a member belongs to a lease
-- A member without a lease is never renewed and never reclaimed.
SELECT m.job, NULL, 'it is held under a lease that does not exist' FROM holdfast_member m WHERE NOT EXISTS (SELECT 1 FROM holdfast_lease l WHERE l.id = m.lease)

-- name: audit: a lease counts its members
-- A count too low ends a lease while jobs are held under it; one too high keeps it for ever.
SELECT l.id, NULL, 'this lease counts ' || l.members || ' members and has ' || coalesce(m.present, 0)
  FROM holdfast_lease l LEFT JOIN (SELECT lease, count(*) AS present FROM holdfast_member GROUP BY lease) AS m ON m.lease = l.id
 WHERE l.members <> coalesce(m.present, 0)
