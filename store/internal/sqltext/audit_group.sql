-- Rules of the integrity check about groups, the feed, and what retention leaves, written as those in audit.sql.

-- part: nothing is forgotten
-- Retention has not deleted any event yet.
(SELECT d.anchor FROM holdfast_feed d) = 0

-- part: all is advanced
-- AdvanceGroups has handled everything in the feed, so whatever follows from the end of a member has been done.
EXISTS (SELECT 1 FROM holdfast_feed d WHERE d.followed = d.head) AND NOT EXISTS (SELECT 1 FROM holdfast_outbox o WHERE o.first IS NULL)

-- name: audit: a member belongs to a group that exists
-- Otherwise its group would never be settled.
SELECT j.id, NULL, 'it is a member of a group that does not exist'
  FROM holdfast_job j WHERE j.group_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_group g WHERE g.id = j.group_id)

-- name: audit: members wait for members of their own group
-- Otherwise a group would depend on another without knowing it.
SELECT w.job, NULL, 'it waits for a job that is not in its group'
  FROM holdfast_after w JOIN holdfast_job j ON j.id = w.job JOIN holdfast_job u ON u.id = w.upstream
 WHERE j.group_id IS NULL OR u.group_id IS NULL OR j.group_id <> u.group_id

-- name: audit: a step names a member of its group
-- Members that wait for it ask for its result by this name.
SELECT s.job, NULL, 'it is the step ' || s.name || ' of a group of which it is no member'
  FROM holdfast_step s JOIN holdfast_job j ON j.id = s.job
 WHERE j.group_id IS NULL OR j.group_id <> s.group_id

-- name: audit: a settled group has no live member
-- A group has an outcome when all members have ended; a new generation of a member reopens the group in the same transaction.
SELECT j.id, NULL, 'it has not ended, yet its group is ' || g.state
  FROM holdfast_group g JOIN holdfast_job j ON j.group_id = g.id
 WHERE g.settled_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)
UNION ALL
SELECT c.id, NULL, 'this group has not settled, yet the group it is in is ' || g.state
  FROM holdfast_group g JOIN holdfast_group c ON c.parent = g.id
 WHERE g.settled_at IS NOT NULL AND c.settled_at IS NULL

-- name: audit: the outcome of a group follows from its members
-- Counted again from members, tombstones and groups inside. If fewer are left than were counted, tombstones have been deleted and the rule cannot be checked. A
-- group that was cancelled or has expired has that state whatever its members did.
SELECT t.id, NULL, CASE WHEN t.counted IS NULL THEN 'this group is ' || t.state || ', and its members were not counted'
                        WHEN t.total > t.counted THEN 'this group was settled with ' || t.counted || ' members, and has ' || t.total
                        ELSE 'this group is ' || t.state || ' with ' || t.counted_complete || ' of ' || t.counted || ' complete; by its members it is '
                             || t.outcome || ' with ' || t.complete || ' of ' || t.total END
  FROM (SELECT g.id, g.state, g.complete AS counted_complete, g.complete + g.failed + g.cancelled + g.skipped AS counted, coalesce(m.total, 0) AS total, coalesce(m.complete, 0) AS complete,
               CASE WHEN coalesce(m.complete, 0) = coalesce(m.total, 0) - coalesce(m.skipped, 0) OR g.quorum > 0 AND coalesce(m.complete, 0) >= g.quorum THEN 'ready'
                    WHEN m.complete > 0 THEN 'partial' ELSE 'failed' END AS outcome
          FROM holdfast_group g
          LEFT JOIN (SELECT u.id, count(*) AS total, sum(u.complete) AS complete, sum(u.skipped) AS skipped
                       FROM (SELECT j.group_id AS id, CASE WHEN f.state = 'complete' THEN 1 ELSE 0 END AS complete, CASE WHEN f.state = 'cancelled' AND f.benign = TRUE THEN 1 ELSE 0 END AS skipped
                               FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id WHERE j.group_id IS NOT NULL
                             UNION ALL
                             SELECT s.group_id, CASE WHEN s.state = 'complete' THEN 1 ELSE 0 END, CASE WHEN s.skipped = TRUE THEN 1 ELSE 0 END FROM holdfast_tombstone s WHERE s.group_id IS NOT NULL
                             UNION ALL
                             SELECT c.parent, CASE WHEN c.state = 'ready' THEN 1 ELSE 0 END, 0 FROM holdfast_group c WHERE c.parent IS NOT NULL AND c.settled_at IS NOT NULL) AS u
                      GROUP BY u.id) AS m ON m.id = g.id
         WHERE g.settled_at IS NOT NULL) AS t
 WHERE t.counted IS NULL OR t.total > t.counted OR t.total = t.counted AND (t.complete <> t.counted_complete OR t.state NOT IN ('cancelled', 'expired', t.outcome))

-- name: audit: a sealed group without live members is settled
-- Liveness: when AdvanceGroups has handled the whole feed, a sealed group without a live member has an outcome, unless it is flagged for evaluation.
SELECT g.id, NULL, 'this group is sealed and all its members have ended, yet it has no outcome'
  FROM holdfast_group g
 WHERE g.sealed_at IS NOT NULL AND g.settled_at IS NULL AND NOT {attended} AND {all is advanced}
   AND NOT EXISTS (SELECT 1 FROM holdfast_job j WHERE j.group_id = g.id AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id))
   AND NOT EXISTS (SELECT 1 FROM holdfast_group c WHERE c.parent = g.id AND c.settled_at IS NULL)

-- name: audit: the cursor of a group has passed only ended members
-- Members above the cursor are taken to have ended, so a live one there would be missing from the outcome.
SELECT j.id, NULL, 'it has not ended, yet the cursor of its group has passed it'
  FROM holdfast_group g JOIN holdfast_job j ON j.group_id = g.id AND j.id > g.live
 WHERE g.live IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)

