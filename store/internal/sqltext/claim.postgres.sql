-- name: configure_planner
-- The tables grow from empty to millions of rows and shrink again within minutes, and a cached plan for one size is far too slow for the other. Every
-- statement of the store reads an index by key, so these settings force such plans; one generic plan then fits all sizes. The settings end with the
-- transaction. jit is off because plans without an index look expensive under these settings and would be compiled for nothing.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_memoize', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)

-- part: claim_holds
-- The first part of a claim without a plan: the holds in force. The parameters of these claims are queues $5 and kinds $12 (empty: all), the lines $13
-- that the store remembers as not empty (empty: no memory), and marks $8-$11.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
hold AS MATERIALIZED (
    SELECT h.scope, h.name, h.retries, h.at_most = 0 AND h.per_second IS NULL AS closed
      FROM holdfast_hold h WHERE h.until IS NULL OR h.until > (SELECT now FROM clock)
)

-- part: lanes_of_kinds
-- The lanes of a claim with few kinds in named queues, which a worker's claims usually are: searched one by one. The lanes of a closed queue are not
-- read. There is one part for each way to find lanes, and not one part for all, because an idle worker's claim costs what its plan costs to set up.
lane AS MATERIALIZED (
    SELECT l.id, l.queue, l.kind, l.owner, coalesce(nullif(l.dependency, ''), k.dependency, '') AS dependency, true AS fresh, true AS retried
      FROM unnest($5::text[]) AS n (queue) CROSS JOIN unnest($12::text[]) AS w (kind)
     CROSS JOIN LATERAL (SELECT * FROM holdfast_lane a WHERE a.queue = n.queue AND a.kind = w.kind OFFSET 0) AS l
      LEFT JOIN holdfast_kind k ON k.kind = l.kind
     WHERE cardinality($13::integer[]) = 0
       AND NOT EXISTS (SELECT FROM hold h WHERE h.scope = 'queue' AND h.closed AND NOT h.retries
                          AND (h.name = n.queue OR h.name LIKE '%*' AND starts_with(n.queue, left(h.name, -1))))
)

-- part: lanes_of_lines
-- The lanes of the lines that the store remembers.
lane AS MATERIALIZED (
    SELECT l.id, l.queue, l.kind, l.owner, coalesce(nullif(l.dependency, ''), k.dependency, '') AS dependency, n.fresh, n.retried
      FROM (SELECT abs(n) AS id, bool_or(n > 0) AS fresh, bool_or(n < 0) AS retried FROM unnest($13::integer[]) AS n GROUP BY abs(n)) AS n
     CROSS JOIN LATERAL (SELECT * FROM holdfast_lane a WHERE a.id = n.id OFFSET 0) AS l
      LEFT JOIN holdfast_kind k ON k.kind = l.kind
     WHERE (cardinality($5::text[]) = 0 OR l.queue = ANY ($5::text[])) AND (cardinality($12::text[]) = 0 OR l.kind = ANY ($12::text[]))
)

