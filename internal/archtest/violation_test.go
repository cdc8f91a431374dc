package archtest

import (
	"fmt"
	"testing"
)

// A violation names a place that breaks a rule and says what to do about it.
type violation struct {
	path string
	line int
	text string
}

func (v violation) String() string { return fmt.Sprintf("%s:%d: %s", v.path, v.line, v.text) }

func (s source) violation(line int, format string, args ...any) violation {
	return violation{s.path, line, fmt.Sprintf(format, args...)}
}

// report fails the test once for each violation.
func report(t *testing.T, bad []violation) {
	t.Helper()
	for _, v := range bad {
		t.Error(v)
	}
}
