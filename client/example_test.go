package client_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store/anystore"
)

type Greet struct {
	Name string `json:"name"`
}

func (Greet) Kind() string { return "greet" }

// serve starts a server on a temporary store. Programs connect to one that runs elsewhere: holdfast serve.
func serve(ctx context.Context) (address string, stop func()) {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	jobs, err := anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	s, err := server.New(server.Config{Store: jobs, Operator: ops.New(jobs, ops.Config{}), Open: true})
	if err != nil {
		panic(err)
	}
	listener := httptest.NewServer(s)
	return listener.URL, func() {
		listener.Close()
		s.Close()
		jobs.Close()
		os.RemoveAll(dir)
	}
}

// A client is a store and an operator over HTTP.
func ExampleDial() {
	ctx := context.Background()
	address, stop := serve(ctx)
	defer stop()

	c, err := client.Dial(address, client.Config{}) // with a key, if the server asks for one
	if err != nil {
		panic(err)
	}
	defer c.Close()
	receipt, err := holdfast.Enqueue(ctx, c.Store(), Greet{Name: "Ada"})
	if err != nil {
		panic(err)
	}
	job, err := c.Operator().Job(ctx, receipt.ID)
	fmt.Println(job.Kind, job.State, err)
	// Output: greet queued <nil>
}
