-- Checks that are written differently on PostgreSQL.

-- name: audit: a job has an id
-- The column type guarantees the length, so only the zero id is left to find.
SELECT NULL, 'job ' || j.id, 'its id is not one' FROM holdfast_job j WHERE j.id = '00000000-0000-0000-0000-000000000000'

-- name: audit: arguments are within their limit
-- Larger arguments were not written by the store.
SELECT j.id, NULL, 'its arguments have ' || octet_length(CAST(j.args AS text)) || ' bytes' FROM holdfast_job j WHERE octet_length(CAST(j.args AS text)) > 1048576

-- name: audit: the members of a lease are aligned
-- A check constraint says the same. With misaligned arrays, a job would be settled with the token of another.
SELECT NULL, 'lease ' || l.id, 'its arrays differ in length'
  FROM holdfast_batch l
 WHERE NOT coalesce(cardinality(l.tokens) = cardinality(l.jobs) AND cardinality(l.failures) = cardinality(l.jobs) AND cardinality(l.crashes) = cardinality(l.jobs)
        AND cardinality(l.releases) = cardinality(l.jobs) AND cardinality(l.generations) = cardinality(l.jobs) AND cardinality(l.started) = cardinality(l.jobs), true)

-- name: audit: a job set aside has the tag that is held
-- Otherwise the end of that hold would not release the job, and it would wait for good.
SELECT l.job, NULL, 'it is set aside behind the tag ' || l.hold || ', which it does not have'
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
 WHERE l.hold <> '' AND NOT coalesce(l.hold = ANY (j.tags), false)

-- part: known
-- Claims take less than ten seconds. A claim later than that after the hold was placed must have seen it.
m.claimed_at > h.since + interval '10 seconds'

-- name: audit: a page of the feed names as many as it counts
-- Otherwise events would be delivered for the wrong jobs, or for none.
SELECT NULL, 'feed at ' || coalesce(o.first, 0), 'it counts ' || o.events || ' events and does not name as many'
  FROM holdfast_outbox o
 WHERE CASE WHEN o.name = 'story' THEN coalesce(cardinality(o.story), 0) <> o.events
            ELSE coalesce(cardinality(o.jobs), 0) <> o.events OR coalesce(cardinality(o.tokens), 0) <> o.events END

-- part: attended
-- The group is flagged: AdvanceGroups has yet to check it.
g.attend
