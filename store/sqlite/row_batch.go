package sqlite

import (
	"regexp"
	"strconv"
	"strings"
)

// widths are how many rows one statement may insert, widest first. A run of a statement costs as much as several rows.
var widths = [...]int{16, 4, 1}

// abreast is the name of the statement that inserts so many rows at once.
func abreast(name string, rows int) string { return name + " x" + strconv.Itoa(rows) }

var placed = regexp.MustCompile(`\?[0-9]+`)

// widen repeats the row of values in an insert. A row that is there already refuses them all. OR FAIL spares the copy of
// every page that SQLite would keep to undo the statement alone: the transaction undoes it.
func widen(text string, rows int) string {
	before, after, _ := strings.Cut(text, "VALUES (")
	row, after, _ := strings.Cut(after, ")")
	per := len(placed.FindAllString(row, -1))
	all := make([]string, rows)
	for i := range all {
		all[i] = "(" + placed.ReplaceAllStringFunc(row, func(place string) string {
			n, _ := strconv.Atoi(place[1:])
			return "?" + strconv.Itoa(n+i*per)
		}) + ")"
	}
	before = strings.Replace(before, "INSERT INTO", "INSERT OR FAIL INTO", 1)
	return before + "VALUES " + strings.Join(all, ", ") + strings.TrimSuffix(after, " ON CONFLICT DO NOTHING")
}

// A sheaf is rows for one statement that wait to be written together.
type sheaf struct {
	name string
	per  int // arguments of a row
	args []any
}

// gather adds a row to those that are written by a statement when there are enough of them, or by flush.
func (t *tx) gather(name string, row ...any) error {
	for i := range *t.sheaves {
		if s := &(*t.sheaves)[i]; s.name == name {
			s.args = append(s.args, row...)
			return s.write(t.session, widths[0])
		}
	}
	*t.sheaves = append(*t.sheaves, sheaf{name, len(row), append(make([]any, 0, widths[0]*len(row)), row...)})
	return nil
}

// flush writes what was gathered.
func (t *tx) flush() error {
	for i := range *t.sheaves {
		s := &(*t.sheaves)[i]
		for _, rows := range widths {
			if err := s.write(t.session, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// write inserts so many rows at a time, as often as there are so many.
func (s *sheaf) write(to *session, rows int) error {
	n := rows * s.per
	for len(s.args) >= n {
		if _, err := to.exec(abreast(s.name, rows), s.args[:n]...); err != nil {
			s.args = s.args[:0]
			return err
		}
		s.args = s.args[:copy(s.args, s.args[n:])]
	}
	return nil
}
