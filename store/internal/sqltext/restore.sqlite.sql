-- name: read_token_floor
-- Tokens up to this number may have been given out before the store was restored.
SELECT floor FROM holdfast_feed WHERE one = 1

-- name: raise_token_floor
-- Every restore begins a new range of tokens.
UPDATE holdfast_feed SET floor = floor + $1 WHERE one = 1

-- name: raise_ready_tokens
-- A ready job may have been claimed after the backup was taken: its next token must be a new one.
UPDATE holdfast_ready SET token = token + $1

-- name: raise_later_tokens
-- The same for jobs that wait for their time.
UPDATE holdfast_later SET token = token + $1

-- name: raise_deadline_tokens
-- A deadline refers to its job by the token.
UPDATE holdfast_deadline SET token = token + $1
