-- name: listen_list
-- What somebody listens for. Read when another process has written, and otherwise remembered.
SELECT event FROM holdfast_listen

-- name: listen_add
-- One of the things a listener listens for.
INSERT INTO holdfast_listen (event, listener) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: listen_drop
-- Before a listener says anew what it listens for. Listeners are few.
DELETE FROM holdfast_listen WHERE listener = $1

-- name: check_queued_listener
-- Whether anybody wants to hear of new jobs, for a transaction that is not the store's.
SELECT 1 FROM holdfast_listen WHERE event IN ('queued', '*') LIMIT 1

-- name: advance_feed_head
-- Who writes is alone: the numbers of its events are the next ones.
UPDATE holdfast_feed SET head = head + $1 WHERE one = 1 RETURNING head

-- name: add_page
-- Everything of a sort that one transaction did.
INSERT INTO holdfast_outbox (first, events, name, at, jobs, tokens, story) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: read_feed
-- Where the feed, the chain and those who follow them stand.
SELECT head, purged, concluded, link, coalesce(hash, x'') FROM holdfast_feed WHERE one = 1

-- name: find_unsealed_events
-- Lines of stories that are not in the chain yet, in the order in which they were written.
SELECT id, coalesce(job, zeroblob(16)), coalesce(subject, ''), at, name, actor, coalesce(reason, ''), coalesce(request, ''), token, generation, coalesce(was, '')
  FROM holdfast_event WHERE link IS NULL ORDER BY id LIMIT $1 + 0

-- name: seal_event
-- A line's place in the chain, given once.
UPDATE holdfast_event SET link = $2, hash = $3 WHERE id = $1 AND link IS NULL

-- name: advance_chain
-- The last line of the chain.
UPDATE holdfast_feed SET link = $1, hash = $2 WHERE one = 1

-- name: find_old_pages
-- The oldest pages, up to where groups have followed.
SELECT first, events, at FROM holdfast_outbox
 WHERE first <= (SELECT concluded FROM holdfast_feed WHERE one = 1) ORDER BY first LIMIT $1 + 0

-- name: delete_pages
-- Whole pages, and nothing between them.
DELETE FROM holdfast_outbox WHERE first <= $1

-- name: save_purged_number
-- The number of the last event that was forgotten.
UPDATE holdfast_feed SET purged = $1 WHERE one = 1 AND purged < $1

-- name: find_old_events
-- The oldest lines of the chain.
SELECT link, hash, at FROM holdfast_event WHERE link > (SELECT anchor FROM holdfast_feed WHERE one = 1) ORDER BY link LIMIT $1 + 0

-- name: find_last_mark
-- When the audit log was last shortened.
SELECT at FROM holdfast_event WHERE subject = $1 AND name = $2 ORDER BY id DESC LIMIT 1

-- name: delete_events
-- Sealed lines only, from the beginning.
DELETE FROM holdfast_event WHERE link <= $1

-- name: save_chain_anchor
-- Where the chain begins now.
UPDATE holdfast_feed SET anchor = $1, anchored = $2 WHERE one = 1

-- name: find_old_error_counts
-- Steps that are older. All are looked through until there are enough: a slow sweep asks, a few at a time.
SELECT fingerprint, step, kind, queue, dependency, version FROM holdfast_error_tally WHERE step < $1 LIMIT $2 + 0

-- name: delete_error_counts
-- One step of one group at one place.
DELETE FROM holdfast_error_tally WHERE fingerprint = $1 AND step = $2 AND kind = $3 AND queue = $4 AND dependency = $5 AND version = $6

-- name: delete_trend_counts
-- The oldest.
DELETE FROM holdfast_tally WHERE (step, queue, shard) IN (SELECT step, queue, shard FROM holdfast_tally WHERE step < $1 ORDER BY step LIMIT $2 + 0)

-- name: delete_tombstones
-- The oldest. The counts remain.
DELETE FROM holdfast_tombstone WHERE job IN (SELECT job FROM holdfast_tombstone WHERE purged_at < $1 ORDER BY purged_at, job LIMIT $2 + 0)
