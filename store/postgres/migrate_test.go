package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openDatabase connects to an empty database as Open does, without migrating it.
func openDatabase(t *testing.T, in schema) *database {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.Database(t))
	must(t, err)
	t.Cleanup(pool.Close)
	return &database{sql: statements(in), schema: in, work: connections{pgxPool{pool}}}
}

func (d *database) mustExec(t *testing.T, text string) {
	t.Helper()
	must(t, d.work.exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol))
}

// A newer release adds a table. Its step is applied by Open and by the printed statements, also where the table of versions has no column needs yet.
func TestTheNextStepIsAppliedToTablesThatDoNotSayWhatStepsNeed(t *testing.T) {
	steps := sqltext.Migrations("postgres")
	latest := sqltext.Latest(steps)
	next := sqltext.Migration{Version: latest + 1, Needs: latest, SQL: "CREATE TABLE made_up (n integer);"}
	newer := append(steps, next)
	for how, apply := range map[string]func(*testing.T, *database){
		"migrate": func(t *testing.T, d *database) { must(t, d.migrateAll(t.Context(), newer)) },
		"the printed statements": func(t *testing.T, d *database) {
			found, err := d.readSchema(t.Context(), newer)
			must(t, err)
			d.mustExec(t, found.SQL)
		},
	} {
		for _, in := range []schema{"", "work"} {
			for _, prepare := range []string{"SELECT 1", "ALTER TABLE holdfast_migration DROP COLUMN needs"} {
				d := openDatabase(t, in)
				must(t, d.migrateAll(t.Context(), steps))
				d.mustExec(t, d.schema.qualify(prepare))
				apply(t, d)
				d.mustExec(t, "INSERT INTO made_up VALUES (1)")
				old, err := d.readSchema(t.Context(), steps)
				must(t, err)
				if old.Version != latest+1 || old.Needs != latest || old.SQL != "" || old.Current() != nil {
					t.Errorf("%s after %q: a program that knows version %d finds %+v", how, prepare, latest, old)
				}
				must(t, d.migrateAll(t.Context(), steps)) // does nothing
				must(t, d.migrateAll(t.Context(), newer))
			}
		}
	}
}
