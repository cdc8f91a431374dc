package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// A Problem is one problem of a file, with what to do about it.
type Problem struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Problems are all problems of a file, by line. As an error they wrap holdfast.ErrInvalid.
type Problems []Problem

// Error returns one line for each mistake.
func (m Problems) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = fmt.Sprintf("line %d: %s", one.Line, one.Text)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns holdfast.ErrInvalid.
func (m Problems) Unwrap() error { return holdfast.ErrInvalid }

// sorted sorts the mistakes by line.
func (m Problems) sorted() Problems {
	slices.SortStableFunc(m, func(a, b Problem) int { return a.Line - b.Line })
	return m
}

// Nearest returns the known word that was probably meant, or "".
func Nearest(word string, known []string) string {
	best, least := "", 1+max(1, len(word)/3)
	for _, candidate := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the number of letters to insert, remove, change or swap with a neighbour to turn one word into the other.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
