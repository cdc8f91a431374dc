-- Two roles for PostgreSQL: one creates and migrates the tables, the other runs servers and workers and cannot change tables.
-- A superuser runs this once, in the database of the jobs, before the tables exist. Passwords: \password holdfast_migrator, \password holdfast_runner
CREATE ROLE holdfast_migrator LOGIN;
CREATE ROLE holdfast_runner LOGIN;
CREATE SCHEMA jobs AUTHORIZATION holdfast_migrator;
GRANT USAGE ON SCHEMA jobs TO holdfast_runner;
-- What the migrator creates, now and with later releases:
ALTER DEFAULT PRIVILEGES FOR ROLE holdfast_migrator IN SCHEMA jobs GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO holdfast_runner;
ALTER DEFAULT PRIVILEGES FOR ROLE holdfast_migrator IN SCHEMA jobs GRANT USAGE, SELECT ON SEQUENCES TO holdfast_runner;
