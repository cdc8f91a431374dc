-- name: check_set_aside
-- Whether it was set aside behind a held tag: it was claimable then.
SELECT 1 FROM holdfast_later WHERE job = $1 AND hold > ''

-- name: edit_job
-- The facts of a queued job as a person wants them; the story says so. No arguments: as they were.
UPDATE holdfast_job SET args = coalesce($2, args), queue = $3, lane = $4, priority = $5, tags = $6, max_attempts = $7 WHERE id = $1

-- name: edit_time
-- A job that no attempt was made of is scheduled anew.
UPDATE holdfast_job SET run_at = $2 WHERE id = $1

-- name: count_edit
-- A claim that has read the facts of a job beside the writer sees by this that they may be others by now.
UPDATE holdfast_feed SET edits = edits + 1 WHERE one = 1
