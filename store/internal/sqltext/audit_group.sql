-- The promises about groups, the feed, and what retention leaves, written as those of audit.sql are.

-- part: nothing is forgotten
-- No line of a story has been forgotten yet.
(SELECT d.anchor FROM holdfast_feed d) = 0

-- part: all is concluded
-- Groups have followed everything that happened, so whatever follows from the end of a member has been done.
EXISTS (SELECT 1 FROM holdfast_feed d WHERE d.concluded = d.head) AND NOT EXISTS (SELECT 1 FROM holdfast_outbox o WHERE o.first IS NULL)

-- name: audit: a member belongs to a group that exists
-- Otherwise nobody would ever settle what it is part of.
SELECT j.id, NULL, 'it is a member of a group that does not exist'
  FROM holdfast_job j WHERE j.group_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_group g WHERE g.id = j.group_id)

-- name: audit: members wait for members of their own group
-- A group would wait for another without knowing it.
SELECT w.job, NULL, 'it waits for a job that is not in its group'
  FROM holdfast_after w JOIN holdfast_job j ON j.id = w.job JOIN holdfast_job u ON u.id = w.upstream
 WHERE j.group_id IS NULL OR u.group_id IS NULL OR j.group_id <> u.group_id

-- name: audit: a settled group has no live member
-- An outcome is what is left when everybody has ended; a new generation of a member opens the group again in the same transaction.
SELECT j.id, NULL, 'it has not ended, yet its group is ' || g.state
  FROM holdfast_group g JOIN holdfast_job j ON j.group_id = g.id
 WHERE g.settled_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)
UNION ALL
SELECT c.id, NULL, 'this group has not settled, yet the group it is in is ' || g.state
  FROM holdfast_group g JOIN holdfast_group c ON c.parent = g.id
 WHERE g.settled_at IS NOT NULL AND c.settled_at IS NULL

-- name: audit: the outcome of a group is what its members make of it
-- Counted again from members, tombstones and groups inside. When fewer are left than were counted, tombstones have been forgotten and
-- nobody can tell any more. A group that was cancelled or has expired is called so whatever its members did.
SELECT t.id, NULL, CASE WHEN t.counted IS NULL THEN 'this group is ' || t.state || ', and its members were not counted'
                        WHEN t.total > t.counted THEN 'this group was settled with ' || t.counted || ' members, and has ' || t.total
                        ELSE 'this group is ' || t.state || ' with ' || t.counted_complete || ' of ' || t.counted || ' complete; its members make it '
                             || t.outcome || ' with ' || t.complete || ' of ' || t.total END
  FROM (SELECT g.id, g.state, g.complete AS counted_complete, g.complete + g.failed + g.cancelled AS counted, coalesce(m.total, 0) AS total, coalesce(m.complete, 0) AS complete,
               CASE WHEN coalesce(m.complete, 0) = coalesce(m.total, 0) OR g.quorum > 0 AND coalesce(m.complete, 0) >= g.quorum THEN 'ready'
                    WHEN m.complete > 0 THEN 'partial' ELSE 'failed' END AS outcome
          FROM holdfast_group g
          LEFT JOIN (SELECT u.id, count(*) AS total, sum(u.complete) AS complete
                       FROM (SELECT j.group_id AS id, CASE WHEN f.state = 'complete' THEN 1 ELSE 0 END AS complete
                               FROM holdfast_job j JOIN holdfast_finished f ON f.job = j.id WHERE j.group_id IS NOT NULL
                             UNION ALL
                             SELECT s.group_id, CASE WHEN s.state = 'complete' THEN 1 ELSE 0 END FROM holdfast_tombstone s WHERE s.group_id IS NOT NULL
                             UNION ALL
                             SELECT c.parent, CASE WHEN c.state = 'ready' THEN 1 ELSE 0 END FROM holdfast_group c WHERE c.parent IS NOT NULL AND c.settled_at IS NOT NULL) AS u
                      GROUP BY u.id) AS m ON m.id = g.id
         WHERE g.settled_at IS NOT NULL) AS t
 WHERE t.counted IS NULL OR t.total > t.counted OR t.total = t.counted AND (t.complete <> t.counted_complete OR t.state NOT IN ('cancelled', 'expired', t.outcome))

