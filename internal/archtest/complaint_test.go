package archtest

import (
	"fmt"
	"testing"
)

// A complaint names a place and says what to do about it.
type complaint struct {
	path string
	line int
	text string
}

func (s source) complain(line int, format string, args ...any) complaint {
	return complaint{s.path, line, fmt.Sprintf(format, args...)}
}

func report(t *testing.T, bad []complaint) {
	t.Helper()
	for _, c := range bad {
		t.Errorf("%s:%d: %s", c.path, c.line, c.text)
	}
}
