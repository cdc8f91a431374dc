-- name: listen_list
-- The events that have listeners. Read after another process has written, and otherwise remembered.
SELECT event FROM holdfast_listen

-- name: listen_add
-- One event of a listener.
INSERT INTO holdfast_listen (event, listener) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: listen_drop
-- Before a listener's events are written again. Listeners are few.
DELETE FROM holdfast_listen WHERE listener = $1

-- name: check_queued_listener
-- Whether new jobs have a listener, for an enqueue in the application's transaction.
SELECT 1 FROM holdfast_listen WHERE event IN ('queued', '*') LIMIT 1

-- name: check_end_listener
-- Whether this end of a job has a listener, for a completion in the application's transaction.
SELECT 1 FROM holdfast_listen WHERE event IN ($1, '*') LIMIT 1

-- name: advance_feed_head
-- There is one writer at a time, so its events get the next numbers.
UPDATE holdfast_feed SET head = head + $1 WHERE one = 1 RETURNING head

-- name: add_page
-- The events of one name that one transaction added.
INSERT INTO holdfast_outbox (first, events, name, at, jobs, tokens, story) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: read_feed
-- The head of the feed, what was deleted from it, how far AdvanceGroups has read it, and the end of the chain.
SELECT head, purged, followed, link, coalesce(hash, x'') FROM holdfast_feed WHERE one = 1

-- name: find_unsealed_events
-- Events that are not in the chain yet, in the order in which they were written.
SELECT id, coalesce(job, zeroblob(16)), coalesce(subject, ''), at, name, actor, coalesce(reason, ''), coalesce(request, ''), token, generation, coalesce(was, '')
  FROM holdfast_event WHERE link IS NULL ORDER BY id LIMIT $1 + 0

-- name: seal_event
-- The place of an event in the chain, written once.
UPDATE holdfast_event SET link = $2, hash = $3 WHERE id = $1 AND link IS NULL

-- name: advance_chain
-- The end of the chain.
UPDATE holdfast_feed SET link = $1, hash = $2 WHERE one = 1

-- name: find_old_pages
-- The oldest pages, up to where AdvanceGroups has read.
SELECT first, events, at FROM holdfast_outbox
 WHERE first <= (SELECT followed FROM holdfast_feed WHERE one = 1) ORDER BY first LIMIT $1 + 0

-- name: delete_pages
-- Whole pages from the beginning.
DELETE FROM holdfast_outbox WHERE first <= $1

-- name: save_purged_number
-- The number of the last deleted event.
UPDATE holdfast_feed SET purged = $1 WHERE one = 1 AND purged < $1

-- name: find_old_events
-- The oldest events of the chain.
SELECT link, hash, at FROM holdfast_event WHERE link > (SELECT anchor FROM holdfast_feed WHERE one = 1) ORDER BY link LIMIT $1 + 0

-- name: find_last_mark
-- When the audit log was last shortened.
SELECT at FROM holdfast_event WHERE subject = $1 AND name = $2 ORDER BY id DESC LIMIT 1

-- name: delete_events
-- Sealed events only, from the beginning of the chain.
DELETE FROM holdfast_event WHERE link <= $1

-- name: save_chain_anchor
-- Where the chain begins now.
UPDATE holdfast_feed SET anchor = $1, anchored = $2 WHERE one = 1

-- name: find_old_error_counts
-- Older steps. The table is searched until there are enough rows: retention deletes a few at a time.
SELECT fingerprint, step, kind, queue, dependency, version FROM holdfast_error_count WHERE step < $1 LIMIT $2 + 0

-- name: delete_error_counts
-- One step of one error group at one place.
DELETE FROM holdfast_error_count WHERE fingerprint = $1 AND step = $2 AND kind = $3 AND queue = $4 AND dependency = $5 AND version = $6

-- name: delete_trend_counts
-- The oldest steps.
DELETE FROM holdfast_trend WHERE (step, queue, shard) IN (SELECT step, queue, shard FROM holdfast_trend WHERE step < $1 ORDER BY step LIMIT $2 + 0)

-- name: delete_tombstones
-- The oldest tombstones. The counts of purged jobs stay.
DELETE FROM holdfast_tombstone WHERE job IN (SELECT job FROM holdfast_tombstone WHERE purged_at < $1 ORDER BY purged_at, job LIMIT $2 + 0)
