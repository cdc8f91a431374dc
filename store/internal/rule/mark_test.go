package rule_test

import (
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/store/internal/rule"
)

func TestAMarkIsReadAsItWasWritten(t *testing.T) {
	for _, newest := range []time.Time{{}, time.Date(2026, 11, 17, 12, 0, 0, 123000, time.UTC)} {
		m := rule.Mark{Lines: 3, Link: 17, Newest: newest, Hash: []byte{1, 0xab}}
		read, ok := rule.ReadMark(m.Line().Reason)
		if !ok || read.Lines != 3 || read.Link != 17 || !read.Newest.Equal(newest) || string(read.Hash) != string(m.Hash) {
			t.Errorf("%+v is read as %+v, %v", m, read, ok)
		}
	}
	// As migration 4 writes it.
	if m, ok := rule.ReadMark("0 lines up to link 9 are forgotten, the newest of 0001-01-01T00:00:00Z; its hash is ab12"); !ok || m.Link != 9 || !m.Newest.IsZero() {
		t.Errorf("%+v %v", m, ok)
	}
	for _, text := range []string{"", "nothing", "3 lines up to link 9 are forgotten, the newest of today; its hash is ab", "3 lines up to link 9 are forgotten, the newest of 0001-01-01T00:00:00Z; its hash is "} {
		if m, ok := rule.ReadMark(text); ok {
			t.Errorf("%q is read as %+v", text, m)
		}
	}
}

func TestALogIsShortenedByWholePortionsOrOnceAnHour(t *testing.T) {
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		old, limit int
		last       time.Duration
		want       bool
	}{{0, 10, 1000 * time.Hour, false}, {3, 10, time.Hour, true}, {3, 10, 59 * time.Minute, false}, {10, 10, 0, true}} {
		if got := rule.Shortens(c.old, c.limit, now.Add(-c.last), now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
