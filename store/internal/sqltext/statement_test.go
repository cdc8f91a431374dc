package sqltext_test

import (
	"regexp"
	"testing"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

func TestEveryPartOfAStatementIsDefinedInBothDialects(t *testing.T) {
	hole := regexp.MustCompile(`\{[a-z][a-z_ ]*\}`)
	for _, dialect := range []string{"sqlite", "postgres"} {
		for name, text := range sqltext.Load(dialect) {
			if missing := hole.FindString(text); missing != "" {
				t.Errorf("%s: %q asks for %s, and no file of the dialect says it", dialect, name, missing)
			}
		}
	}
}
