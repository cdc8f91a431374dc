-- name: feed_lock
-- Numbering pages and deleting from the feed or the chain happen under this lock.
SELECT head, purged, followed, link, hash, anchor, holdfast_now() FROM holdfast_feed WHERE one = 1 FOR UPDATE

-- name: check_feed
-- Whether there is a page to number or an event to seal, without a lock.
SELECT (SELECT id FROM holdfast_outbox WHERE first IS NULL ORDER BY first, id LIMIT 1) IS NOT NULL OR (SELECT id FROM holdfast_event WHERE link IS NULL ORDER BY link, id LIMIT 1) IS NOT NULL

-- name: number_pages
-- Numbers committed pages in the order in which they were written: if one transaction saw another one's changes, its page comes after the other's.
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
-- Events that are not sealed yet.
SELECT id, job, coalesce(subject, ''), at, name, actor, coalesce(reason, ''), coalesce(request, ''), token, generation, coalesce(was::text, '')
  FROM holdfast_event WHERE link IS NULL ORDER BY link, id LIMIT $1::integer

-- name: seal_events
-- Each event is sealed with the hash of the one before it.
UPDATE holdfast_event e SET link = d.link, hash = d.hash FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS d (id, link, hash) WHERE e.id = d.id

-- name: advance_chain
-- The new end of the chain.
UPDATE holdfast_feed SET link = $1::bigint, hash = $2::bytea WHERE one = 1

-- name: find_old_pages
-- The oldest pages that groups have followed, and whether each is older than the limit.
SELECT first, events, at < $1::timestamptz FROM holdfast_outbox WHERE first > $2::bigint AND first + events <= $3::bigint + 1 ORDER BY first LIMIT $4::integer

-- name: delete_pages
-- Deletes pages from the beginning of the feed.
WITH gone AS (DELETE FROM holdfast_outbox WHERE first > $1::bigint AND first <= $2::bigint)
UPDATE holdfast_feed SET purged = $2::bigint WHERE one = 1

-- name: find_old_events
-- The oldest events of the chain, and whether each is older than the limit.
SELECT link, at < $1::timestamptz, hash, at FROM holdfast_event WHERE link > $2::bigint ORDER BY link LIMIT $3::integer

-- name: find_last_mark
-- When the audit log was last shortened.
SELECT at FROM holdfast_event WHERE subject = $1::text AND name = $2::text ORDER BY id DESC LIMIT 1

-- name: delete_events
-- Deletes events from the beginning of the chain, and stores the hash from which it can be verified from then on.
WITH gone AS (DELETE FROM holdfast_event WHERE link > $1::bigint AND link <= $2::bigint)
UPDATE holdfast_feed SET anchor = $2::bigint, anchored = $3::bytea WHERE one = 1

-- name: delete_error_counts
-- The oldest first.
DELETE FROM holdfast_error_count WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM holdfast_error_count WHERE step < $1::timestamptz ORDER BY step LIMIT $2::integer FOR UPDATE SKIP LOCKED))

-- name: delete_trend_counts
-- The oldest first, and no step that is still in progress.
DELETE FROM holdfast_trend WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM holdfast_trend WHERE step < $1::timestamptz - interval '1 minute' ORDER BY step LIMIT $2::integer FOR UPDATE SKIP LOCKED))

-- name: delete_tombstones
-- The oldest first. The purge counts remain.
DELETE FROM holdfast_tombstone WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM holdfast_tombstone WHERE purged_at < $1::timestamptz ORDER BY purged_at, job LIMIT $2::integer FOR UPDATE SKIP LOCKED))

-- name: listen_drop
-- Events that the listener no longer wants.
DELETE FROM holdfast_listen WHERE listener = $1::text AND event <> ALL ($2::text[])

-- name: listen_add
-- Events that the listener wants from now on.
INSERT INTO holdfast_listen (event, listener) SELECT d.event, $1::text FROM unnest($2::text[]) AS d (event) ORDER BY d.event ON CONFLICT DO NOTHING
