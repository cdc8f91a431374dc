-- name: promote
-- Moves due jobs from holdfast_later to holdfast_ready, the oldest due time first, skipping rows that another process is moving. A row without a job
-- stays, for the integrity check. Jobs that were set aside behind a held tag come back, tag by tag, when the tag is no longer held. Jobs that wait
-- for members of their group (hold '') do not.
WITH RECURSIVE clock AS MATERIALIZED (SELECT holdfast_now() AS now),
due AS MATERIALIZED (
    SELECT l.ctid AS place, l.due_at, l.job, l.token, l.failures, l.crashes, l.releases, l.generation,
           CASE WHEN l.failures > 0 THEN -j.lane ELSE j.lane END AS lane, j.priority, j.queue
      FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
     WHERE l.due_at <= (SELECT now FROM clock) ORDER BY l.due_at, l.job LIMIT $1::integer FOR UPDATE OF l SKIP LOCKED
), tag AS (
    (SELECT l.hold FROM holdfast_later l WHERE l.hold > '' ORDER BY l.hold LIMIT 1)
     UNION ALL
    SELECT n.hold FROM tag t CROSS JOIN LATERAL (SELECT l.hold FROM holdfast_later l WHERE l.hold > t.hold ORDER BY l.hold LIMIT 1) n
), free AS MATERIALIZED (
    SELECT t.hold FROM tag t
     WHERE NOT EXISTS (SELECT FROM holdfast_hold h WHERE h.scope = 'tag' AND h.name = t.hold AND (h.until IS NULL OR h.until > (SELECT now FROM clock)))
), aside AS MATERIALIZED (
    SELECT b.* FROM free f CROSS JOIN LATERAL (
        SELECT l.ctid AS place, l.due_at - interval '8766000 hours' AS due_at, l.job, l.token, l.failures, l.crashes, l.releases, l.generation,
               CASE WHEN l.failures > 0 THEN -j.lane ELSE j.lane END AS lane, j.priority, j.queue
          FROM holdfast_later l JOIN holdfast_job j ON j.id = l.job
         WHERE l.hold = f.hold ORDER BY l.job LIMIT $1::integer FOR UPDATE OF l SKIP LOCKED) b
     LIMIT $1::integer - (SELECT count(*) FROM due)
), moved AS MATERIALIZED (
    SELECT * FROM due UNION ALL SELECT * FROM aside
), gone AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM moved))
), back AS (
    INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation, due_at)
    SELECT lane, priority, job, token, failures, crashes, releases, generation, due_at FROM moved
    ON CONFLICT DO NOTHING
)
SELECT queue, lane, priority, count(*)::integer FROM moved GROUP BY queue, lane, priority

-- name: find_missed_deadlines
-- Start deadlines that have passed. A row is deleted whatever is found: a job with another token has started, and a job that is not queued has ended.
-- For each job that is still queued an event is recorded.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
due AS MATERIALIZED (
    SELECT d.ctid AS place, d.at, d.job, d.token FROM holdfast_deadline d
     WHERE d.at <= (SELECT now FROM clock) ORDER BY d.at, d.job LIMIT $1::integer FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM holdfast_deadline WHERE ctid = ANY (ARRAY (SELECT place FROM due))
), broken AS MATERIALIZED (
    SELECT d.at, d.job, d.token, w.generation FROM due d JOIN holdfast_job j ON j.id = d.job CROSS JOIN LATERAL (
        SELECT r.token, r.generation FROM holdfast_ready r WHERE r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id
         UNION ALL
        SELECT l.token, l.generation FROM holdfast_later l WHERE l.job = j.id LIMIT 1) w
     WHERE w.token = d.token
), event AS (
    INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation)
    SELECT job, now, 'deadline missed', 'holdfast', 'its next attempt did not start by ' || to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), token, generation
      FROM broken, clock
)
SELECT d.job, b.job IS NOT NULL FROM due d LEFT JOIN broken b ON b.job = d.job AND b.at = d.at ORDER BY d.at, d.job

-- name: redrive_lock
-- Locks dead letters in one order. A second redrive of the same job finds it gone.
SELECT job, token, generation, state = 'failed' AND discarded_at IS NULL FROM holdfast_finished WHERE job = ANY ($1::uuid[]) ORDER BY job FOR UPDATE

-- name: redrive_facts
-- The facts that a redrive needs, and whether it took the job before. Read after the locks were granted.
SELECT j.id, j.kind, j.queue, coalesce(j.owner, ''), coalesce(j.dependency, ''), coalesce(j.unique_key, ''), j.expire_at, CASE WHEN $3::boolean THEN j.args::text END,
       coalesce((SELECT true FROM holdfast_redriven r WHERE r.redrive = $2::uuid AND r.job = j.id), false),
       coalesce((SELECT true FROM holdfast_order o WHERE o.job = j.id), false)
  FROM unnest($1::uuid[]) AS d (id) JOIN holdfast_job j ON j.id = d.id

-- name: delete_finished_jobs
-- The other half of the move follows in the same transaction.
DELETE FROM holdfast_finished WHERE job = ANY ($1::uuid[])

-- name: redrive_change
-- Facts change only at a person's request, and an event records it. NULL leaves a fact as it is.
UPDATE holdfast_job j SET args = coalesce(d.args::json, j.args), queue = coalesce(d.queue, j.queue), lane = coalesce(d.lane, j.lane)
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::integer[]) AS d (id, args, queue, lane) WHERE j.id = d.id

