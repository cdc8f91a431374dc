-- name: promote
-- Oldest due first; what another keeper is moving is skipped. A row without its job stays where it is, for the audit.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
due AS MATERIALIZED (
    SELECT l.ctid AS place, l.due_at, l.job, l.token, l.failures, l.crashes, l.interrupts, l.generation, j.lane, j.priority, j.queue
      FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
     WHERE l.due_at <= (SELECT now FROM clock) ORDER BY l.due_at, l.job LIMIT $1::integer FOR UPDATE OF l SKIP LOCKED
), gone AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM due))
), back AS (
    INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, interrupts, generation, due_at)
    SELECT lane, priority, job, token, failures, crashes, interrupts, generation, due_at FROM due
    ON CONFLICT DO NOTHING
)
SELECT queue, count(*)::integer FROM due GROUP BY queue

-- name: lease_expired
-- Whole leases, the longest silent first. There are as many rows as batches under way, so no index is kept for this.
SELECT id, worker, coalesce(lost, ''), claimed_at, expires_at, jobs, tokens, failures, crashes, interrupts, generations, started
  FROM holdfast_lease WHERE expires_at <= coalesce($1::timestamptz, (SELECT holdfast_now())) ORDER BY expires_at, id LIMIT 16 FOR UPDATE SKIP LOCKED

-- name: expiry_sweep
-- The expiry of a job that has ended is of no use to anybody. Only the front is looked at: what stands there is queued and
-- expires next, or is being processed and ends some day.
DELETE FROM holdfast_expiry e USING (
    SELECT front.expire_at, front.job FROM (
        SELECT expire_at, job FROM holdfast_expiry WHERE expire_at <= (SELECT holdfast_now()) ORDER BY expire_at, job LIMIT 4 * $1::integer) front
      JOIN holdfast_finished f ON f.job = front.job) ended
 WHERE e.expire_at = ended.expire_at AND e.job = ended.job

-- name: expire
-- Queued jobs that are past their expiry, wherever they wait and whatever holds their lane; those being processed are
-- passed over, so that they cannot stand in the way of the others.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
past AS MATERIALIZED (
    SELECT e.job, j.lane, j.priority, row_number() OVER (ORDER BY e.expire_at, e.job) AS n
      FROM holdfast_expiry e JOIN holdfast_job j ON j.id = e.job
     WHERE e.expire_at <= (SELECT now FROM clock)
       AND (EXISTS (SELECT FROM holdfast_ready r WHERE r.lane = j.lane AND r.priority = j.priority AND r.job = j.id)
            OR EXISTS (SELECT FROM holdfast_later l WHERE l.job = e.job))
     ORDER BY e.expire_at, e.job LIMIT $1::integer
), waiting AS MATERIALIZED (
    SELECT r.ctid AS place, r.job, r.token, r.failures, r.crashes, r.interrupts, r.generation, past.n
      FROM past JOIN holdfast_ready r ON r.lane = past.lane AND r.priority = past.priority AND r.job = past.job FOR UPDATE OF r SKIP LOCKED
), resting AS MATERIALIZED (
    SELECT l.ctid AS place, l.job, l.token, l.failures, l.crashes, l.interrupts, l.generation, past.n
      FROM past JOIN holdfast_later l ON l.job = past.job FOR UPDATE OF l SKIP LOCKED
), taken AS MATERIALIZED (
    SELECT * FROM waiting UNION ALL SELECT * FROM resting
), gone_waiting AS (
    DELETE FROM holdfast_ready WHERE ctid = ANY (ARRAY (SELECT place FROM waiting))
), gone_resting AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM resting))
), lease AS (
    INSERT INTO holdfast_lease (id, worker, claimed_at, expires_at, jobs, tokens, failures, crashes, interrupts, generations, started)
    SELECT $2::uuid, $3::text, c.now, c.now + $4::bigint * interval '1 microsecond', m.jobs, m.tokens, m.failures, m.crashes, m.interrupts, m.generations, m.started
      FROM clock c, (
        SELECT array_agg(job) AS jobs, array_agg(token + 1) AS tokens, array_agg(failures) AS failures, array_agg(crashes) AS crashes,
               array_agg(interrupts) AS interrupts, array_agg(generation) AS generations, array_agg(false) AS started
          FROM (SELECT * FROM taken ORDER BY n) AS ordered) m
     WHERE m.jobs IS NOT NULL
)
SELECT count(*)::integer FROM taken
