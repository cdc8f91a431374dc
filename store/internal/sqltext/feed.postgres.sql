-- name: feed_lock
-- Whoever numbers pages or shortens the feed is alone with it.
SELECT head, purged, concluded, link, hash, anchor, holdfast_now() FROM holdfast_feed WHERE one = 1 FOR UPDATE

-- name: check_feed
-- Whether there is something to number or to seal, without a lock.
SELECT (SELECT id FROM holdfast_outbox WHERE first IS NULL ORDER BY first, id LIMIT 1) IS NOT NULL OR (SELECT id FROM holdfast_event WHERE link IS NULL ORDER BY link, id LIMIT 1) IS NOT NULL

-- name: number_pages
-- Pages that are committed, in the order in which they were written: what one transaction saw of another comes after it.
WITH page AS MATERIALIZED (
    SELECT o.id, o.events FROM holdfast_outbox o WHERE o.first IS NULL ORDER BY o.first, o.id LIMIT $1::integer
), numbered AS (
    UPDATE holdfast_outbox o SET first = p.first
      FROM (SELECT id, (SELECT head FROM holdfast_feed WHERE one = 1) + 1 + sum(events) OVER (ORDER BY id) - events AS first FROM page) p WHERE o.id = p.id
), moved AS (
    UPDATE holdfast_feed SET head = head + (SELECT sum(events) FROM page) WHERE one = 1 AND EXISTS (SELECT FROM page)
)
SELECT count(*)::integer FROM page

-- name: find_unsealed_events
-- Lines of stories that are not sealed yet.
SELECT id, job, coalesce(subject, ''), at, name, actor, coalesce(reason, ''), coalesce(request, ''), token, generation, coalesce(was::text, '')
  FROM holdfast_event WHERE link IS NULL ORDER BY link, id LIMIT $1::integer

-- name: seal_events
-- Each is sealed to the one before it.
UPDATE holdfast_event e SET link = d.link, hash = d.hash FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS d (id, link, hash) WHERE e.id = d.id

-- name: advance_chain
-- Where the chain ends by now.
UPDATE holdfast_feed SET link = $1::bigint, hash = $2::bytea WHERE one = 1

-- name: find_old_pages
-- The oldest pages that groups have followed.
SELECT first, events, at < $1::timestamptz FROM holdfast_outbox WHERE first > $2::bigint AND first + events <= $3::bigint + 1 ORDER BY first LIMIT $4::integer

-- name: delete_pages
-- From the beginning.
WITH gone AS (DELETE FROM holdfast_outbox WHERE first > $1::bigint AND first <= $2::bigint)
UPDATE holdfast_feed SET purged = $2::bigint WHERE one = 1

-- name: find_old_events
-- The oldest lines of the chain.
SELECT link, at < $1::timestamptz, hash, at FROM holdfast_event WHERE link > $2::bigint ORDER BY link LIMIT $3::integer

-- name: find_last_mark
-- When the audit log was last shortened.
SELECT at FROM holdfast_event WHERE subject = $1::text AND name = $2::text ORDER BY id DESC LIMIT 1

-- name: delete_events
-- From the beginning: the chain can be checked from there on.
WITH gone AS (DELETE FROM holdfast_event WHERE link > $1::bigint AND link <= $2::bigint)
UPDATE holdfast_feed SET anchor = $2::bigint, anchored = $3::bytea WHERE one = 1

-- name: delete_error_counts
-- The oldest first.
DELETE FROM holdfast_error_tally WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM holdfast_error_tally WHERE step < $1::timestamptz ORDER BY step LIMIT $2::integer FOR UPDATE SKIP LOCKED))

-- name: delete_trend_counts
-- The oldest first, and none that is not over yet.
DELETE FROM holdfast_tally WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM holdfast_tally WHERE step < $1::timestamptz - interval '1 minute' ORDER BY step LIMIT $2::integer FOR UPDATE SKIP LOCKED))

-- name: delete_tombstones
-- The oldest first; the counts remain.
DELETE FROM holdfast_tombstone WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM holdfast_tombstone WHERE purged_at < $1::timestamptz ORDER BY purged_at, job LIMIT $2::integer FOR UPDATE SKIP LOCKED))

-- name: listen_drop
-- What somebody does not listen for any more.
DELETE FROM holdfast_listen WHERE listener = $1::text AND event <> ALL ($2::text[])

-- name: listen_add
-- What somebody listens for from now on.
INSERT INTO holdfast_listen (event, listener) SELECT d.event, $1::text FROM unnest($2::text[]) AS d (event) ORDER BY d.event ON CONFLICT DO NOTHING
