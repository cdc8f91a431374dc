-- Promises that are written differently on PostgreSQL.

-- name: audit: a job has an id
-- The type keeps its length; only zero is left to find.
SELECT NULL, 'job ' || j.id, 'its id is not one' FROM holdfast_job j WHERE j.id = '00000000-0000-0000-0000-000000000000'

-- name: audit: arguments are within their limit
-- Larger ones were written around the store.
SELECT j.id, NULL, 'its arguments have ' || octet_length(CAST(j.args AS text)) || ' bytes' FROM holdfast_job j WHERE octet_length(CAST(j.args AS text)) > 1048576

-- name: audit: the members of a lease are aligned
-- The table checks it too; a misaligned lease would settle one job with another's token.
SELECT NULL, 'lease ' || l.id, 'its arrays differ in length'
  FROM holdfast_lease l
 WHERE NOT coalesce(cardinality(l.tokens) = cardinality(l.jobs) AND cardinality(l.failures) = cardinality(l.jobs) AND cardinality(l.crashes) = cardinality(l.jobs)
        AND cardinality(l.interrupts) = cardinality(l.jobs) AND cardinality(l.generations) = cardinality(l.jobs) AND cardinality(l.started) = cardinality(l.jobs), true)

-- name: audit: a job set aside has the tag that is held
-- Otherwise the end of that hold is none of its business, and it would wait for good.
SELECT l.job, NULL, 'it is set aside behind the tag ' || l.hold || ', which it does not have'
  FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
 WHERE l.hold <> '' AND NOT coalesce(l.hold = ANY (j.tags), false)

-- part: known
-- Ten seconds after it was placed no claim is under way any more that could have missed the hold.
m.claimed_at > h.since + interval '10 seconds'

-- name: audit: a page of the feed names as many as it counts
-- Otherwise events would be told of the wrong jobs, or of none.
SELECT NULL, 'feed at ' || coalesce(o.first, 0), 'it counts ' || o.events || ' events and does not name as many'
  FROM holdfast_outbox o
 WHERE CASE WHEN o.name = 'story' THEN coalesce(cardinality(o.story), 0) <> o.events
            ELSE coalesce(cardinality(o.jobs), 0) <> o.events OR coalesce(cardinality(o.tokens), 0) <> o.events END

-- part: attended
-- Somebody is still to look at the group.
g.attend
