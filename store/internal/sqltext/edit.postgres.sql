-- name: edit_lane
-- What a job's lane is found by, besides its queue. It never changes.
SELECT kind, coalesce(owner, ''), coalesce(dependency, '') FROM holdfast_job WHERE id = $1::uuid

-- name: read_edit_state
-- The job is locked where it stands: its arguments to the letter, and whether it was set aside behind a held tag.
SELECT j.args::text, EXISTS (SELECT FROM holdfast_later l WHERE l.job = j.id AND l.hold > '') FROM holdfast_job j WHERE j.id = $1::uuid

-- name: edit_job
-- The facts of a queued job as a person wants them; the story says so. No arguments or lane: as they were. The row of its place is
-- deleted before and inserted after, never updated: a claim that saw the old facts does not find the new row.
UPDATE holdfast_job SET args = coalesce($2::text::json, args), queue = $3::text, lane = coalesce($4::integer, lane), priority = $5::smallint, tags = $6::text[], max_attempts = $7::integer
 WHERE id = $1::uuid

-- name: edit_time
-- A job that no attempt was made of is scheduled anew.
UPDATE holdfast_job SET run_at = $2::timestamptz WHERE id = $1::uuid

-- name: edit_later
-- It waits for its time; or for members of its group, a thousand years late.
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, interrupts, generation, hold)
SELECT $1::timestamptz + CASE WHEN $2::boolean THEN interval '8766000 hours' ELSE interval '0' END, d.job, d.token, d.failures, d.crashes, d.interrupts, d.generation,
       CASE WHEN $2::boolean THEN '' END
  FROM unnest($3::uuid[], $4::integer[], $5::integer[], $6::integer[], $7::integer[], $8::integer[]) AS d (job, token, failures, crashes, interrupts, generation)
