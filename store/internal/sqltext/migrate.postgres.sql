-- name: migration_lock
-- Processes that start at the same time take turns, step by step. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(5721944081463207)

-- name: migration_table
-- Created under the lock, because two processes that create it at the same time would collide. needs is the lowest version that a program must know to use
-- tables with the step; NULL: the step itself.
CREATE TABLE IF NOT EXISTS holdfast_migration (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), needs integer)

-- name: migration_column
-- The first tables had no column needs. It is added with the next step, in the transaction of that step.
ALTER TABLE holdfast_migration ADD COLUMN IF NOT EXISTS needs integer

-- name: migration_schema_exists
-- CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even if the schema exists.
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)

-- name: migration_table_exists
-- Needs no right to create anything.
SELECT to_regclass('holdfast_migration') IS NOT NULL

-- name: migration_version
-- Steps are numbered from one; 0 means none. A row is read as JSON, because the column needs may be missing.
SELECT coalesce(max(version), 0), coalesce(max(coalesce((to_jsonb(m) ->> 'needs')::integer, version)), 0) FROM holdfast_migration m

-- name: migration_add
-- Records that the step was applied.
INSERT INTO holdfast_migration (version, needs) VALUES ($1::integer, $2::integer)

-- name: read_durability
-- Settings that can lose acknowledged jobs in a power failure if they are off.
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off' ORDER BY name
