package server_test

import (
	"errors"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

func TestAJobIsTheSameThroughAServer(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv, err := server.New(server.Config{Store: s, Desk: ops.New(s, ops.Config{}), Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	defer web.Close()
	c, err := api.Dial(web.URL, api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", Args: []byte(`{"big":9007199254740993}`)}, {Kind: "mail"}})
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.Desk().Job(ctx, receipts[0].ID)
	if err != nil || string(job.Args) != `{"big":9007199254740993}` || job.Kind != "mail" {
		t.Fatal(job, err)
	}
	page, cursor, err := c.Desk().Jobs(ctx, holdfast.Filter{Limit: 1, State: holdfast.Queued})
	if err != nil || len(page) != 1 || cursor == "" {
		t.Fatal(page, cursor, err)
	}
	_, err = c.Desk().Job(ctx, holdfast.NewID())
	if !errors.Is(err, holdfast.ErrNotFound) {
		t.Fatal(err)
	}
}
