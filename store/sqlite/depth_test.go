package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/store/storetest"
)

// backlog adds an equal number of jobs to every place: ready in a few lanes, later, complete and failed. Their
// arguments have the usual size: with smaller rows the tree of jobs would get another level just between the two sizes
// that are compared.
const backlog = `
BEGIN;
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 5)
INSERT INTO holdfast_lane (queue, kind) SELECT 'queue-' || n, 'kind' FROM c WHERE true ON CONFLICT DO NOTHING;
CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY, id BLOB);
WITH RECURSIVE c (n) AS (SELECT %[1]d UNION ALL SELECT n + 1 FROM c WHERE n < %[2]d) INSERT INTO numbers SELECT n, unhex(printf('%%032x', n)) FROM c;
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, args)
	SELECT id, 1 + n %% 5, 'kind', 'queue-' || (1 + n %% 5), 0, 1, '{"to":"ada@example.org","template":"welcome"}' FROM numbers;
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation)
	SELECT 1 + n %% 5, 0, id, 0, 0, 0, 0, 1 FROM numbers WHERE n %% 3 = 0;
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation)
	SELECT 4000000000000000 + n, id, 0, 0, 0, 0, 1 FROM numbers WHERE n %% 3 = 1;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, code)
	SELECT id, 1, 0, 0, 0, 1, 1, 2, CASE WHEN n %% 2 = 0 THEN 'failed' ELSE 'complete' END, CASE WHEN n %% 2 = 0 THEN 'BROKEN' END FROM numbers WHERE n %% 3 = 2;
DROP TABLE numbers;
COMMIT`

func TestFiguresReadABoundedPartOfTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	m := newMeter(t, path)
	m.Analyze()
	storetest.Figures(t, m, func(from, to int) { runBeside(t, path, fmt.Sprintf(backlog, from, to)) })
}
