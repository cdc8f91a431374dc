package chaos

import (
	"testing"

	"github.com/holdfastdev/holdfast"
)

// stand gives a test its ground and a store on it, until it ends.
func stand(t *testing.T, storeName, dir string) (*ground, holdfast.Store) {
	t.Helper()
	g, err := prepare(storeName, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.close() })
	s, err := openPatiently(t.Context(), g.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return g, s
}
