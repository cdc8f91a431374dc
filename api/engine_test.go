package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A host is a server at one address that can be killed and started again.
type host struct {
	*place
	addr string
	web  *http.Server
	srv  *server.Server
}

func newHost(t testing.TB) *host {
	t.Helper()
	near, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{place: &place{TB: t, near: near}, addr: "127.0.0.1:0"}
	h.start()
	t.Cleanup(func() {
		h.kill()
		_ = near.Close()
	})
	return h
}

func (h *host) start() {
	h.Helper()
	srv, err := server.New(server.Config{Store: h.near, Desk: ops.New(h.near, ops.Config{}), Open: true, Log: silent})
	if err != nil {
		h.Fatal(err)
	}
	listener, err := net.Listen("tcp", h.addr)
	if err != nil {
		h.Fatal(err)
	}
	h.addr, h.srv, h.web = listener.Addr().String(), srv, srv.HTTP("")
	go func() { _ = h.web.Serve(listener) }()
}

// kill cuts every connection, in the middle of whatever it is.
func (h *host) kill() {
	_ = h.web.Close()
	_ = h.srv.Close()
}

// engine runs an engine far from the store until the test ends.
func (h *host) engine(cfg engine.Config, prepare func(e *engine.Engine)) {
	h.Helper()
	c, err := api.Dial("http://"+h.addr, api.Config{})
	if err != nil {
		h.Fatal(err)
	}
	cfg.Log = silent
	e, err := engine.New(c.Store(), cfg)
	if err != nil {
		h.Fatal(err)
	}
	prepare(e)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	h.Cleanup(func() {
		cancel()
		<-ended
		_ = c.Close()
	})
}

func complete(j holdfast.Job) bool { return j.State == holdfast.Complete }

func TestAnEngineFarFromItsStoreRunsRetriesAndKeepsResults(t *testing.T) {
	h := newHost(t)
	var tries atomic.Int64
	h.engine(engine.Config{Policy: failure.Policy{Backoff: failure.Fixed(10 * time.Millisecond)}}, func(e *engine.Engine) {
		_ = engine.HandleRaw(e, "flaky", func(ctx context.Context, job *engine.Raw) error {
			var saved int
			job.Resume(&saved)
			if tries.Add(1) < 3 {
				if err := job.Checkpoint(ctx, int(tries.Load())); err != nil {
					return err
				}
				return errors.New("not yet")
			}
			job.Result(map[string]int{"saved": saved})
			return nil
		})
	})
	id := h.enqueue(holdfast.Draft{Kind: "flaky", Args: []byte(`{ "odd" : 1 }`)})[0]
	if job := h.until(id, complete); job.Failures != 2 || string(job.Result) != `{"saved":2}` {
		t.Fatalf("%+v", job)
	}
	workers, err := h.near.Workers(t.Context())
	if err != nil || len(workers) != 1 || workers[0].Kinds[0] != "flaky" {
		t.Fatal(workers, err)
	}
}

func TestAnEngineOutlivesItsServerAndEveryJobRunsOnce(t *testing.T) {
	h := newHost(t)
	ran := make(map[holdfast.ID]*atomic.Int64)
	var drafts []holdfast.Draft
	for range 300 {
		d := holdfast.Draft{ID: holdfast.NewID(), Kind: "mail"}
		ran[d.ID] = &atomic.Int64{}
		drafts = append(drafts, d)
	}
	half := make(chan struct{})
	var all atomic.Int64
	h.engine(engine.Config{Slots: 4, Lease: 20 * time.Second}, func(e *engine.Engine) {
		_ = engine.HandleRaw(e, "mail", func(_ context.Context, job *engine.Raw) error {
			ran[job.ID].Add(1)
			if all.Add(1) == 150 {
				close(half)
			}
			return nil
		})
	})
	ids := h.enqueue(drafts...)
	<-half
	h.kill()
	h.start()
	for _, id := range ids {
		// What was claimed in the very moment is run again when its lease has run out: nobody heard of it.
		h.until(id, complete)
		if n := ran[id].Load(); n != 1 {
			t.Errorf("job %v ran %d times", id, n)
		}
	}
}

func TestABreakerOpensAndClosesFromFar(t *testing.T) {
	h := newHost(t)
	var down atomic.Bool
	down.Store(true)
	trouble := breaker.Config{MinCalls: 3, OpenFor: 200 * time.Millisecond, Ramp: 200 * time.Millisecond}
	h.engine(engine.Config{
		Policy:       failure.Policy{Backoff: failure.Fixed(20 * time.Millisecond), MaxAttempts: 1000},
		Dependencies: map[string]engine.Dependency{"gateway": {Breaker: trouble, NoBudget: true}},
	}, func(e *engine.Engine) {
		_ = engine.HandleRaw(e, "call", func(context.Context, *engine.Raw) error {
			if down.Load() {
				return failure.HTTPError(503, "", nil)
			}
			return nil
		}, engine.Kind{Dependency: "gateway"})
	})
	ids := h.enqueue(holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"})
	h.until(ids[0], func(holdfast.Job) bool {
		holds, err := h.near.Holds(t.Context())
		return err == nil && len(holds) > 0 && holds[0].Source == holdfast.SourceBreaker
	})
	down.Store(false)
	for _, id := range ids {
		h.until(id, complete)
	}
}
