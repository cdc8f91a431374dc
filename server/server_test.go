package server_test

import (
	"errors"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

func TestAJobIsTheSameThroughAServer(t *testing.T) {
	ctx := t.Context()
	s, err := anystore.Open(ctx, filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv, err := server.New(server.Config{Store: s, Operator: ops.New(s, ops.Config{}), Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	defer web.Close()
	c, err := client.Dial(web.URL, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := s.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", Args: []byte(`{"big":9007199254740993}`)}, {Kind: "mail"}})
	if err != nil {
		t.Fatal(err)
	}
	job, err := c.Operator().Job(ctx, receipts[0].ID)
	if err != nil || string(job.Args) != `{"big":9007199254740993}` || job.Kind != "mail" {
		t.Fatal(job, err)
	}
	page, cursor, err := c.Operator().Jobs(ctx, store.Filter{Limit: 1, State: holdfast.Queued})
	if err != nil || len(page) != 1 || cursor == "" {
		t.Fatal(page, cursor, err)
	}
	_, err = c.Operator().Job(ctx, holdfast.NewID())
	if !errors.Is(err, holdfast.ErrNotFound) {
		t.Fatal(err)
	}
}
