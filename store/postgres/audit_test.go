package postgres_test

import (
	"context"
	"testing"
	"time"
)

// retriedJobs adds jobs that failed once and then completed.
const retriedJobs = `
INSERT INTO holdfast_lane (queue, kind) VALUES ('default', 'kind');
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, args)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 1, 'kind', 'default', 0, now(), '{}' FROM generate_series(1, 50000) n;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 2, 1, 0, 0, 1, now(), now(), 'complete' FROM generate_series(1, 50000) n;
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, code)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 1, 1, 'w', now(), now(), 'queued', 'failure', 1, 'BROKEN' FROM generate_series(1, 50000) n;
ANALYZE`

// An integrity check compares every job with its attempts. With the planner settings of the queries for a page of jobs, it would compare every job
// with every attempt, and take more than a minute and a half. It takes about a second.
func TestAnIntegrityCheckComparesEachJobWithItsOwnAttempts(t *testing.T) {
	w := newWorld(t)
	w.exec(retriedJobs)
	ctx, cancel := context.WithTimeout(w.ctx, 45*time.Second)
	defer cancel()
	_, err := w.store.CheckIntegrity(ctx)
	w.ok(err)
}
