package postgres_test

import (
	"fmt"
	"testing"

	"github.com/holdfastdev/holdfast/store/storetest"
)

// backlog adds the same number of jobs to every place: ready in a few lanes, later, complete and failed.
const backlog = `
INSERT INTO holdfast_lane (queue, kind) SELECT 'queue-' || n, 'kind' FROM generate_series(1, 5) n ON CONFLICT DO NOTHING;
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, args)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 1 + n %% 5, 'kind', 'queue-' || 1 + n %% 5, 0, now(), '{}' FROM generate_series(%[1]d, %[2]d) n;
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation)
	SELECT 1 + n %% 5, 0, lpad(to_hex(n), 32, '0')::uuid, 0, 0, 0, 0, 1 FROM generate_series(%[1]d, %[2]d) n WHERE n %% 3 = 0;
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation)
	SELECT now() + n * interval '1 minute', lpad(to_hex(n), 32, '0')::uuid, 0, 0, 0, 0, 1 FROM generate_series(%[1]d, %[2]d) n WHERE n %% 3 = 1;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, code)
	SELECT lpad(to_hex(n), 32, '0')::uuid, 1, 0, 0, 0, 1, now(), now(), CASE WHEN n %% 2 = 0 THEN 'failed' ELSE 'complete' END, CASE WHEN n %% 2 = 0 THEN 'BROKEN' END
	  FROM generate_series(%[1]d, %[2]d) n WHERE n %% 3 = 2`

func TestFiguresReadABoundedPartOfTheStore(t *testing.T) {
	w := newWorld(t)
	storetest.Figures(t, w.meter(), func(from, to int) { w.exec(fmt.Sprintf(backlog, from, to)) })
}