-- name: audit: a member waits only for members that have not ended
-- When AdvanceGroups has handled the whole feed, such a member starts, or is cancelled because one of the others did not complete, unless its group is flagged for
-- evaluation. Outside a group it would wait for ever.
SELECT l.job, NULL, CASE WHEN j.group_id IS NULL THEN 'it waits for members of its group, and has none'
                         WHEN w.job IS NOT NULL THEN 'the members for which it waits have ended, yet it waits'
                         ELSE 'it waits for members of its group, and names none' END
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job LEFT JOIN holdfast_group g ON g.id = j.group_id
  LEFT JOIN (SELECT a.job, sum(CASE WHEN f.job IS NULL AND a.upstream <> a.job THEN 1 ELSE 0 END) AS live,
                    sum(CASE WHEN a.outcome IS NULL AND f.state <> 'complete' AND NOT a.regardless THEN 1
                             WHEN a.upstream <> a.job AND (f.state <> a.outcome OR f.state = 'cancelled' AND f.benign = TRUE AND a.outcome IS NOT NULL) THEN 1 ELSE 0 END) AS broken
               FROM holdfast_after a LEFT JOIN holdfast_finished f ON f.job = a.upstream GROUP BY a.job) AS w ON w.job = l.job
 WHERE l.hold = ''
   AND NOT EXISTS (SELECT 1 FROM holdfast_order o WHERE o.job = l.job AND o.live = TRUE)
   AND (j.group_id IS NULL OR NOT {attended} AND {all is advanced} AND (coalesce(w.live, 0) = 0 OR w.broken > 0))

-- part: order lines
WITH line AS (SELECT o.job, o.key, o.hold, row_number() OVER (PARTITION BY o.owner, o.key ORDER BY o.seq) AS place FROM holdfast_order o WHERE o.live = TRUE)

-- name: audit: only the first job of a line starts
-- The others wait. A dead letter may be in line, and a job that could not start in time is taken out of it wherever it waits.
{order lines}
SELECT l.job, NULL, 'it is number ' || l.place || ' in the line of the order key ' || l.key || ', yet it does not wait'
  FROM line l JOIN holdfast_job j ON j.id = l.job LEFT JOIN holdfast_later w ON w.job = l.job LEFT JOIN holdfast_finished f ON f.job = l.job
 WHERE l.place > 1 AND coalesce(w.hold, 'none') <> '' AND f.job IS NULL AND j.expire_at IS NULL

-- name: audit: a line continues when its first job has ended
-- AdvanceGroups looks at every line again and again, so it moves such a line on within a while.
{order lines}
SELECT l.job, NULL, 'it is the first in the line of the order key ' || l.key || CASE WHEN w.hold = '' THEN ', yet it waits' WHEN j.id IS NULL THEN ' and does not exist' ELSE ' and has ended' END
       || ': start a worker, and check again in a minute'
  FROM line l LEFT JOIN holdfast_job j ON j.id = l.job LEFT JOIN holdfast_later w ON w.job = l.job LEFT JOIN holdfast_finished f ON f.job = l.job
 WHERE l.place = 1 AND (w.hold = '' OR j.id IS NULL OR f.job IS NOT NULL AND NOT (l.hold = TRUE AND f.state = 'failed' AND f.discarded_at IS NULL))

-- name: audit: the feed is numbered without gaps
-- A reader that continues after the last number it has read must not miss an event. Pages are deleted oldest first, and not before AdvanceGroups has read them.
SELECT NULL, 'feed at ' || t.first, 'its number should be ' || t.expected
  FROM (SELECT o.first, coalesce(lag(o.first + o.events) OVER (ORDER BY o.first), (SELECT d.purged + 1 FROM holdfast_feed d)) AS expected
          FROM holdfast_outbox o WHERE o.first IS NOT NULL) AS t
 WHERE t.first <> t.expected
UNION ALL
SELECT NULL, 'feed', 'it ends at ' || t.ends || ', and its recorded head is ' || t.head
  FROM (SELECT d.head, coalesce((SELECT max(o.first + o.events) - 1 FROM holdfast_outbox o), d.purged) AS ends FROM holdfast_feed d) AS t
 WHERE t.head <> t.ends
UNION ALL
SELECT NULL, 'feed', 'it was deleted up to ' || d.purged || ' and groups were advanced up to ' || d.advanced || ' of ' || d.head
  FROM holdfast_feed d WHERE d.purged > d.advanced OR d.advanced > d.head OR d.followed > d.advanced
UNION ALL
SELECT NULL, 'feed', 'its state row is missing' WHERE NOT EXISTS (SELECT 1 FROM holdfast_feed)

-- name: audit: a purged job is deleted
-- Its tombstone is written in the transaction that deletes it. (An id may be used again later.)
SELECT s.job, NULL, 'it was purged by the rule ' || s.rule || ', yet it still exists'
  FROM holdfast_tombstone s JOIN holdfast_job j ON j.id = s.job
 WHERE j.created_at <= s.purged_at

-- name: audit: purged jobs are counted
-- In the same transaction. Counts outlive the tombstones, so there may be fewer tombstones.
SELECT NULL, 'rule ' || s.rule, 'it has ' || s.jobs || ' tombstones, and counts ' || coalesce(c.jobs, 0)
  FROM (SELECT rule, count(*) AS jobs FROM holdfast_tombstone GROUP BY rule) AS s
  LEFT JOIN (SELECT rule, sum(jobs) AS jobs FROM holdfast_purge_count GROUP BY rule) AS c ON c.rule = s.rule
 WHERE s.jobs > coalesce(c.jobs, 0)
