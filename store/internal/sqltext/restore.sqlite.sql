-- name: read_token_floor
-- Tokens up to this may have been given to anybody before the store was restored.
SELECT floor FROM holdfast_feed WHERE one = 1

-- name: raise_token_floor
-- Every restore begins a stretch of tokens of its own.
UPDATE holdfast_feed SET floor = floor + $1 WHERE one = 1

-- name: raise_ready_tokens
-- What waits was perhaps claimed after the backup: its next token has to be a new one.
UPDATE holdfast_ready SET token = token + $1

-- name: raise_later_tokens
-- The same for what waits for its time.
UPDATE holdfast_later SET token = token + $1

-- name: raise_deadline_tokens
-- A promise is about the job with the token it was made with.
UPDATE holdfast_deadline SET token = token + $1
