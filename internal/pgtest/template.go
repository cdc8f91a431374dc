package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A Template makes databases that begin with content. Prepare fills the first one, once in each test process; PostgreSQL
// copies its files for every test, which takes a third of the time of making the tables again.
type Template struct {
	Prepare func(url string) error

	once    sync.Once
	options string // of CREATE DATABASE
	err     error
}

// Database answers the URL of a database that begins as Prepare left the first one. All else is as with [Database].
func (m *Template) Database(t testing.TB) string {
	t.Helper()
	m.once.Do(func() { m.options, m.err = m.prepare() })
	if m.err != nil {
		t.Fatalf("pgtest: no template: %v", m.err)
	}
	return database(t, m.options)
}

func (m *Template) prepare() (options string, err error) {
	base, err := sharedBase()
	if err != nil {
		return "", err
	}
	name := "holdfast_template_" + random()
	if err := run(base, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return "", err
	}
	shared.Lock()
	shared.templates = append(shared.templates, name)
	shared.Unlock()
	url, err := within(base, name)
	if err != nil {
		return "", err
	}
	if err := m.Prepare(url); err != nil {
		return "", err
	}
	strategy, err := copyOption(base)
	return "TEMPLATE " + name + strategy, err
}

// copyOption returns the option of CREATE DATABASE that copies files: the only way before PostgreSQL 15, and since then the faster one for databases with many
// small tables.
func copyOption(base string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, base)
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	var version int
	if err := c.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return "", fmt.Errorf("the version of the server: %w", err)
	}
	if version < 150000 {
		return "", nil
	}
	return " STRATEGY FILE_COPY", nil
}