-- part: lanes_of_queues
-- The lanes of any kinds in the named queues or in all. The lanes of a closed queue are not read. Up to 16 kinds are searched one by one, more are
-- filtered.
queue AS MATERIALIZED (
    SELECT ARRAY (SELECT n.queue FROM unnest(CASE WHEN cardinality($5::text[]) > 0 THEN $5::text[] ELSE ARRAY (
                       WITH RECURSIVE known AS (
                           (SELECT a.queue FROM holdfast_lane a ORDER BY a.queue LIMIT 1)
                            UNION ALL
                           SELECT b.queue FROM known k CROSS JOIN LATERAL (SELECT a.queue FROM holdfast_lane a WHERE a.queue > k.queue ORDER BY a.queue LIMIT 1) b)
                       SELECT k.queue FROM known k) END) AS n (queue)
                   WHERE NOT EXISTS (SELECT FROM hold h WHERE h.scope = 'queue' AND h.closed AND NOT h.retries
                                        AND (h.name = n.queue OR h.name LIKE '%*' AND starts_with(n.queue, left(h.name, -1))))) AS names
), lane AS MATERIALIZED (
    SELECT l.id, l.queue, l.kind, l.owner, coalesce(nullif(l.dependency, ''), k.dependency, '') AS dependency, true AS fresh, true AS retried
      FROM queue q CROSS JOIN LATERAL unnest(q.names) AS n (queue) CROSS JOIN unnest($12::text[]) AS w (kind)
     CROSS JOIN LATERAL (SELECT * FROM holdfast_lane a WHERE a.queue = n.queue AND a.kind = w.kind OFFSET 0) AS l
      LEFT JOIN holdfast_kind k ON k.kind = l.kind
     WHERE cardinality($12::text[]) BETWEEN 1 AND 16 AND cardinality($13::integer[]) = 0
     UNION ALL
    SELECT l.id, l.queue, l.kind, l.owner, coalesce(nullif(l.dependency, ''), k.dependency, ''), true, true
      FROM holdfast_lane l LEFT JOIN holdfast_kind k ON k.kind = l.kind
     WHERE l.queue = ANY ((SELECT names FROM queue)::text[]) AND NOT cardinality($12::text[]) BETWEEN 1 AND 16
       AND (cardinality($12::text[]) = 0 OR l.kind IN (SELECT unnest($12::text[])))
)

-- part: claim_lines
-- The open lines of a claim's lanes, and the parts of each that it reads.
--
-- A line is open if no hold closes it. Empty lines of retries are left out; this is checked with a subquery and a limit for each line, because an
-- EXISTS becomes a join, and where all jobs are in one lane that join reads the whole index.
--
-- The marks leave out the dead rows of earlier claims: each row of "span" is a part of a line, from after a key ($9 priority, $10 job) up to a
-- priority ($11).
--
-- If owners have to share, or a hold limits, counts or looks at tags, one statement is not enough: then no line is open, and "planned" is true.
held AS MATERIALIZED (
    SELECT l.id, h.closed, h.retries FROM hold h CROSS JOIN lane l CROSS JOIN LATERAL (
        SELECT CASE h.scope WHEN 'queue' THEN l.queue WHEN 'kind' THEN l.kind WHEN 'owner' THEN l.owner WHEN 'dependency' THEN l.dependency ELSE '' END AS name) x
     WHERE x.name = h.name OR h.name LIKE '%*' AND x.name <> '' AND starts_with(x.name, left(h.name, -1))
), line AS MATERIALIZED (
    SELECT id, owner FROM lane WHERE fresh AND id NOT IN (SELECT id FROM held WHERE closed AND NOT retries)
     UNION ALL
    SELECT -id, owner FROM lane WHERE retried AND id NOT IN (SELECT id FROM held WHERE closed)
       AND (SELECT true FROM holdfast_ready r WHERE r.lane = -id ORDER BY r.priority, r.job LIMIT 1)
), planned AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM hold WHERE scope = 'tag') OR EXISTS (SELECT FROM held WHERE NOT closed)
        OR coalesce((SELECT min(owner) <> max(owner) FROM line), false) AS needed
), open AS MATERIALIZED (
    SELECT id FROM line WHERE NOT (SELECT needed FROM planned)
), span AS MATERIALIZED (
    SELECT o.id AS lane, coalesce(m.priority, -32769) AS priority, coalesce(m.job, '00000000-0000-0000-0000-000000000000') AS job, coalesce(m.before, 32768) AS before
      FROM open o LEFT JOIN unnest($8::integer[], $9::integer[], $10::uuid[], $11::integer[]) AS m (lane, priority, job, before) ON m.lane = o.id
     ORDER BY 2
)

