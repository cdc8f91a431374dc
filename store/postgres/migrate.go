package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// migrate migrates the schema to the version of this binary, with one transaction for each step. Any number of processes may do so at the same time.
func (d *database) migrate(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx, time.Minute)
	defer cancel()
	steps := sqltext.Migrations("postgres")
	var err error
	for n := 0; n <= maxRetries; n++ {
		if err = d.migrateAll(ctx, steps); err == nil || ctx.Err() != nil || !retryable(err, true) {
			break
		}
		backoff(ctx, n+2)
	}
	return explain("open the database", err)
}

// migrateAll applies the missing steps. A schema that this binary cannot use is ErrUnavailable.
func (d *database) migrateAll(ctx context.Context, steps []sqltext.Migration) error {
	for {
		applied, err := d.applied(ctx)
		if err != nil {
			return err
		}
		missing, err := sqltext.Missing(steps, applied)
		if err != nil || len(missing) == 0 {
			return err
		}
		if err := d.migrateNext(ctx, steps); err != nil {
			return err
		}
	}
}

// readSchema returns the version of the tables and the statements that are missing.
func (d *database) readSchema(ctx context.Context, steps []sqltext.Migration) (found store.Schema, err error) {
	applied, err := d.applied(ctx)
	if err != nil {
		return found, err
	}
	missing, err := sqltext.Missing(steps, applied)
	if err != nil {
		return found, err
	}
	found.Version, found.Needs, found.Latest = applied.Version, applied.Needs, sqltext.Latest(steps)
	if len(missing) == 0 {
		return found, nil
	}
	var script strings.Builder
	if d.schema != "" {
		fmt.Fprintf(&script, "CREATE SCHEMA IF NOT EXISTS %q;\n", string(d.schema))
	}
	fmt.Fprintf(&script, "%s;\n%s;\n", d.sql["migration_table"], d.sql["migration_column"])
	for _, step := range missing {
		row := strings.NewReplacer("$1::integer", strconv.Itoa(step.Version), "$2::integer", strconv.Itoa(step.Needs))
		fmt.Fprintf(&script, "BEGIN;\n%s\n%s;\nCOMMIT;\n", strings.TrimSpace(d.schema.qualify(step.SQL)), row.Replace(d.sql["migration_add"]))
	}
	found.SQL = script.String()
	return found, nil
}

// checkCurrent refuses tables that this program cannot use as they are. It needs only the right to read.
func (d *database) checkCurrent(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx, time.Minute)
	defer cancel()
	found, err := d.readSchema(ctx, sqltext.Migrations("postgres"))
	if err != nil {
		return explain("open the database", err)
	}
	return found.Current()
}

// ReadSchema returns the version of the tables of a database, and the statements that lead to this program's version, for an administrator who runs them. It
// changes nothing.
func ReadSchema(ctx context.Context, c Config) (store.Schema, error) {
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	shared, config, err := c.pool(ctx)
	if err != nil {
		return store.Schema{}, err
	}
	if _, err := maxSize(config, c.MaxSize); err != nil {
		return store.Schema{}, err
	}
	schema, err := schemaOf(config, c.Schema)
	if err != nil {
		return store.Schema{}, err
	}
	d := &database{sql: statements(schema), schema: schema, work: connections{shared}}
	if shared == nil {
		config.MaxConns = 1
		config.ConnConfig.DefaultQueryExecMode = pooledMode // also behind a pooler
		own, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return store.Schema{}, explain("connect", err)
		}
		defer own.Close()
		d.work = connections{pgxPool{own}}
	}
	found, err := d.readSchema(ctx, sqltext.Migrations("postgres"))
	return found, explain("read the version of the tables", err)
}

// applied returns which steps were applied. It needs only the right to read.
func (d *database) applied(ctx context.Context) (found sqltext.Applied, err error) {
	var there bool
	if err := d.work.queryRow(ctx, d.sql["migration_table_exists"], nil, &there); err != nil || !there {
		return found, err
	}
	return found, d.work.queryRow(ctx, d.sql["migration_version"], nil, &found.Version, &found.Needs)
}

// migrateNext applies the next step, unless another process applied it while this one waited for the lock.
func (d *database) migrateNext(ctx context.Context, steps []sqltext.Migration) error {
	return d.runTx(ctx, func(tx pgx.Tx) error {
		if err := d.createSchema(ctx, tx); err != nil {
			return err
		}
		for _, name := range []string{"migration_lock", "migration_table", "migration_column"} {
			if _, err := tx.Exec(ctx, d.sql[name]); err != nil {
				return err
			}
		}
		var found sqltext.Applied
		if err := tx.QueryRow(ctx, d.sql["migration_version"]).Scan(&found.Version, &found.Needs); err != nil {
			return err
		}
		missing, err := sqltext.Missing(steps, found)
		if err != nil || len(missing) == 0 {
			return err
		}
		if err := tx.Conn().PgConn().Exec(ctx, d.schema.qualify(missing[0].SQL)).Close(); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, d.sql["migration_add"], missing[0].Version, missing[0].Needs)
		return err
	})
}

// createSchema creates the schema if it does not exist. Where it exists, no right to create one is needed.
func (d *database) createSchema(ctx context.Context, tx pgx.Tx) error {
	if d.schema == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, d.sql["migration_lock"]); err != nil {
		return err
	}
	var there bool
	if err := tx.QueryRow(ctx, d.sql["migration_schema_exists"], string(d.schema)).Scan(&there); err != nil || there {
		return err
	}
	_, err := tx.Exec(ctx, `CREATE SCHEMA "`+string(d.schema)+`"`)
	return err
}
