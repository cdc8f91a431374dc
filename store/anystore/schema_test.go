package anystore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A site is a store, and a connection beside it.
type site struct {
	address string
	db      *sql.DB
	now     string // an instant, as the table of migrations has it
}

// sites returns an empty store on each database.
func sites(t *testing.T) map[string]site {
	file, url := filepath.Join(t.TempDir(), "jobs.db"), pgtest.Database(t)
	all := map[string]site{"sqlite": {address: file, now: "0"}, "postgres": {address: url, now: "now()"}}
	for name, driver := range map[string]string{"sqlite": "sqlite", "postgres": "pgx"} {
		s := all[name]
		opened, err := anystore.Open(t.Context(), s.address)
		ok(t, err)
		ok(t, opened.Close())
		s.db, err = sql.Open(driver, s.address)
		ok(t, err)
		t.Cleanup(func() { _ = s.db.Close() })
		all[name] = s
	}
	return all
}

func (s site) exec(t *testing.T, text string) {
	t.Helper()
	_, err := s.db.Exec(text)
	ok(t, err)
}

// record adds a step to the table of migrations. needs is a number or NULL.
func (s site) record(t *testing.T, version int, needs string) {
	t.Helper()
	s.exec(t, fmt.Sprintf("INSERT INTO holdfast_migration (version, at, needs) VALUES (%d, %s, %s)", version, s.now, needs))
}

// TestTablesOfANewerReleaseCanBeUsedIfEachOfItsStepsAllowsIt makes steps up: it records them without changing tables.
func TestTablesOfANewerReleaseCanBeUsedIfEachOfItsStepsAllowsIt(t *testing.T) {
	for name, s := range sites(t) {
		known, err := anystore.ReadSchema(t.Context(), s.address)
		ok(t, err)
		if known.Version != known.Latest || known.Needs < 1 || known.Needs > known.Latest || known.SQL != "" {
			t.Fatalf("%s: a new store has %+v", name, known)
		}
	}
	for _, c := range []struct {
		what    string
		prepare func(t *testing.T, s site, latest int)
		refused string // empty: the store can be used
	}{
		{"a step that needs the newest step of this program", func(t *testing.T, s site, latest int) { s.record(t, 99, fmt.Sprint(latest)) }, ""},
		{"a step that needs less", func(t *testing.T, s site, latest int) { s.record(t, 99, "1") }, ""},
		{"a step that needs itself", func(t *testing.T, s site, _ int) { s.record(t, 99, "99") }, "to version 99, which needs a program that knows version 99 or later"},
		{"a step that does not say what it needs", func(t *testing.T, s site, _ int) { s.record(t, 99, "NULL") }, "to version 99, which needs a program that knows version 99 or later"},
		{"a step before the last that needs itself", func(t *testing.T, s site, latest int) {
			s.record(t, 98, "98")
			s.record(t, 99, fmt.Sprint(latest))
		}, "to version 99, which needs a program that knows version 98 or later"},
		{"a table from before the column", func(t *testing.T, s site, _ int) { s.exec(t, "ALTER TABLE holdfast_migration DROP COLUMN needs") }, ""},
		{"a newer step in a table from before the column", func(t *testing.T, s site, _ int) {
			s.exec(t, "ALTER TABLE holdfast_migration DROP COLUMN needs")
			s.exec(t, "INSERT INTO holdfast_migration (version, at) VALUES (99, "+s.now+")")
		}, "to version 99, which needs a program that knows version 99 or later"},
	} {
		t.Run(c.what, func(t *testing.T) {
			said := map[string]bool{}
			for name, s := range sites(t) {
				before, err := anystore.ReadSchema(t.Context(), s.address)
				ok(t, err)
				c.prepare(t, s, before.Latest)
				if c.refused == "" {
					expectUsable(t, name, s)
					continue
				}
				said[expectRefused(t, name, s, c.refused, before.Latest)] = true
			}
			if len(said) > 1 {
				t.Errorf("the stores use different words: %v", said)
			}
		})
	}
}

// expectUsable opens the store both ways and enqueues a job each time.
func expectUsable(t *testing.T, name string, s site) {
	t.Helper()
	found, err := anystore.ReadSchema(t.Context(), s.address)
	if err != nil || found.SQL != "" || found.Current() != nil {
		t.Errorf("%s: the schema is %+v, %v", name, found, err)
	}
	for _, open := range []func(context.Context, string) (store.Store, error){anystore.Open, anystore.OpenExisting} {
		opened, err := open(t.Context(), s.address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := holdfast.Enqueue(t.Context(), opened, greeting{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, opened.Close())
	}
}

type greeting struct{}

func (greeting) Kind() string { return "greeting" }

// expectRefused expects that all three ways to open the store fail with one line that names both versions and what to do. It returns the line.
func expectRefused(t *testing.T, name string, s site, says string, latest int) string {
	t.Helper()
	_, schemaErr := anystore.ReadSchema(t.Context(), s.address)
	_, openErr := anystore.Open(t.Context(), s.address)
	_, existingErr := anystore.OpenExisting(t.Context(), s.address)
	says += fmt.Sprintf("; this program knows version %d: upgrade this program", latest)
	for _, err := range []error{schemaErr, openErr, existingErr} {
		if !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; wanted one line with %q", name, err, says)
		}
	}
	_, line, _ := strings.Cut(fmt.Sprint(openErr), "the tables")
	return line
}

func TestTheNewestSchemaIsThatOfTablesJustMade(t *testing.T) {
	newest := anystore.NewestSchema()
	for name, s := range sites(t) {
		found, err := anystore.ReadSchema(t.Context(), s.address)
		ok(t, err)
		if found != newest || newest.Needs < 1 || newest.Needs > newest.Version {
			t.Errorf("%s: new tables have %+v, and this program knows %+v", name, found, newest)
		}
	}
}