-- name: audit: a group of which nobody is live is settled
-- Liveness: once everything that happened was followed, a sealed group without a live member has its outcome, unless somebody is
-- still to look at it.
SELECT g.id, NULL, 'this group is sealed and all its members have ended, yet it has no outcome'
  FROM holdfast_group g
 WHERE g.sealed_at IS NOT NULL AND g.settled_at IS NULL AND NOT {attended} AND {all is concluded}
   AND NOT EXISTS (SELECT 1 FROM holdfast_job j WHERE j.group_id = g.id AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id))
   AND NOT EXISTS (SELECT 1 FROM holdfast_group c WHERE c.parent = g.id AND c.settled_at IS NULL)

-- name: audit: a group looks for live members where they are
-- Members above the mark are taken for ended, so a live one there would be left out of the outcome.
SELECT j.id, NULL, 'it has not ended, yet its group takes it for ended'
  FROM holdfast_group g JOIN holdfast_job j ON j.group_id = g.id AND j.id > g.live
 WHERE g.live IS NOT NULL AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = j.id)

-- name: audit: a member waits only for members that have not ended
-- Once everything that happened was followed, it may start, or is cancelled because one of them did not complete, unless somebody is still to look at its group. Outside a
-- group nobody would ever bring it back.
SELECT l.job, NULL, CASE WHEN j.group_id IS NULL THEN 'it waits for members of its group, and has none'
                         WHEN EXISTS (SELECT 1 FROM holdfast_after w WHERE w.job = l.job) THEN 'those for whom it waits have ended, yet it waits'
                         ELSE 'it waits for members of its group, and names none' END
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job LEFT JOIN holdfast_group g ON g.id = j.group_id
 WHERE l.hold = ''
   AND (j.group_id IS NULL
     OR NOT {attended} AND {all is concluded}
        AND NOT EXISTS (SELECT 1 FROM holdfast_after w
                         WHERE w.job = l.job AND NOT EXISTS (SELECT 1 FROM holdfast_finished f WHERE f.job = w.upstream))
     OR NOT {attended} AND {all is concluded}
        AND EXISTS (SELECT 1 FROM holdfast_after w JOIN holdfast_finished f ON f.job = w.upstream
                     WHERE w.job = l.job AND NOT w.regardless AND f.state <> 'complete'))

-- name: audit: the feed is numbered without a gap
-- A reader that goes on after the last number it has read must not miss anything. Pages go the oldest first, and not before groups
-- have followed them.
SELECT NULL, 'feed at ' || t.first, 'its number should be ' || t.expected
  FROM (SELECT o.first, coalesce(lag(o.first + o.events) OVER (ORDER BY o.first), (SELECT d.purged + 1 FROM holdfast_feed d)) AS expected
          FROM holdfast_outbox o WHERE o.first IS NOT NULL) AS t
 WHERE t.first <> t.expected
UNION ALL
SELECT NULL, 'feed', 'it ends at ' || t.ends || ', and its head is said to be ' || t.head
  FROM (SELECT d.head, coalesce((SELECT max(o.first + o.events) - 1 FROM holdfast_outbox o), d.purged) AS ends FROM holdfast_feed d) AS t
 WHERE t.head <> t.ends
UNION ALL
SELECT NULL, 'feed', 'it was forgotten to ' || d.purged || ' and followed to ' || d.concluded || ' of ' || d.head
  FROM holdfast_feed d WHERE d.purged > d.concluded OR d.concluded > d.head
UNION ALL
SELECT NULL, 'feed', 'the row that says where it stands is missing' WHERE NOT EXISTS (SELECT 1 FROM holdfast_feed)

-- name: audit: a purged job is gone
-- Its tombstone is written in the transaction that deletes it. (An id may be used again later.)
SELECT s.job, NULL, 'it was purged by the rule ' || s.rule || ', yet it is still there'
  FROM holdfast_tombstone s JOIN holdfast_job j ON j.id = s.job
 WHERE j.created_at <= s.purged_at

-- name: audit: purged jobs are counted
-- In the same transaction. Counts outlive the tombstones, so there may be fewer of these.
SELECT NULL, 'rule ' || s.rule, 'it has ' || s.jobs || ' tombstones, and counts ' || coalesce(c.jobs, 0)
  FROM (SELECT rule, count(*) AS jobs FROM holdfast_tombstone GROUP BY rule) AS s
  LEFT JOIN (SELECT rule, sum(jobs) AS jobs FROM holdfast_purge_count GROUP BY rule) AS c ON c.rule = s.rule
 WHERE s.jobs > coalesce(c.jobs, 0)
