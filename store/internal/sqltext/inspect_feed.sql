-- Statements that read the feed, groups, and what retention leaves.

-- name: inspect_feed
-- The pages that have the wanted events, with the head of the feed, all of one moment. Numbers are consecutive: the last page that begins at or before the
-- first wanted number contains it, and no page that begins behind the last wanted number is read.
SELECT f.head, f.purged, o.first, o.events, o.name, o.at, {jobs of a page}, {tokens of a page}, {lines of a page}
  FROM holdfast_feed f
  LEFT JOIN holdfast_outbox o ON o.first <= CAST($1 AS bigint) + CAST($2 AS bigint)
        AND o.first >= coalesce((SELECT max(p.first) FROM holdfast_outbox p WHERE p.first <= CAST($1 AS bigint) + 1), 0)
 WHERE f.one = 1
 ORDER BY o.first

-- name: inspect_event_details
-- The rows to which pages only refer: a job's facts, the attempt and the end under that token, or the tombstone. By keys only.
SELECT t.n, coalesce(j.kind, s.kind), coalesce(j.queue, s.queue), coalesce(j.owner, s.owner), coalesce(j.group_id, s.group_id), j.created_at,
       a.generation, a.to_state, a.started_at, a.ended_at, a.count, a.due_at, a.code, a.message, CAST(a.context AS text),
       f.generation, f.state, f.started_at, f.finished_at, f.failures, f.code,
       s.state, s.finished_at, s.code, a.benign
  FROM ({named jobs}) AS t
  LEFT JOIN holdfast_job j ON j.id = t.job
  LEFT JOIN holdfast_attempt a ON a.job = t.job AND a.token = t.token
  LEFT JOIN holdfast_finished f ON f.job = t.job AND f.token = t.token
  LEFT JOIN holdfast_tombstone s ON s.job = t.job AND j.id IS NULL

-- name: inspect_story_lines
-- Events of stories, by their row ids.
SELECT t.n, e.job, e.subject, e.at, e.name, e.actor, e.reason, e.request, e.token, e.generation
  FROM ({named lines}) AS t JOIN holdfast_event e ON e.id = t.line

-- name: inspect_group_names
-- Owner and name of groups.
SELECT t.n, g.owner, g.name FROM ({named jobs}) AS t JOIN holdfast_group g ON g.id = t.job

-- name: inspect_group_members
-- Members by place. Batches are few, so leased members are found from there; they are also counted as queued, and the caller subtracts them. A group inside
-- counts as complete if it is ready, and as failed if it has any other outcome.
SELECT coalesce(CASE WHEN f.state = 'cancelled' AND f.benign = TRUE THEN 'skipped' END, f.state, CASE WHEN l.hold = '' THEN 'waiting' ELSE 'queued' END), count(*)
  FROM holdfast_job j
  LEFT JOIN holdfast_finished f ON f.job = j.id
  LEFT JOIN holdfast_later l ON l.job = j.id
 WHERE j.group_id = $1
 GROUP BY 1
UNION ALL
SELECT 'leased', count(DISTINCT m.job) FROM holdfast_leased m WHERE EXISTS (SELECT 1 FROM holdfast_job j WHERE j.id = m.job AND j.group_id = $1)
UNION ALL
SELECT CASE WHEN s.skipped = TRUE THEN 'skipped' ELSE s.state END, count(*) FROM holdfast_tombstone s WHERE s.group_id = $1 GROUP BY 1
UNION ALL
SELECT CASE WHEN g.settled_at IS NULL THEN 'processing' WHEN g.state = 'ready' THEN 'complete' ELSE 'failed' END, count(*)
  FROM holdfast_group g WHERE g.parent = $1
 GROUP BY 1

-- name: inspect_upstreams
-- The members for which a job waits or waited.
SELECT w.upstream, w.regardless, w.outcome FROM holdfast_after w WHERE w.job = $1 AND w.upstream <> w.job ORDER BY w.upstream

