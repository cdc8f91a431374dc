-- name: steer
-- Tables here go from empty to millions and back within minutes, and a cached plan made for one is poison for the other.
-- Every statement of ours walks an index by key, so say so, and one plan serves all sizes; the settings end with the
-- transaction. Plans that must scan look expensive then, and must not be compiled for it.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_memoize', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)

-- part: claim_open
-- The lanes that no hold closes, and in each the stretches to look at: what its marks ($8-$11: after this key, before that
-- priority) leave out is the dead rows of what was claimed before.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
open AS MATERIALIZED (
    SELECT l.id FROM holdfast_lane l
     WHERE l.queue = ANY ($1::text[])
       AND NOT EXISTS (SELECT FROM holdfast_hold h
                        WHERE (h.scope = 'queue' AND h.name = l.queue OR h.scope = 'kind' AND h.name = l.kind)
                          AND (h.until IS NULL OR h.until > (SELECT now FROM clock)))
), span AS MATERIALIZED (
    SELECT o.id AS lane, coalesce(m.priority, -32769) AS priority, coalesce(m.job, '00000000-0000-0000-0000-000000000000') AS job, coalesce(m.before, 32768) AS before
      FROM open o LEFT JOIN unnest($8::integer[], $9::integer[], $10::uuid[], $11::integer[]) AS m (lane, priority, job, before) ON m.lane = o.id
     ORDER BY 2
)

-- part: claim_end
-- What was taken leaves ready, becomes one lease, and is handed out with its facts. A row without its job is taken and not
-- handed out: it stays for the audit, out of the others' way. Columns that say nothing are null, which costs nothing to send.
gone AS (
    DELETE FROM holdfast_ready WHERE ctid = ANY (ARRAY (SELECT place FROM taken))
), lease AS (
    INSERT INTO holdfast_lease (id, worker, claimed_at, expires_at, jobs, tokens, failures, crashes, interrupts, generations, started)
    SELECT $3::uuid, $4::text, c.now, c.now + $5::bigint * interval '1 microsecond', m.jobs, h.tokens, h.failures, h.crashes, h.interrupts, h.generations, m.started
      FROM clock c, (
        SELECT array_agg(job) AS jobs, array_agg(n <= $6::integer OR interrupts > 0 OR crashes > 0) AS started, max(token) > 1 AS tried FROM taken) m
      LEFT JOIN LATERAL (
        SELECT array_agg(token) AS tokens, array_agg(failures) AS failures, array_agg(crashes) AS crashes, array_agg(interrupts) AS interrupts, array_agg(generation) AS generations
          FROM taken WHERE m.tried) h ON m.tried
     WHERE m.jobs IS NOT NULL
)
SELECT CASE WHEN t.n > 1 THEN NULL ELSE c.now END, CASE WHEN t.job IS NULL THEN EXISTS (SELECT FROM open o JOIN holdfast_ready r ON r.lane = o.id) END,
       t.job, t.lane, t.token, nullif(t.failures, 0), nullif(t.crashes, 0), nullif(t.interrupts, 0), nullif(t.generation, 1),
       t.n <= $6::integer OR t.interrupts > 0 OR t.crashes > 0,
       j.kind, j.queue, j.priority, j.owner, j.tags, nullif(j.max_attempts, 0), j.unique_key, j.idempotency_key, j.created_at, j.run_at, j.expire_at, j.args,
       CASE WHEN t.token > 1 AND (SELECT EXISTS (SELECT FROM holdfast_carry)) THEN (SELECT y.since FROM holdfast_carry y WHERE y.job = t.job) END,
       CASE WHEN t.token > 1 AND (SELECT EXISTS (SELECT FROM holdfast_carry)) THEN (SELECT y.checkpoint FROM holdfast_carry y WHERE y.job = t.job) END
  FROM clock c LEFT JOIN taken t ON true LEFT JOIN holdfast_job j ON j.id = t.job

-- name: claim_lane
-- When one lane is open, its first $2, skipping what others are taking. If nothing was taken, the answer says in a row of its own
-- whether "claim" may find something.
{claim_open}, taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER () AS n
      FROM (SELECT q.* FROM span s CROSS JOIN LATERAL (
                SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.interrupts, r.generation
                  FROM holdfast_ready r
                 WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
                 ORDER BY r.priority, r.job LIMIT $2::integer FOR UPDATE SKIP LOCKED) q
             WHERE (SELECT count(*) FROM open) = 1 AND NOT $7::boolean LIMIT $2::integer) t
), {claim_end}

-- name: claim
-- Peek without locks to learn how many of the first $2 stand in each open lane, then take so many from each, skipping
-- what others are taking. The peek looks a little way into every lane, and deeper only where all it saw was among the
-- first; a single open lane needs none. With $7 the lanes share evenly: the way out when nothing was taken although
-- something is there, which is what the answer says in a row of its own then.
{claim_open}, size AS MATERIALIZED (
    SELECT count(*) AS lanes, least($2::integer, $2::integer / greatest(count(*), 1) + 8) AS depth FROM open
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
    SELECT lane FROM head GROUP BY lane HAVING count(*) = (SELECT depth FROM size) AND bool_and(n <= $2::integer)
), share AS MATERIALIZED (
    SELECT top.lane, count(*) AS n FROM (
        SELECT lane, priority, job FROM head WHERE n <= $2::integer AND lane NOT IN (SELECT lane FROM deep)
         UNION ALL
        SELECT p.lane, p.priority, p.job FROM deep CROSS JOIN LATERAL (
            SELECT q.* FROM span s CROSS JOIN LATERAL (
                SELECT r.lane, r.priority, r.job FROM holdfast_ready r
                 WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
                 ORDER BY r.priority, r.job LIMIT $2::integer) q
             WHERE s.lane = deep.lane LIMIT $2::integer) p
         ORDER BY priority, job LIMIT $2::integer) top
     GROUP BY top.lane
     UNION ALL
    SELECT open.id, $2::integer / size.lanes + 1 FROM open, size WHERE size.lanes > 1 AND $7::boolean
     UNION ALL
    SELECT open.id, $2::integer FROM open, size WHERE size.lanes = 1
), taken AS MATERIALIZED (
    SELECT t.*, row_number() OVER (ORDER BY t.priority, t.job) AS n
      FROM (SELECT r.* FROM share CROSS JOIN LATERAL (
                SELECT q.* FROM span s CROSS JOIN LATERAL (
                    SELECT r.ctid AS place, r.lane, r.priority, r.job, r.token + 1 AS token, r.failures, r.crashes, r.interrupts, r.generation
                      FROM holdfast_ready r
                     WHERE r.lane = s.lane AND (r.priority, r.job) > (s.priority, s.job) AND r.priority < s.before
                     ORDER BY r.priority, r.job LIMIT share.n FOR UPDATE SKIP LOCKED) q
                 WHERE s.lane = share.lane LIMIT share.n) r
             LIMIT $2::integer) t
), {claim_end}

-- name: facts
-- The facts of jobs whose places were found another way, in the form of a claim's answer.
SELECT j.id, j.kind, j.queue, j.priority, j.owner, j.tags, nullif(j.max_attempts, 0), j.unique_key, j.idempotency_key, j.created_at, j.run_at, j.expire_at, j.args,
       y.since, y.checkpoint
  FROM unnest($1::uuid[]) AS d (id) JOIN holdfast_job j ON j.id = d.id LEFT JOIN holdfast_carry y ON y.job = d.id
