package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
)

// countedServer serves a store, counts the requests, and changes them.
func countedServer(t *testing.T, near store.Store, before func(w http.ResponseWriter, r *http.Request) bool) (c *client.Client, requests *atomic.Int64) {
	t.Helper()
	srv, err := server.New(server.Config{Store: near, Operator: ops.New(near, ops.Config{}), Open: true, IgnoreKeys: true, Log: silent})
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if before == nil || before(w, r) {
			srv.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { _ = srv.Close(); web.CloseClientConnections(); web.Close() })
	c, err = client.Dial(web.URL, client.Config{Patience: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c, requests
}

// endsLater cancels a new job after that time.
func endsLater(t *testing.T, near store.Store, after time.Duration) holdfast.ID {
	t.Helper()
	receipts, err := near.Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail"}})
	if err != nil {
		t.Fatal(err)
	}
	id := receipts[0].ID
	time.AfterFunc(after, func() { _, _ = near.Cancel(context.Background(), store.Intervention{Job: id, Actor: "test"}) })
	return id
}

func TestAWaitThroughAServerIsOneRequest(t *testing.T) {
	near := storefixture.SQLite(t).Store
	c, requests := countedServer(t, near, nil)
	for name, from := range map[string]holdfast.JobReader{"store": c.Store(), "operator": c.Operator()} {
		requests.Store(0)
		job, err := holdfast.WaitJob(t.Context(), from, endsLater(t, near, 300*time.Millisecond))
		if err != nil || job.State != holdfast.Cancelled {
			t.Errorf("%s: %s, %v", name, job.State, err)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%s: %d requests for one wait", name, n)
		}
	}
	if _, err := holdfast.WaitJob(t.Context(), c.Store(), holdfast.NewID()); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := holdfast.WaitJob(ctx, c.Store(), endsLater(t, near, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of the context: %v", err)
	}
}

func TestAWaitOutlivesARestartOfTheServerAndAnOlderOne(t *testing.T) {
	near := storefixture.SQLite(t).Store
	var refused atomic.Int64
	c, _ := countedServer(t, near, func(w http.ResponseWriter, _ *http.Request) bool {
		if refused.Add(1) <= 3 { // as a proxy answers while the server restarts
			w.WriteHeader(http.StatusBadGateway)
			return false
		}
		return true
	})
	if job, err := holdfast.WaitJob(t.Context(), c.Store(), endsLater(t, near, 0)); err != nil || job.State != holdfast.Cancelled {
		t.Errorf("after a restart: %s, %v", job.State, err)
	}

	older, requests := countedServer(t, near, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.RawQuery, "wait") {
			r.URL.RawQuery = "unknown=1" // refused like any parameter that the server does not know
		}
		return true
	})
	if job, err := holdfast.WaitJob(t.Context(), older.Store(), endsLater(t, near, 1500*time.Millisecond)); err != nil || job.State != holdfast.Cancelled {
		t.Errorf("through an older server: %s, %v", job.State, err)
	}
	if n := requests.Load(); n > 8 {
		t.Errorf("%d requests to an older server in two seconds", n)
	}
}
