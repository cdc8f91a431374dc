-- name: check_set_aside
-- Whether the job was set aside behind a held tag. Then it was ready before.
SELECT 1 FROM holdfast_later WHERE job = $1 AND hold > ''

-- name: edit_job
-- The edited facts of a job; the story records the change. Without new arguments the old ones stay.
UPDATE holdfast_job SET args = coalesce($2, args), queue = $3, lane = $4, priority = $5, tags = $6, max_attempts = $7 WHERE id = $1

-- name: edit_time
-- Reschedules a job that no attempt was made of.
UPDATE holdfast_job SET run_at = $2 WHERE id = $1

-- name: count_edit
-- The edit counter. A claim plan that was made beside the writer is taken only if the counter is unchanged, so it never hands out outdated facts.
UPDATE holdfast_feed SET edits = edits + 1 WHERE one = 1
