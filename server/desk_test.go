package server_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/ops/opstest"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

// openFile opens a new store.
func openFile(t *testing.T) holdfast.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serve puts a server in front of a store.
func serve(t *testing.T, s holdfast.Store, cfg ops.Config) *httptest.Server {
	t.Helper()
	srv, err := server.New(server.Config{Store: s, Desk: ops.New(s, cfg), Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	return web
}

// far returns a desk through a server.
func far(t *testing.T, s holdfast.Store, cfg ops.Config) ops.Desk {
	t.Helper()
	c, err := api.Dial(serve(t, s, cfg).URL, api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.Desk()
}

func TestTheDeskConformsThroughAServer(t *testing.T) {
	opstest.Run(t, openFile, far)
}
