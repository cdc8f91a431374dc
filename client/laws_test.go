package client_test

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestAStoreThroughAServerConforms(t *testing.T) {
	storetest.Laws(t, storetest.Harness{Open: func(t testing.TB) *storetest.Subject { return remoteSubject(t, storefixture.SQLite(t)) }})
}

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// far serves a store and returns a client of it.
func far(t testing.TB, near store.Store, change ...func(*server.Config)) *client.Store {
	t.Helper()
	cfg := server.Config{Store: near, Operator: ops.New(near, ops.Config{}), Open: true, IgnoreKeys: true, Log: silent}
	for _, f := range change {
		f(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(srv)
	web.Config = srv.HTTP("")
	web.Start()
	c, err := client.Dial(web.URL, client.Config{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = srv.Close()
		web.CloseClientConnections()
		web.Close()
	})
	return c.Store()
}

// remoteSubject is a conformance subject behind a server.
func remoteSubject(t testing.TB, near *storetest.Subject) *storetest.Subject {
	seen := *near
	seen.Store, seen.Near = far(t, near.Store), near.Store
	seen.Reopen = func() store.Store { return far(t, near.Reopen()) }
	return &seen
}
