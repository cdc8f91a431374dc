package sqlite

import (
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// openSession opens a connection to a file as Open does, without its checks.
func openSession(t *testing.T, path string) *session {
	t.Helper()
	s, err := connect(Config{Path: path}, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A newer release adds a table. Its step is applied by Open and by the printed statements, also where the table of versions has no column needs yet.
func TestTheNextStepIsAppliedToTablesThatDoNotSayWhatStepsNeed(t *testing.T) {
	steps := sqltext.Migrations("sqlite")
	latest := sqltext.Latest(steps)
	next := sqltext.Migration{Version: latest + 1, Needs: latest, SQL: "CREATE TABLE holdfast_made_up (n INTEGER) STRICT;"}
	newer := append(steps, next)
	for how, apply := range map[string]func(*session) error{
		"migrate": func(s *session) error { return migrateTo(s, newer) },
		"the printed statements": func(s *session) error {
			found, err := schemaOf(s, newer)
			if err != nil {
				return err
			}
			return s.runScript(found.SQL)
		},
	} {
		for _, prepare := range []string{"", "ALTER TABLE holdfast_migration DROP COLUMN needs"} {
			s := openSession(t, filepath.Join(t.TempDir(), "jobs.db"))
			must(t, migrateTo(s, steps))
			must(t, s.runScript(prepare))
			must(t, apply(s))
			must(t, s.runScript("INSERT INTO holdfast_made_up VALUES (1)"))
			old, err := schemaOf(s, steps)
			must(t, err)
			if old.Version != latest+1 || old.Needs != latest || old.SQL != "" || old.Current() != nil {
				t.Errorf("%s after %q: a program that knows version %d finds %+v", how, prepare, latest, old)
			}
			must(t, migrateTo(s, steps)) // does nothing
			must(t, migrateTo(s, newer))
		}
	}
}
