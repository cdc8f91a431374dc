package server_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/internal/opstest"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// openFile opens a new store.
func openFile(t *testing.T) store.Store {
	t.Helper()
	s, err := anystore.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serve puts a server in front of a store.
func serve(t *testing.T, s store.Store, cfg ops.Config) *httptest.Server {
	t.Helper()
	srv, err := server.New(server.Config{Store: s, Operator: ops.New(s, cfg), Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	return web
}

// far returns an operator through a server.
func far(t *testing.T, s store.Store, cfg ops.Config) ops.Operator {
	t.Helper()
	c, err := client.Dial(serve(t, s, cfg).URL, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.Operator()
}

func TestTheOperatorConformsThroughAServer(t *testing.T) {
	opstest.Run(t, openFile, far)
}