-- part: claim_end
-- The end of every claim statement: rows in "taken" leave holdfast_ready, become one batch, and are returned with their facts. A ready row without a
-- job is taken and not returned: it stays in the batch for the integrity check, out of the way of other jobs. Counters with their initial values are
-- sent as NULL, which costs nothing.
--
-- If nothing was taken, one row without a job says whether a plan is needed and whether jobs are ready.
gone AS (
    DELETE FROM holdfast_ready WHERE ctid = ANY (ARRAY (SELECT place FROM taken))
), lease AS (
    INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, tokens, failures, crashes, releases, generations, started)
    SELECT $1::uuid, $2::text, c.now, c.now + $3::bigint * interval '1 microsecond', m.jobs, h.tokens, h.failures, h.crashes, h.releases, h.generations, m.started
      FROM clock c, (
        SELECT array_agg(job) AS jobs, array_agg(n <= $4::integer OR releases > 0 OR crashes > 0) AS started, max(token) > 1 OR max(generation) > 1 AS tried FROM taken) m
      LEFT JOIN LATERAL (
        SELECT array_agg(token) AS tokens, array_agg(failures) AS failures, array_agg(crashes) AS crashes, array_agg(releases) AS releases, array_agg(generation) AS generations
          FROM taken WHERE m.tried) h ON m.tried
     WHERE m.jobs IS NOT NULL
)
SELECT CASE WHEN t.n > 1 THEN NULL ELSE c.now END, CASE WHEN t.job IS NULL THEN (SELECT needed FROM planned) END,
       CASE WHEN t.job IS NULL THEN coalesce((SELECT true FROM open o CROSS JOIN LATERAL (
           SELECT FROM holdfast_ready r WHERE r.lane = o.id ORDER BY r.priority, r.job LIMIT 1) r LIMIT 1), false) END,
       CASE WHEN t.n > 1 THEN NULL ELSE (SELECT count(*) FROM lane) END,
       t.job, t.lane, t.token, nullif(t.failures, 0), nullif(t.crashes, 0), nullif(t.releases, 0), nullif(t.generation, 1),
       t.n <= $4::integer OR t.releases > 0 OR t.crashes > 0,
       j.kind, j.queue, j.priority, j.owner, j.tags, nullif(j.max_attempts, 0), j.unique_key, j.idempotency_key, j.created_at, j.run_at, j.expire_at,
       j.dependency, j.retry_within, j.group_id, j.trace, j.args,
       CASE WHEN (t.token > 1 OR t.generation > 1) AND (SELECT EXISTS (SELECT FROM holdfast_progress)) THEN (SELECT y.since FROM holdfast_progress y WHERE y.job = t.job) END,
       CASE WHEN (t.token > 1 OR t.generation > 1) AND (SELECT EXISTS (SELECT FROM holdfast_progress)) THEN (SELECT y.checkpoint FROM holdfast_progress y WHERE y.job = t.job) END
  FROM clock c LEFT JOIN taken t ON true LEFT JOIN holdfast_job j ON j.id = t.job

-- part: take_one_line
-- Takes the first $6 jobs if exactly one line is open, skipping rows that other claims have locked. If nothing was taken, the answer says whether
-- "claim" may find jobs.
taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER () AS n
      FROM (SELECT q.* FROM span s CROSS JOIN LATERAL (
                SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.releases, r.generation
                  FROM holdfast_ready r
                 WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
                 ORDER BY r.priority, r.job LIMIT $6::integer FOR UPDATE SKIP LOCKED) q
             WHERE (SELECT count(*) FROM open) = 1 AND NOT $7::boolean LIMIT $6::integer) t
)

