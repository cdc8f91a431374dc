package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A host is a server at one address that can be killed and started again.
type host struct {
	*testServer
	addr string
	key  string // key of scope worker, for remote engines
	log  logged
	web  *http.Server
	srv  *server.Server
}

// logged are the log lines of remote engines.
type logged struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func newHost(t testing.TB) *host {
	t.Helper()
	near, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{testServer: &testServer{TB: t, near: near}, addr: "127.0.0.1:0"}
	_, h.key, err = ops.New(near, ops.Config{}).CreateKey(t.Context(), apikey.Request{Name: "far", Scope: apikey.Worker}, ops.Actor{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(func() {
		h.kill()
		_ = near.Close()
		if said := h.log.lines.String(); strings.Contains(said, "use a key of") || strings.Contains(said, "key is bound") || strings.Contains(said, "this key") || strings.Contains(said, "a worker") {
			t.Error("an engine was refused a part of its work:", said)
		}
	})
	return h
}

func (h *host) start() {
	h.Helper()
	srv, err := server.New(server.Config{Store: h.near, Operator: ops.New(h.near, ops.Config{}), Engine: engine.Config{RetentionWarning: -1}, Log: silent})
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

// kill breaks every connection.
func (h *host) kill() {
	_ = h.web.Close()
	_ = h.srv.Close()
}

// engine runs a remote engine until the test ends.
func (h *host) engine(cfg engine.Config, prepare func(e *engine.Engine)) {
	h.Helper()
	c, err := client.Dial("http://"+h.addr, client.Config{Key: h.key})
	if err != nil {
		h.Fatal(err)
	}
	cfg.Log = slog.New(slog.NewTextHandler(&h.log, nil))
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
		engine.HandleRaw(e, "flaky", func(ctx context.Context, job *engine.Raw) error {
			var saved int
			if _, err := job.Resume(&saved); err != nil {
				return err
			}
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
		engine.HandleRaw(e, "mail", func(_ context.Context, job *engine.Raw) error {
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
		// A job that was claimed at that moment runs again after its lease has expired, because the answer was lost.
		h.until(id, complete)
		if n := ran[id].Load(); n != 1 {
			t.Errorf("job %v ran %d times", id, n)
		}
	}
}

func TestABreakerOpensAndClosesThroughAServer(t *testing.T) {
	h := newHost(t)
	var down atomic.Bool
	down.Store(true)
	problemKind := breaker.Config{MinCalls: 3, OpenFor: 200 * time.Millisecond, Ramp: 200 * time.Millisecond}
	h.engine(engine.Config{
		Policy:       failure.Policy{Backoff: failure.Fixed(20 * time.Millisecond), MaxAttempts: 1000},
		Dependencies: map[string]engine.Dependency{"gateway": {Breaker: problemKind, NoBudget: true}},
	}, func(e *engine.Engine) {
		engine.HandleRaw(e, "call", func(context.Context, *engine.Raw) error {
			if down.Load() {
				return &failure.HTTPError{Status: 503}
			}
			return nil
		}, engine.KindOptions{Dependency: "gateway"})
	})
	ids := h.enqueue(holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"}, holdfast.Draft{Kind: "call"})
	h.until(ids[0], func(holdfast.Job) bool {
		holds, err := h.near.Holds(t.Context())
		return err == nil && len(holds) > 0 && holds[0].Source == store.SourceBreaker
	})
	down.Store(false)
	for _, id := range ids {
		h.until(id, complete)
	}
}

// eventually waits until a condition is true.
func (h *host) eventually(what string, so func() bool) {
	h.Helper()
	for end := time.Now().Add(3 * time.Minute); !so(); {
		if time.Now().After(end) {
			h.Fatalf("it never came about: %s\n%s", what, h.log.lines.String())
		}
		_, _ = h.near.Await(h.Context(), []string{"never"}, 20*time.Millisecond)
	}
}

func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func TestAnEngineWithAWorkersKeyDoesAllThatEnginesDo(t *testing.T) {
	h := newHost(t)
	operator, ada, ctx := ops.New(h.near, ops.Config{}), ops.Actor{Name: "ada"}, t.Context()
	_, err := operator.ApplyPolicy(ctx, ops.PolicyRequest{Text: "dependencies:\n  gateway:\n    limit: {at_most: 3}\nowners:\n  acme: {share: 3}\n"}, ada)
	h.must(err)
	var heal atomic.Bool
	h.engine(engine.Config{RetentionWarning: -1, Policy: failure.Policy{MaxAttempts: 1}}, func(e *engine.Engine) {
		engine.HandleRaw(e, "broken", func(context.Context, *engine.Raw) error {
			if heal.Load() {
				return nil
			}
			return errors.New("not today")
		})
		engine.HandleRaw(e, "fine", func(context.Context, *engine.Raw) error { return nil })
	})
	h.eventually("a limit of the policy is placed, under the policy's name", func() bool {
		holds, err := h.near.Holds(ctx)
		return err == nil && len(holds) == 1 && holds[0].Source == store.SourceLimit && holds[0].Actor == "policy"
	})
	dead := h.enqueue(holdfast.Draft{Kind: "broken"}, holdfast.Draft{Kind: "broken"})
	for _, id := range dead {
		h.until(id, func(j holdfast.Job) bool { return j.State == holdfast.Failed })
	}
	heal.Store(true)
	order, err := operator.StartRedrive(ctx, redrive.Spec{Filter: store.Filter{Kind: "broken"}, PerSecond: 100, Actor: "olga", Reason: "mended"})
	h.must(err)
	for _, id := range dead {
		h.until(id, complete)
	}
	h.eventually("the redrive is done", func() bool {
		r, err := operator.Redrive(ctx, order)
		return err == nil && r.State == redrive.Done
	})
	history, err := h.near.History(ctx, dead[0])
	h.must(err)
	if i := slices.IndexFunc(history.Events, func(e store.Event) bool { return e.Name == "redrive" }); i < 0 || history.Events[i].Actor != "olga" {
		t.Error("a redriven job does not name the operator:", history.Events)
	}
	h.must(operator.PauseDuty(ctx, "promote", time.Millisecond, ada))
	_, err = operator.SetSchedule(ctx, schedule.Schedule{Name: "often", Every: time.Second, Draft: holdfast.Draft{Kind: "fine"}}, ada)
	h.must(err)
	h.must(h.near.Apply(ctx, store.Change{Artifacts: []store.Artifact{{Job: dead[1], Name: "result", Ref: "r", ExpireIn: time.Microsecond}}}))
	h.eventually("a slot has made a job, a pause has ended and an artifact is gone", func() bool {
		plans, err := operator.Schedules(ctx, 1)
		things, lost := h.near.Artifacts(ctx, store.ArtifactFilter{Job: dead[1]})
		story, gone := h.near.Events(ctx, "duty/promote", 10)
		return err == nil && lost == nil && gone == nil && len(plans) == 1 && plans[0].Runs > 0 && len(things) == 1 && !things[0].ExpiredAt.IsZero() &&
			slices.ContainsFunc(story, func(e store.Event) bool { return e.Name == "resumed" && e.Actor == "holdfast (key far)" })
	})
	heal.Store(false)
	letter := h.enqueue(holdfast.Draft{Kind: "broken"})[0]
	h.until(letter, func(j holdfast.Job) bool { return j.State == holdfast.Failed })
	h.must(operator.ApplyRetention(ctx, []store.RetentionRule{{Name: "all", For: 0}}, ada))
	h.must(operator.RunDuty(ctx, "retention", ada))
	h.eventually("a rule warns that it will delete dead letters", func() bool {
		story, err := h.near.Events(ctx, "retention", 10)
		return err == nil && slices.ContainsFunc(story, func(e store.Event) bool { return e.Name == "warning" })
	})
	h.must(operator.RunDuty(ctx, "retention", ada))
	h.eventually("then it deletes them", func() bool {
		_, err := h.near.Job(ctx, letter)
		return errors.Is(err, holdfast.ErrPurged)
	})
	if shares, err := operator.Shares(ctx); err != nil || len(shares) != 1 || shares[0].Weight != 3 {
		t.Error("shares of the policy:", shares, err)
	}
}