-- name: redrive_begin
-- The time limit of the retry policy counts from here.
INSERT INTO holdfast_progress (job, since) SELECT d.job, $2::timestamptz FROM unnest($1::uuid[]) AS d (job)
ON CONFLICT (job) DO UPDATE SET since = excluded.since

-- name: redrive_discard
-- Discarded jobs stay failed, and are dead letters no longer.
UPDATE holdfast_finished SET discarded_at = $2::timestamptz WHERE job = ANY ($1::uuid[])

-- name: record_redrive
-- Records that the redrive took each job, once, with an event.
WITH taken AS (
    INSERT INTO holdfast_redriven (redrive, job, generation, at, outcome)
    SELECT $1::uuid, d.job, d.generation, $2::timestamptz, nullif($3::text, '')
      FROM unnest($4::uuid[], $5::integer[], $6::integer[], $7::text[]) AS d (job, token, generation, reason)
)
INSERT INTO holdfast_event (job, at, name, actor, reason, token, generation, was)
SELECT d.job, $2::timestamptz, $8::text, $9::text, d.reason, d.token, d.generation, d.was::json
  FROM unnest($4::uuid[], $5::integer[], $6::integer[], $7::text[], $10::text[]) AS d (job, token, generation, reason, was)

-- name: update_redriven
-- Stores the outcome of jobs that have ended since the last call. A job of a later generation had ended in the generation of this redrive.
UPDATE holdfast_redriven r SET outcome = f.state FROM holdfast_finished f
 WHERE r.redrive = $1::uuid AND r.outcome IS NULL AND f.job = r.job AND f.generation >= r.generation

-- name: count_redriven
-- The jobs of one redrive, by outcome.
SELECT coalesce(outcome, ''), count(*)::integer FROM holdfast_redriven WHERE redrive = $1::uuid GROUP BY 1

-- name: batch_expired
-- Expired batches, the earliest expiry first. The table has one row for each batch in progress, so it needs no index for this.
SELECT id, worker, coalesce(lost, ''), claimed_at, expires_at, jobs, tokens, failures, crashes, releases, generations, started
  FROM holdfast_batch WHERE expires_at <= coalesce($1::timestamptz, (SELECT holdfast_now())) ORDER BY expires_at, id LIMIT 16 FOR UPDATE SKIP LOCKED

-- name: expiry_sweep
-- Deletes expiry rows of jobs that have ended. Only the front is read: what remains there is queued and expires next, or is processing and ends some
-- time.
DELETE FROM holdfast_expiry e USING (
    SELECT front.expire_at, front.job FROM (
        SELECT expire_at, job FROM holdfast_expiry WHERE expire_at <= (SELECT holdfast_now()) ORDER BY expire_at, job LIMIT 4 * $1::integer) front
      JOIN holdfast_finished f ON f.job = front.job) ended
 WHERE e.expire_at = ended.expire_at AND e.job = ended.job

-- name: expire
-- Moves queued jobs that have passed their expiry into a batch, wherever they wait and whatever holds their lane. Processing jobs are skipped, so
-- that they do not block the others.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now),
past AS MATERIALIZED (
    SELECT e.job, j.lane, j.priority, row_number() OVER (ORDER BY e.expire_at, e.job) AS n
      FROM holdfast_expiry e JOIN holdfast_job j ON j.id = e.job
     WHERE e.expire_at <= (SELECT now FROM clock)
       AND (EXISTS (SELECT FROM holdfast_ready r WHERE r.lane = ANY (ARRAY[j.lane, -j.lane]) AND r.priority = j.priority AND r.job = j.id)
            OR EXISTS (SELECT FROM holdfast_later l WHERE l.job = e.job))
     ORDER BY e.expire_at, e.job LIMIT $1::integer
), waiting AS MATERIALIZED (
    SELECT r.ctid AS place, r.job, r.token, r.failures, r.crashes, r.releases, r.generation, past.n
      FROM past JOIN holdfast_ready r ON r.lane = ANY (ARRAY[past.lane, -past.lane]) AND r.priority = past.priority AND r.job = past.job FOR UPDATE OF r SKIP LOCKED
), resting AS MATERIALIZED (
    SELECT l.ctid AS place, l.job, l.token, l.failures, l.crashes, l.releases, l.generation, past.n
      FROM past JOIN holdfast_later l ON l.job = past.job FOR UPDATE OF l SKIP LOCKED
), taken AS MATERIALIZED (
    SELECT * FROM waiting UNION ALL SELECT * FROM resting
), gone_waiting AS (
    DELETE FROM holdfast_ready WHERE ctid = ANY (ARRAY (SELECT place FROM waiting))
), gone_resting AS (
    DELETE FROM holdfast_later WHERE ctid = ANY (ARRAY (SELECT place FROM resting))
), lease AS (
    INSERT INTO holdfast_batch (id, worker, claimed_at, expires_at, jobs, tokens, failures, crashes, releases, generations, started)
    SELECT $2::uuid, $3::text, c.now, c.now + $4::bigint * interval '1 microsecond', m.jobs, m.tokens, m.failures, m.crashes, m.releases, m.generations, m.started
      FROM clock c, (
        SELECT array_agg(job) AS jobs, array_agg(token + 1) AS tokens, array_agg(failures) AS failures, array_agg(crashes) AS crashes,
               array_agg(releases) AS releases, array_agg(generation) AS generations, array_agg(false) AS started
          FROM (SELECT * FROM taken ORDER BY n) AS ordered) m
     WHERE m.jobs IS NOT NULL
)
SELECT count(*)::integer FROM taken
