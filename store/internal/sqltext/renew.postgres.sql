-- name: batch_renew
-- One small update, however many jobs run: the arrays are not touched.
UPDATE holdfast_batch SET expires_at = (SELECT holdfast_now()) + $2::bigint * interval '1 microsecond' WHERE id = ANY ($1::uuid[])

-- name: batch_started
-- Only for batches in which a job started since.
UPDATE holdfast_batch SET started = $2::boolean[] WHERE id = $1::uuid

-- name: save_note
-- A checkpoint or progress that is not given stays as it was.
INSERT INTO holdfast_progress AS y (job, checkpoint, percent, note, noted_at)
VALUES ($1::uuid, $2::text::json, $3::double precision, $4::text, CASE WHEN $3::double precision IS NOT NULL THEN $5::timestamptz END)
ON CONFLICT (job) DO UPDATE SET checkpoint = coalesce(excluded.checkpoint, y.checkpoint),
   percent  = CASE WHEN excluded.noted_at IS NULL THEN y.percent ELSE excluded.percent END,
   note     = CASE WHEN excluded.noted_at IS NULL THEN y.note ELSE excluded.note END,
   noted_at = coalesce(excluded.noted_at, y.noted_at)

-- name: upsert_worker
-- The first call sets when the worker started.
WITH clock AS MATERIALIZED (SELECT holdfast_now() AS now)
INSERT INTO holdfast_worker AS w (name, queues, kinds, slots, version, codes, policy, misses, started_at, seen_at, until)
SELECT $1::text, $2::text[], $3::text[], $4::integer, nullif($6::text, ''), nullif($7::text, ''), $8::integer, nullif($9::text, ''), now, now, now + $5::bigint * interval '1 microsecond' FROM clock
ON CONFLICT (name) DO UPDATE SET queues = excluded.queues, kinds = excluded.kinds, slots = excluded.slots, version = excluded.version,
    codes = excluded.codes, policy = excluded.policy, misses = excluded.misses, seen_at = excluded.seen_at, until = excluded.until

-- name: declare_kinds
-- Declared dependencies of kinds. Every worker sends them with every call, so only changes are written and locked.
INSERT INTO holdfast_kind AS k (kind, dependency)
SELECT d.kind, d.dependency FROM unnest($1::text[], $2::text[]) AS d (kind, dependency)
 WHERE NOT EXISTS (SELECT FROM holdfast_kind o WHERE o.kind = d.kind AND o.dependency = d.dependency)
 ORDER BY d.kind
ON CONFLICT (kind) DO UPDATE SET dependency = excluded.dependency

-- name: delete_worker
-- The worker is leaving.
DELETE FROM holdfast_worker WHERE name = $1::text

-- name: find_cancels_in_batches
-- Members of these batches with a cancel request. Read after the batches are locked. Usually there is no request at all, and then no member is
-- searched for.
SELECT c.job FROM holdfast_cancel c JOIN holdfast_batch l ON c.job = ANY (l.jobs)
 WHERE (SELECT true FROM holdfast_cancel LIMIT 1) AND l.id = ANY ($1::uuid[])
