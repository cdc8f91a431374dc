package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

// A far store is a store behind a server. Both are in this process, so its CPU time includes both ends.
type far struct {
	*client.Store
	server *server.Server
	web    *http.Server
}

// plenty are limits that the benchmark does not reach: it measures the HTTP path, not the limits.
var plenty = server.Limits{PerSecond: math.MaxInt32, InFlight: 4096, Running: 4096, Bytes: 1 << 30}

// goFar serves a store on loopback, and connects to it with a key as any worker does.
func goFar(ctx context.Context, near store.Store) (*far, error) {
	operator := ops.New(near, ops.Config{})
	_, text, err := operator.CreateKey(ctx, apikey.Request{Name: fmt.Sprintf("bench-%d", os.Getpid()), Scope: apikey.Worker}, ops.Actor{Name: "bench", Reason: "benchmark over HTTP"})
	if err != nil {
		return nil, err
	}
	s, err := server.New(server.Config{Store: near, Operator: operator, Limits: plenty, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	f := &far{server: s, web: s.HTTP("")}
	go f.web.Serve(listener)
	c, err := client.Dial("http://"+listener.Addr().String(), client.Config{Key: text})
	if err != nil {
		return nil, errors.Join(err, f.web.Close(), s.Close())
	}
	f.Store = c.Store()
	return f, nil
}

// Close stops the server and leaves its store open.
func (f *far) Close() error { return errors.Join(f.Store.Close(), f.web.Close(), f.server.Close()) }
