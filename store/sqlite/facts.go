package sqlite

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// readFacts reads the columns that read_ready_jobs, read_facts and job_facts have in common. A row that cannot be
// trusted is marked as corrupt, without its damaged values. It never stops the rows beside it.
func readFacts(st *sqlite.Stmt, l *store.Lease) {
	l.Job = holdfast.Job{
		ID:          columnID(st, 0),
		Kind:        st.ColumnText(1),
		Queue:       st.ColumnText(2),
		Priority:    int16(st.ColumnInt64(4)),
		Owner:       st.ColumnText(5),
		MaxAttempts: st.ColumnInt(7), UniqueKey: st.ColumnText(8), IdempotencyKey: st.ColumnText(9),
		CreatedAt: instant(st.ColumnInt64(10)), RunAt: columnTime(st, 14), ExpireAt: columnTime(st, 11),
		Dependency: st.ColumnText(15), RetryWithin: time.Duration(st.ColumnInt64(16)) * time.Microsecond,
		Group: columnID(st, 17), Trace: st.ColumnText(18), State: holdfast.Processing,
	}
	var wrong []string
	l.Args = json.RawMessage("null")
	if problem := readJSON(st, 3, check.MaxArgs, &l.Args); problem != "" {
		wrong = append(wrong, "its arguments are "+problem)
	}
	if tags := st.ColumnText(6); tags != "" && json.Unmarshal([]byte(tags), &l.Tags) != nil {
		l.Tags = nil
		wrong = append(wrong, "its tags are not a list of texts")
	}
	if l.Kind == "" {
		wrong = append(wrong, "it has no kind")
	}
	if l.Since = columnTime(st, 12); l.Since.IsZero() {
		l.Since = l.CreatedAt
	}
	if !st.ColumnIsNull(13) {
		if problem := readJSON(st, 13, check.MaxCheckpoint, &l.Checkpoint); problem != "" {
			wrong = append(wrong, "its checkpoint is "+problem)
		}
	}
	l.Corrupt = strings.Join(wrong, "; ")
}

// readJSON reads one JSON value, or returns what is wrong with it and leaves the target unchanged. It checks the size
// first, so that a value that is too large is not copied.
func readJSON(st *sqlite.Stmt, i, limit int, into *json.RawMessage) (problem string) {
	size := st.ColumnLen(i)
	switch {
	case st.ColumnIsNull(i) || size == 0:
		return "missing"
	case size > limit:
		return fmt.Sprintf("too large: %d bytes, and the limit is %d", size, limit)
	}
	text := make([]byte, size)
	st.ColumnBytes(i, text)
	if !check.ValidJSON(text) || !utf8.Valid(text) {
		return "not valid JSON"
	}
	*into = text
	return ""
}