-- name: inspect_members
-- The first members of a group by id, in no order. Each place is joined separately.
SELECT j.id, j.kind, s.name,
       CASE WHEN f.job IS NOT NULL THEN f.state WHEN m.job IS NOT NULL THEN 'processing' ELSE 'queued' END,
       f.job IS NULL AND m.job IS NULL AND coalesce(l.hold = '', false), coalesce(f.state = 'cancelled' AND f.benign = TRUE, false), f.code, f.upstream
  FROM (SELECT g.id FROM holdfast_job g WHERE g.group_id = $1 ORDER BY g.id LIMIT $2) AS page
  {job of a page}
  LEFT JOIN holdfast_step s ON s.job = j.id
  LEFT JOIN holdfast_later l ON l.job = j.id
  LEFT JOIN holdfast_leased m ON m.job = j.id
  LEFT JOIN holdfast_finished f ON f.job = j.id

-- name: inspect_member_waits
-- The members for which the first members of a group wait or waited, in no order.
SELECT w.job, w.upstream, w.regardless, w.outcome
  FROM (SELECT g.id FROM holdfast_job g WHERE g.group_id = $1 ORDER BY g.id LIMIT $2) AS page
  {waits of a page}
 LIMIT $3

-- name: inspect_upstream_results
-- The members for which a job waited, with how they ended. Each name is found by its key.
SELECT w.upstream, j.kind, w.step, f.state, f.code, CAST(f.result AS text), coalesce(f.state = 'cancelled' AND f.benign = TRUE, false)
  FROM (SELECT a.upstream, (SELECT s.name FROM holdfast_step s WHERE s.job = a.upstream) AS step FROM holdfast_after a
         WHERE a.job = $1 AND a.upstream <> a.job AND a.upstream > $2) AS w
  JOIN holdfast_job j ON j.id = w.upstream LEFT JOIN holdfast_finished f ON f.job = w.upstream
 WHERE $3 = '' OR w.step = $3
 ORDER BY w.upstream

-- name: inspect_purged_step
-- The tombstone of a member, by its name.
SELECT t.job, t.purged_at, t.rule FROM holdfast_job j JOIN holdfast_tombstone t ON t.group_id = j.group_id AND t.step = $2 WHERE j.id = $1

-- name: inspect_tombstone
-- The tombstone of one job.
SELECT s.purged_at, s.rule FROM holdfast_tombstone s WHERE s.job = $1

-- name: inspect_purge_counts
-- As few rows as there are rules, kinds, states and codes.
SELECT p.rule, p.kind, p.state, p.code, p.jobs, p.last FROM holdfast_purge_count p

-- name: inspect_artifacts
-- The artifacts of one job.
SELECT t.job, t.name, t.ref, t.size, t.created_at, t.expire_at, t.expired_at
  FROM holdfast_artifact t WHERE t.job = $1 ORDER BY t.name LIMIT $2

-- name: inspect_due_artifacts
-- Artifacts whose time is over and that have not expired yet, the longest overdue first.
SELECT t.job, t.name, t.ref, t.size, t.created_at, t.expire_at, t.expired_at
  FROM holdfast_artifact t WHERE t.expired_at IS NULL AND t.expire_at IS NOT NULL AND t.expire_at <= $1 ORDER BY t.expire_at LIMIT $2

-- name: inspect_chain
-- Every sealed event after the anchor, in the order of the chain, with the anchor, the end of the chain, and the last mark of a shortened log, all of one
-- moment. The key gives the order.
SELECT (SELECT f.link FROM holdfast_feed f), (SELECT {hash of the head} FROM holdfast_feed f), (SELECT f.anchor FROM holdfast_feed f), (SELECT {hash of the anchor} FROM holdfast_feed f),
       (SELECT m.reason FROM holdfast_event m WHERE m.subject = 'audit' AND m.name = 'shortened' ORDER BY m.id DESC LIMIT 1),
       e.link, {hash of a line}, e.id, e.job, e.subject, e.at, e.name, e.actor, e.reason, e.request, e.token, e.generation, CAST(e.was AS text)
  FROM holdfast_event e
 WHERE e.link > (SELECT f.anchor FROM holdfast_feed f)
 ORDER BY e.link

-- name: inspect_empty_chain
-- The anchor and the end of the chain, if no event is in it.
SELECT f.link, {hash of the head}, f.anchor, {hash of the anchor},
       (SELECT m.reason FROM holdfast_event m WHERE m.subject = 'audit' AND m.name = 'shortened' ORDER BY m.id DESC LIMIT 1)
  FROM holdfast_feed f WHERE f.one = 1 AND NOT EXISTS (SELECT 1 FROM holdfast_event e WHERE e.link > f.anchor)