-- part: take_many_lines
-- Counts, without locks, how many of the $6 most urgent and oldest jobs are in each open line ("share"), then takes as many from each, skipping rows
-- that other claims have locked. It first reads a few jobs of every line, and reads deeper only in lines where all of these were among the first $6.
-- A single open line needs no count.
--
-- With $7 every line gives an equal share instead. This is the last try of a claim that took nothing although jobs are ready, because other claims
-- hold the first rows of each line.
size AS MATERIALIZED (
    SELECT count(*) AS lanes, least($6::integer, $6::integer / greatest(count(*), 1) + 8) AS depth FROM open
), head AS MATERIALIZED (
    SELECT p.lane, p.priority, p.job, row_number() OVER (ORDER BY p.priority, p.job) AS n
      FROM open CROSS JOIN LATERAL (
        SELECT q.* FROM span s CROSS JOIN LATERAL (
            SELECT r.lane, r.priority, r.job FROM holdfast_ready r
             WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
             ORDER BY r.priority, r.job LIMIT (SELECT depth FROM size)) q
         WHERE s.lane = open.id LIMIT (SELECT depth FROM size)) p
     WHERE (SELECT lanes FROM size) > 1 AND NOT $7::boolean
), deep AS MATERIALIZED (
    SELECT lane FROM head GROUP BY lane HAVING count(*) = (SELECT depth FROM size) AND bool_and(n <= $6::integer)
), share AS MATERIALIZED (
    SELECT top.lane, count(*) AS n FROM (
        SELECT lane, priority, job FROM head WHERE n <= $6::integer AND lane NOT IN (SELECT lane FROM deep)
         UNION ALL
        SELECT p.lane, p.priority, p.job FROM deep CROSS JOIN LATERAL (
            SELECT q.* FROM span s CROSS JOIN LATERAL (
                SELECT r.lane, r.priority, r.job FROM holdfast_ready r
                 WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
                 ORDER BY r.priority, r.job LIMIT $6::integer) q
             WHERE s.lane = deep.lane LIMIT $6::integer) p
         ORDER BY priority, job LIMIT $6::integer) top
     GROUP BY top.lane
     UNION ALL
    SELECT open.id, $6::integer / size.lanes + 1 FROM open, size WHERE size.lanes > 1 AND $7::boolean
     UNION ALL
    SELECT open.id, $6::integer FROM open, size WHERE size.lanes = 1
), taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.priority, t.job) AS n
      FROM (SELECT r.* FROM share CROSS JOIN LATERAL (
                SELECT q.* FROM span s CROSS JOIN LATERAL (
                    SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.releases, r.generation
                      FROM holdfast_ready r
                     WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
                     ORDER BY r.priority, r.job LIMIT share.n FOR UPDATE SKIP LOCKED) q
                 WHERE s.lane = share.lane LIMIT share.n) r
             LIMIT $6::integer) t
)

-- name: claim_lane of kinds
-- For claims of few kinds in named queues, while one line is open.
{claim_holds}, {lanes_of_kinds}, {claim_lines}, {take_one_line}, {claim_end}

-- name: claim_lane of lines
-- For claims that read only the lines that the store remembers, while one of them is open.
{claim_holds}, {lanes_of_lines}, {claim_lines}, {take_one_line}, {claim_end}

-- name: claim_lane of queues
-- For all other claims, while one line is open.
{claim_holds}, {lanes_of_queues}, {claim_lines}, {take_one_line}, {claim_end}

-- name: claim of kinds
-- For claims of few kinds in named queues, when several lines are open.
{claim_holds}, {lanes_of_kinds}, {claim_lines}, {take_many_lines}, {claim_end}

-- name: claim of lines
-- For claims that read only the lines that the store remembers, when several are open.
{claim_holds}, {lanes_of_lines}, {claim_lines}, {take_many_lines}, {claim_end}

-- name: claim of queues
-- For all other claims, when several lines are open.
{claim_holds}, {lanes_of_queues}, {claim_lines}, {take_many_lines}, {claim_end}

-- part: take_from
-- For planned claims: the plan has decided everything, so no line is searched.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
open AS (SELECT 0 AS id WHERE false), lane AS (SELECT 0 AS id WHERE false), planned AS (SELECT false AS needed)

