package ops_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/ops/opstest"
	"github.com/holdfastdev/holdfast/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string) holdfast.Store {
	t.Helper()
	s, err := store.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestDeskOnSQLite(t *testing.T) {
	opstest.Run(t, func(t *testing.T) holdfast.Store { return open(t, filepath.Join(t.TempDir(), "jobs.db")) }, opstest.Near)
}

func TestDeskOnPostgreSQL(t *testing.T) {
	opstest.Run(t, func(t *testing.T) holdfast.Store { return open(t, pgtest.Database(t)) }, opstest.Near)
}
