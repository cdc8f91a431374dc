package chaos

import (
	"testing"

	"github.com/holdfastdev/holdfast/store"
)

// openDatabase gives a test a database and an open store until the test ends.
func openDatabase(t *testing.T, storeName, dir string) (*database, store.Store) {
	t.Helper()
	db, err := prepareDatabase(storeName, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.close() })
	s, err := openWithRetry(t.Context(), db.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return db, s
}