-- name: take
-- Takes the first n ($8) jobs of each line ($5) within a range of priorities ($6 to $7), as the line is now, skipping rows that other claims have
-- locked.
{take_from}, taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.priority, t.job) AS n
      FROM (SELECT q.* FROM unnest($5::integer[], $6::integer[], $7::integer[], $8::integer[]) AS s (line, low, high, n) CROSS JOIN LATERAL (
                SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.releases, r.generation
                  FROM holdfast_ready r
                 WHERE r.lane = s.line AND r.priority >= s.low AND r.priority <= s.high
                 ORDER BY r.priority, r.job LIMIT s.n FOR UPDATE SKIP LOCKED) q) t
), {claim_end}

-- name: take_keys
-- Takes exactly the jobs that the plan has read: the next ones in line may have a held tag. A job that got a tag of $8 by an edit since then is left
-- out.
{take_from}, taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.priority, t.job) AS n
      FROM (SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.releases, r.generation
              FROM unnest($5::integer[], $6::integer[], $7::uuid[]) AS k (line, priority, job)
              JOIN holdfast_ready r ON r.lane = k.line AND r.priority = k.priority AND r.job = k.job
             WHERE NOT EXISTS (SELECT FROM holdfast_job j WHERE j.id = k.job AND j.tags && $8::text[])
               FOR UPDATE OF r SKIP LOCKED) t
), {claim_end}

-- part: hold_hash
-- A hash of everything that decides which lines are open: the holds in force and the declared dependencies of kinds. Levels of rate limits are not
-- part of it.
SELECT encode(sha256(convert_to(concat(
    (SELECT string_agg(ROW (h.scope, h.name, h.source, h.retries, h.at_most, h.per_second, h.burst)::text, ' ' ORDER BY h.scope, h.name, h.source)
       FROM holdfast_hold h WHERE h.until IS NULL OR h.until > (SELECT now FROM clock)), ' and ',
    (SELECT string_agg(ROW (k.kind, k.dependency)::text, ' ' ORDER BY k.kind) FROM holdfast_kind k)), 'UTF8')), 'hex')

-- name: take_turns
-- A plan in one statement, for several owners where no limit and no held tag applies. It reads the first $9 jobs of each line ($5) and orders them by
-- fair turns: owner by owner ($6), starting at what the owner has had ($7), each job adding one over the owner's weight ($8). Of the first $10 it
-- takes as many from each line.
--
-- It takes nothing if the hash of the holds is no longer $11, if it finds fewer than $10 jobs, or if a line gave all that was read of it. A full plan
-- then reads more lines, or deeper.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
open AS (SELECT 0 AS id WHERE false), lane AS (SELECT 0 AS id WHERE false),
planned AS MATERIALIZED (SELECT ({hold_hash}) <> $11::text AS needed),
seen AS MATERIALIZED (
    SELECT s.line, s.owner, s.had + (row_number() OVER (PARTITION BY s.owner ORDER BY q.priority, q.job) - 1) / s.weight AS turn
      FROM unnest($5::integer[], $6::integer[], $7::float8[], $8::float8[]) AS s (line, owner, had, weight) CROSS JOIN LATERAL (
           SELECT r.priority, r.job FROM holdfast_ready r WHERE r.lane = s.line ORDER BY r.priority, r.job LIMIT $9::integer) q
     WHERE NOT (SELECT needed FROM planned)
), share AS MATERIALIZED (
    SELECT t.line, count(*) AS n FROM (SELECT line FROM seen ORDER BY turn, owner LIMIT $10::integer) t GROUP BY t.line
), taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.priority, t.job) AS n
      FROM (SELECT q.* FROM share s CROSS JOIN LATERAL (
                SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.releases, r.generation
                  FROM holdfast_ready r WHERE r.lane = s.line ORDER BY r.priority, r.job LIMIT s.n FOR UPDATE SKIP LOCKED) q
             WHERE (SELECT sum(n) = $10::integer AND max(n) < $9::integer FROM share)) t
), {claim_end}

