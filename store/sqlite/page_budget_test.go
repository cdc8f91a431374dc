package sqlite_test

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite/vfs"

	"github.com/holdfastdev/holdfast"
)

// fewPages is how many pages a statement may read: the path down each tree, and the pages of a hundred rows. A table of
// manyRows has thousands of pages.
const fewPages = 40

// someJob is in the sixth of eight lanes.
var someJob = manyRows / 10 * 7

// questions are statements that the store runs on a large file, each for at most a hundred jobs.
var questions = []struct {
	statement string
	args      []any
}{
	{"inspect_queues", []any{5_000}},
	{"find_lines", []any{1000}},
	{"probe_lines", []any{"[1,-1,2,-2,150,-150]"}},
	{"find_priorities", []any{1}},
	{"peek", []any{1, int64(math.MinInt64), []byte{}, math.MaxInt16, 100}},
	{"read_ready_jobs", []any{1, 100, math.MinInt16, math.MaxInt16, []byte{}}},
	{"find_promote_bound", []any{2000, 99}},
	{"find_expired", []any{2000, 100}},
	{"find_free_tag", []any{2000, ""}},
	{"find_due_deadlines", []any{20, 10}},
	{"find_redriven", []any{number(3), number(someJob)}},
	{"count_redriven", []any{number(3)}},
	{"find_error_group", []any{"f500"}},
	{"job_facts", []any{number(someJob)}},
	{"find_job_place", []any{number(someJob), 6, 0}},
	{"count_ahead", []any{6, 0, number(someJob)}},
	{"check_settle_needs", nil},
	{"find_settled", []any{number(someJob), 1, "failed"}},
	{"unique_find", []any{"", "kind", fmt.Sprint(1_000_000 + someJob)}},
	{"idempotency_find", []any{"", fmt.Sprint(1_000_000 + someJob)}},
	{"check_work", nil},
	{"inspect_attempts", []any{number(someJob)}},
	{"inspect_ahead", []any{number(someJob)}},
}

// number returns the id of an inserted job.
func number(n int) []byte {
	var id holdfast.ID
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id[:]
}

var dollar = regexp.MustCompile(`\$([0-9]+)`)

// readLittle runs each statement on a new connection, which has no page in its cache.
func readLittle(t *testing.T, path string, texts map[string]string) {
	files := &counting{dir: filepath.Dir(path)}
	name, system, err := vfs.New(files)
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close()
	for _, q := range questions {
		db, err := sql.Open("sqlite", "file:"+filepath.Base(path)+"?immutable=1&vfs="+name)
		if err != nil {
			t.Fatal(err)
		}
		text, known := texts[q.statement]
		if !known {
			t.Fatalf("there is no statement %q: remove it from the questions, or name the one that replaces it", q.statement)
		}
		files.reads.Store(0)
		rows, err := db.Query(dollar.ReplaceAllString(text, "?$1"), q.args...)
		if err != nil {
			t.Fatalf("%s: %v", q.statement, err)
		}
		answers := 0
		for rows.Next() {
			answers++
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", q.statement, err)
		}
		_ = db.Close()
		read := files.reads.Load()
		t.Logf("%s: %d rows, %d pages", q.statement, answers, read)
		if read > fewPages {
			t.Errorf("statement %q reads %d pages, where %d are allowed: find out why it looks at more rows than it needs", q.statement, read, fewPages)
		}
	}
}

// A counting is a directory that counts the reads from its files.
type counting struct {
	dir   string
	reads atomic.Int64
}

// Open opens a file for reading.
func (c *counting) Open(name string) (fs.File, error) {
	f, err := os.Open(filepath.Join(c.dir, filepath.Base(name)))
	if err != nil {
		return nil, err
	}
	return &countedFile{f, &c.reads}, nil
}

type countedFile struct {
	*os.File
	reads *atomic.Int64
}

var _ io.ReadSeeker = (*countedFile)(nil)

// Read reads, as a rule, one page.
func (f *countedFile) Read(p []byte) (int, error) {
	f.reads.Add(1)
	return f.File.Read(p)
}
