package sqlite

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// loadJobs is storetest.Load in SQL. Only failed jobs have facts, because no operation reads those of the others. Rows
// have the usual size: the size decides at how many rows a tree gets another level.
const loadJobs = `
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA temp_store = MEMORY; BEGIN;
CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT max($rows$, $held$)) SELECT n FROM c;
CREATE TEMP TABLE loaded AS SELECT q.queue, 'mail' AS kind, CASE WHEN $lanes$ > 1 THEN 'owner-' || n ELSE '' END AS owner, n - 1 AS place
  FROM (SELECT '$ready$' AS queue UNION ALL SELECT 'held' UNION ALL SELECT 'ended') AS q CROSS JOIN numbers WHERE n <= $lanes$;
INSERT INTO holdfast_lane (queue, kind, owner) SELECT queue, kind, owner FROM loaded WHERE true ON CONFLICT DO NOTHING;
CREATE TEMP TABLE lanes AS SELECT l.id, d.queue, d.place FROM loaded d CROSS JOIN holdfast_lane l ON l.queue = d.queue AND l.kind = d.kind AND l.owner = d.owner AND l.dependency = '';
CREATE INDEX temp.lanes_place ON lanes (queue, place, id);
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation)
SELECT l.id, 0, unhex(printf('$prefix$%030x', l.place * ($rows$ / $lanes$) + n)), 0, 0, 0, 0, 1 FROM lanes l CROSS JOIN numbers WHERE l.queue = '$ready$' AND n <= $rows$ / $lanes$;
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation)
SELECT l.id, 0, unhex(printf('$prefix$%030x', $rows$ + l.place * ($held$ / $lanes$) + n)), 0, 0, 0, 0, 1 FROM lanes l CROSS JOIN numbers WHERE l.queue = 'held' AND n <= $held$ / $lanes$;
INSERT INTO holdfast_later (due_at, job, token, failures, crashes, releases, generation)
SELECT 4000000000000000 + n, unhex(printf('$prefix$%030x', $held$ + $rows$ + n)), 0, 0, 0, 0, 1 FROM numbers WHERE n <= $rows$;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker)
SELECT unhex(printf('$prefix$%030x', $held$ + 2 * $rows$ + n)), 1, 0, 0, 0, 1, 1, 2, 'complete', 'worker-of-some-host-0001' FROM numbers WHERE n <= $rows$;
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, started_at, finished_at, state, worker, code, fingerprint)
SELECT unhex(printf('$prefix$%030x', $held$ + 3 * $rows$ + n)), 1, 1, 0, 0, 1, 1, 2, 'failed', 'worker-of-some-host-0001', 'BROKEN', 'print-BROKEN' FROM numbers WHERE n <= $rows$;
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, count, cap, code, category, message, fingerprint)
SELECT unhex(printf('$prefix$%030x', $held$ + 3 * $rows$ + n)), 1, 1, 'w', 1, 2, 'failed', 'failure', 1, 1, 'BROKEN', 'test', 'it broke', 'print-BROKEN' FROM numbers WHERE n <= $rows$;
INSERT INTO holdfast_job (id, lane, kind, queue, priority, created_at, owner, args)
SELECT unhex(printf('$prefix$%030x', $held$ + 3 * $rows$ + n)), l.id, 'mail', 'ended', 0, 1, CASE WHEN $lanes$ > 1 THEN 'owner-' || l.place + 1 END, '{"to":"ada@example.org","template":"welcome"}'
  FROM numbers CROSS JOIN lanes l WHERE l.queue = 'ended' AND l.place = n % $lanes$ AND n <= $rows$;
DROP TABLE lanes; DROP TABLE loaded; DROP TABLE numbers;
COMMIT; PRAGMA journal_mode = WAL`

func TestOtherJobsCostNothing(t *testing.T) {
	storetest.Flat(t, newMeter(t, filepath.Join(t.TempDir(), "jobs.db")), soak.Pick("SQLite: rows of each sort beside which operations are measured", 60_000, 300_000))
}

func TestTwoHundredKindsInOneQueueCostLikeOne(t *testing.T) {
	storetest.Kinds(t, newMeter(t, filepath.Join(t.TempDir(), "jobs.db")))
}

func TestOrderKeysCostClaimsNothing(t *testing.T) {
	storetest.Lines(t, newMeter(t, filepath.Join(t.TempDir(), "jobs.db")), soak.Pick("SQLite: lines, and jobs in one line, beside which operations are measured", 10_000, 100_000))
}

// newMeter returns a meter that counts the pages of a new file.
func newMeter(t *testing.T, path string) *storetest.BlockMeter {
	pagesRead(t, path, func(store.Store) {})
	return &storetest.BlockMeter{
		Run:     func(work func(store.Store)) int { return pagesRead(t, path, work) },
		Load:    func(l storetest.Load) { load(t, path, l) },
		Analyze: func() { runBeside(t, path, "ANALYZE") },
		// The writer checks every twentieth of a second for commits of other processes.
		Patience: 200 * time.Millisecond,
	}
}

func load(t testing.TB, path string, l storetest.Load) {
	t.Helper()
	ready := "settled"
	if l.Lanes > 1 {
		ready = "backlog"
	}
	runBeside(t, path, strings.NewReplacer("$ready$", ready, "$prefix$", l.Prefix, "$rows$", strconv.Itoa(l.Rows), "$held$", strconv.Itoa(l.Held), "$lanes$", strconv.Itoa(l.Lanes)).Replace(loadJobs))
}

// runBeside runs a script on its own connection.
func runBeside(t testing.TB, path, script string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := (&session{conn: conn}).runScript(script); err != nil {
		t.Fatal(err)
	}
}

// pagesRead counts the pages that the connections of a store read while work runs, from their caches or from the file.
func pagesRead(t testing.TB, path string, work func(store.Store)) int {
	t.Helper()
	db, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	// The first claim of a process reads the names of all lanes, once.
	if _, err := db.Claim(context.Background(), store.Claim{Worker: "w", Queues: []string{"none"}, Limit: 1, Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	before := db.pagesRead()
	work(db)
	n := db.pagesRead() - before
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// pagesRead returns how many pages the connections of an idle store have read.
func (s *Store) pagesRead() (n int) {
	n = connectionReads(s.writer.session)
	for _, r := range []*reader{s.reader, s.claims} {
		var lent []*session
		for range cap(r.idle) {
			lent = append(lent, <-r.idle)
		}
		for _, one := range lent {
			n += connectionReads(one)
			r.idle <- one
		}
	}
	return n
}

// connectionReads returns how many pages a connection has read. The driver does not report it, so the library behind it
// is asked.
func connectionReads(s *session) (n int) {
	if s == nil || s.conn == nil {
		return 0
	}
	conn := reflect.ValueOf(s.conn).Elem().FieldByName("conn")
	tls := libc.NewTLS()
	defer tls.Close()
	out := tls.Alloc(16)
	defer tls.Free(16)
	for _, counter := range []int32{lib.SQLITE_DBSTATUS_CACHE_HIT, lib.SQLITE_DBSTATUS_CACHE_MISS} {
		lib.Xsqlite3_db_status(tls, uintptr(conn.Uint()), counter, out, out+8, 0)
		n += int(binary.NativeEndian.Uint32(libc.GoBytes(out, 4)))
	}
	return n
}