-- name: take_runs
-- A claim from many lines of one owner, where no limit and no held tag applies. The places ($5 line, $6 priority) are in the order of their first
-- jobs. From each it takes at most $8 jobs after the id $7, until it has $9 jobs; later places are not read. It takes nothing if the hash of the
-- holds is no longer $10.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
open AS (SELECT 0 AS id WHERE false), lane AS (SELECT 0 AS id WHERE false),
planned AS MATERIALIZED (SELECT ({hold_hash}) <> $10::text AS needed),
taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.priority, t.job) AS n
      FROM (SELECT q.* FROM unnest($5::integer[], $6::integer[], $7::uuid[]) AS s (line, priority, after) CROSS JOIN LATERAL (
                SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.releases, r.generation
                  FROM holdfast_ready r WHERE r.lane = s.line AND r.priority = s.priority AND r.job > s.after
                 ORDER BY r.job LIMIT $8::integer FOR UPDATE SKIP LOCKED) q
             WHERE NOT (SELECT needed FROM planned) LIMIT $9::integer) t
), {claim_end}

-- name: find_lines
-- The lines of the claim's queues ($1; empty: all) and kinds ($2; empty: all) that have jobs, with their priorities and the first job of each. It
-- steps along the index from each line and priority to the next. After four times as many steps as the claim has lanes, most lines belong to other
-- claims: it stops, and searches the claim's own lines one by one.
WITH RECURSIVE own AS MATERIALIZED (
    SELECT l.id FROM holdfast_lane l WHERE l.queue = ANY ($1::text[]) AND l.kind = ANY ($2::text[])
     UNION ALL
    SELECT l.id FROM holdfast_lane l WHERE l.queue = ANY ($1::text[]) AND cardinality($2::text[]) = 0
     UNION ALL
    SELECT l.id FROM holdfast_lane l WHERE cardinality($1::text[]) = 0 AND (cardinality($2::text[]) = 0 OR l.kind = ANY ($2::text[]))
), size AS MATERIALIZED (
    SELECT 4 * count(*) AS most FROM own
), line AS (
    (SELECT r.lane, r.priority, r.job, 1 AS n FROM holdfast_ready r ORDER BY r.lane, r.priority, r.job LIMIT 1)
     UNION ALL
    SELECT n.lane, n.priority, n.job, l.n + 1 FROM line l CROSS JOIN LATERAL (
        SELECT r.lane, r.priority, r.job FROM holdfast_ready r WHERE (r.lane, r.priority) > (l.lane, l.priority) ORDER BY r.lane, r.priority, r.job LIMIT 1) n
     WHERE l.n <= (SELECT most FROM size)
), walked AS MATERIALIZED (
    SELECT count(*) <= (SELECT most FROM size) AS whole FROM line
), probed AS (
    SELECT o.line AS lane, r.priority, r.job FROM (SELECT id AS line FROM own UNION ALL SELECT -id FROM own) AS o CROSS JOIN LATERAL (
        SELECT r.priority, r.job FROM holdfast_ready r WHERE r.lane = o.line ORDER BY r.priority, r.job LIMIT 1) r
     WHERE NOT (SELECT whole FROM walked)
     UNION ALL
    SELECT p.lane, n.priority, n.job FROM probed p CROSS JOIN LATERAL (
        SELECT r.priority, r.job FROM holdfast_ready r WHERE r.lane = p.lane AND r.priority > p.priority ORDER BY r.priority, r.job LIMIT 1) n
)
SELECT lane, priority, job FROM line WHERE (SELECT whole FROM walked)
 UNION ALL
SELECT lane, priority, job FROM probed

-- name: peek
-- The first $4 jobs of each range ($1 line, $2 to $3 priority), without locks. For each job that has a tag of $5, also the first such tag.
SELECT s.n, q.priority, q.job,
       CASE WHEN cardinality($5::text[]) > 0 THEN (
           SELECT t.tag FROM holdfast_job j CROSS JOIN LATERAL unnest(j.tags) WITH ORDINALITY AS t (tag, n)
            WHERE j.id = q.job AND t.tag = ANY ($5::text[]) ORDER BY t.n LIMIT 1) END
  FROM unnest($1::integer[], $2::integer[], $3::integer[]) WITH ORDINALITY AS s (line, low, high, n) CROSS JOIN LATERAL (
       SELECT r.priority, r.job FROM holdfast_ready r WHERE r.lane = s.line AND r.priority >= s.low AND r.priority <= s.high
        ORDER BY r.priority, r.job LIMIT $4::integer) q

