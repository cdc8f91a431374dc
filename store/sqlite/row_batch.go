package sqlite

import (
	"regexp"
	"strconv"
	"strings"
)

// rowCounts are the numbers of rows that one insert may have, largest first. Running a statement costs as much as
// inserting several rows, so rows of many calls are inserted together.
var rowCounts = [...]int{16, 4, 1}

// multiRowName returns the name of the form of a statement that inserts this many rows.
func multiRowName(name string, rows int) string { return name + " x" + strconv.Itoa(rows) }

var positionalParam = regexp.MustCompile(`\?[0-9]+`)

// multiRowInsert returns an insert with its row of values repeated. ON CONFLICT DO NOTHING is removed: a row that
// exists already fails the whole statement, and the caller repeats its call row by row (see Enqueue). OR FAIL spares
// SQLite the statement journal, a copy of every page that would let it undo this statement alone: the transaction
// undoes it.
func multiRowInsert(text string, rows int) string {
	before, after, _ := strings.Cut(text, "VALUES (")
	row, after, _ := strings.Cut(after, ")")
	per := len(positionalParam.FindAllString(row, -1))
	all := make([]string, rows)
	for i := range all {
		all[i] = "(" + positionalParam.ReplaceAllStringFunc(row, func(place string) string {
			n, _ := strconv.Atoi(place[1:])
			return "?" + strconv.Itoa(n+i*per)
		}) + ")"
	}
	before = strings.Replace(before, "INSERT INTO", "INSERT OR FAIL INTO", 1)
	return before + "VALUES " + strings.Join(all, ", ") + strings.TrimSuffix(after, " ON CONFLICT DO NOTHING")
}

// A rowBatch is rows for one insert statement that are inserted together.
type rowBatch struct {
	name    string
	columns int // arguments in a row
	args    []any
}

// addRow adds a row to the batch of a statement. Rows are inserted when the batch is full, or by flushRows. Until then
// no statement sees them.
func (t *tx) addRow(name string, row ...any) error {
	for i := range *t.rowBatches {
		if s := &(*t.rowBatches)[i]; s.name == name {
			s.args = append(s.args, row...)
			return s.write(t.session, rowCounts[0])
		}
	}
	*t.rowBatches = append(*t.rowBatches, rowBatch{name, len(row), append(make([]any, 0, rowCounts[0]*len(row)), row...)})
	return nil
}

// flushRows inserts all rows that were added.
func (t *tx) flushRows() error {
	for i := range *t.rowBatches {
		s := &(*t.rowBatches)[i]
		for _, rows := range rowCounts {
			if err := s.write(t.session, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// write inserts rows in groups of the given number while the batch has that many. After an error the batch is empty:
// the transaction is rolled back.
func (s *rowBatch) write(to *session, rows int) error {
	n := rows * s.columns
	for len(s.args) >= n {
		if _, err := to.exec(multiRowName(s.name, rows), s.args[:n]...); err != nil {
			s.args = s.args[:0]
			return err
		}
		s.args = s.args[:copy(s.args, s.args[n:])]
	}
	return nil
}
