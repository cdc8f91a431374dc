-- name: edit_lane
-- What identifies a job's lane besides its queue. These facts never change.
SELECT kind, coalesce(owner, ''), coalesce(dependency, '') FROM holdfast_job WHERE id = $1::uuid

-- name: read_edit_state
-- The arguments as they are stored, and whether the job was set aside behind a held tag. The job is locked already.
SELECT j.args::text, EXISTS (SELECT FROM holdfast_later l WHERE l.job = j.id AND l.hold > '') FROM holdfast_job j WHERE j.id = $1::uuid

-- name: edit_job
-- Changes the facts of a job; arguments and lane stay if NULL. The ready or later row is deleted before and inserted after, never updated, so that a
-- claim that read the old facts does not find it.
UPDATE holdfast_job SET args = coalesce($2::text::json, args), queue = $3::text, lane = coalesce($4::integer, lane), priority = $5::smallint, tags = $6::text[], max_attempts = $7::integer
 WHERE id = $1::uuid

-- name: edit_time
-- The due time of a job without attempts is also a fact of the job.
UPDATE holdfast_job SET run_at = $2::timestamptz WHERE id = $1::uuid

-- name: edit_later
-- The job waits for its due time; or, with the hold '', for members of its group, with a thousand years added to its due time.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation, hold)
SELECT $1::timestamptz + CASE WHEN $2::boolean THEN interval '8766000 hours' ELSE interval '0' END, d.job, d.token, d.failures, d.crashes, d.releases, d.generation,
       CASE WHEN $2::boolean THEN '' END
  FROM unnest($3::uuid[], $4::integer[], $5::integer[], $6::integer[], $7::integer[], $8::integer[]) AS d (job, token, failures, crashes, releases, generation)