-- name: set_idle_timeout
-- A process that hangs inside its transaction must not block a limit for others: the database ends its session after two seconds.
SELECT set_config('idle_in_transaction_session_timeout', '2s', true)

-- name: hold_lock
-- Claims behind one limit run one after the other: the next one counts what the one before it has taken. All transactions lock holds in this order.
SELECT 1 FROM holdfast_hold h
 WHERE (h.scope, h.name, h.source) IN (SELECT d.scope, d.name, d.source FROM unnest($1::text[], $2::text[], $3::text[]) AS d (scope, name, source))
 ORDER BY h.scope, h.name, h.source FOR UPDATE

-- name: hold_read
-- The holds in force, with the present levels of rate limits.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now)
SELECT c.now, ({hold_hash}), h.scope, h.name, h.source, h.retries, h.at_most, h.per_second, h.burst,
       least(h.burst, h.level + greatest(0, extract(epoch FROM c.now - h.level_at)) * h.per_second)
  FROM clock c LEFT JOIN holdfast_hold h ON h.until IS NULL OR h.until > c.now

-- name: kind_read
-- Declared dependencies: one for each kind.
SELECT kind, dependency FROM holdfast_kind

-- name: read_weights
-- The weights of owners.
SELECT name, body::text FROM holdfast_record WHERE namespace = 'share'

-- name: count_live
-- The number of processing jobs in each line. Only limits need it.
SELECT c.lane, c.retries, c.jobs, l.queue, l.kind, l.owner, l.dependency FROM (
    SELECT x.lane, x.retries, count(*)::integer AS jobs
      FROM (SELECT (SELECT j.lane FROM holdfast_job j WHERE j.id = m.job) AS lane, m.failures > 0 AS retries FROM holdfast_leased m) x
     WHERE x.lane IS NOT NULL GROUP BY x.lane, x.retries) c
  JOIN holdfast_lane l ON l.id = c.lane

-- name: set_aside
-- Moves ready jobs with a held tag to holdfast_later, if they still have the tag. Nothing is charged and no attempt is made. Their due time is kept,
-- plus a thousand years, so that Promote does not see it.
WITH held AS MATERIALIZED (
    SELECT r.ctid AS place, r.job, r.token, r.failures, r.crashes, r.releases, r.generation, coalesce(r.due_at, j.created_at) AS due_at, d.tag
      FROM unnest($1::integer[], $2::integer[], $3::uuid[], $4::text[]) AS d (line, priority, job, tag)
      JOIN holdfast_ready r ON r.lane = d.line AND r.priority = d.priority AND r.job = d.job
      JOIN holdfast_job j ON j.id = d.job AND d.tag = ANY (j.tags) FOR UPDATE OF r SKIP LOCKED
), gone AS (
    DELETE FROM holdfast_ready WHERE ctid = ANY (ARRAY (SELECT place FROM held))
)
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
SELECT due_at + interval '8766000 hours', job, token, failures, crashes, releases, generation, tag FROM held

-- name: read_facts
-- The facts of jobs, in the columns of a claim's answer.
SELECT j.id, j.kind, j.queue, j.priority, j.owner, j.tags, nullif(j.max_attempts, 0), j.unique_key, j.idempotency_key, j.created_at, j.run_at, j.expire_at,
       j.dependency, j.retry_within, j.group_id, j.trace, j.args, y.since, y.checkpoint
  FROM unnest($1::uuid[]) AS d (id) JOIN holdfast_job j ON j.id = d.id LEFT JOIN holdfast_progress y ON y.job = d.id
