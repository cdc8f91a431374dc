package ops_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/internal/opstest"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := anystore.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestOperatorOnSQLite(t *testing.T) {
	opstest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "jobs.db")) }, opstest.Near)
}

func TestOperatorOnPostgreSQL(t *testing.T) {
	opstest.Run(t, func(t *testing.T) store.Store { return open(t, storefixture.Database(t)) }, opstest.Near)
}
