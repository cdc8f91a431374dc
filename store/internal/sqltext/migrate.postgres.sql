-- name: migration_lock
-- Processes that start together take turns, step by step. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(5721944081463207)

-- name: migration_table
-- Made under the lock, because two processes that make it at once would collide.
CREATE TABLE IF NOT EXISTS holdfast_migration (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())

-- name: migration_table_exists
-- Looks without needing the right to make anything.
SELECT to_regclass('holdfast_migration') IS NOT NULL

-- name: migration_version
-- Steps are numbered from one; none yet is zero.
SELECT coalesce(max(version), 0) FROM holdfast_migration

-- name: migration_add
-- The step is taken.
INSERT INTO holdfast_migration (version) VALUES ($1::integer)

-- name: read_durability
-- Settings without which acknowledged work can be lost in a power cut.
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off' ORDER BY name
