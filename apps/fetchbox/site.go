package main

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/api"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/pages"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

// A site serves everything over HTTP: the API, the pages, health checks and metrics. It logs and counts every request.
type site struct {
	http.Handler
	health *web.Health
	events *events.Streams
}

// site returns the site of this process. The caller must call Close before it stops the server, because event streams do not end by themselves.
func (a *app) site() (*site, error) {
	streams, err := events.New(a.jobs, events.Config{
		Source: "/fetchbox", Log: a.log, Operator: true, Change: publicCode, TooMany: tooManyStreams,
		BadAfter: refusal.Invalid("after must be the id of the last event that you received, or be left out."),
	})
	if err != nil {
		return nil, err
	}
	s := &site{health: a.newHealth(), events: streams}
	gate := access.NewGate(a.jobs, a.set.onlyLocal())
	views := &view.Reader{Store: a.jobs, Ledger: a.ledger, Stream: a.stream, Runner: a.replays}
	mux := http.NewServeMux()
	api.Mount(mux, api.Config{
		Gate: gate, Intake: a.intake, Views: views, Events: streams, Operator: a.operator, Replays: a.replays, Proxies: a.transfer.proxies, Spool: a.transfer.spool, Log: a.log,
	})
	pages.Mount(mux, pages.Config{
		Gate: gate, Intake: a.intake, Views: views, Events: streams, Operator: a.operator, Replays: a.replays, Stream: a.stream, Proxies: a.transfer.proxies, Spool: a.transfer.spool,
		Log: a.log, Concurrency: a.set.Concurrency,
	})
	mux.HandleFunc("GET /healthz", s.health.Alive)
	mux.HandleFunc("GET /readyz", s.ready)
	if a.set.Metrics || web.IsLoopback(a.set.Addr) {
		mux.Handle("GET /metrics", a.metrics.handler())
	}
	around := web.Site{Addr: a.set.Addr, Hosts: a.set.Hosts, TrustProxy: a.set.TrustProxy, Log: a.log, Count: a.metrics, Refused: refuse}
	s.Handler = around.Handler(mux)
	return s, nil
}

var tooManyStreams = refusal.Error{Code: code.SystemOverloaded, Line: "Too many event streams are open.", After: 5 * time.Second}

// publicCode gives an event the code of FetchBox.
func publicCode(_ context.Context, e *store.Event) error {
	if e.Code != "" {
		e.Code = code.Of(e.Code).Name
	}
	return nil
}

// newHealth returns the health of this process: whether it can accept jobs. While the object storage or the stream is down, jobs are accepted and wait, and dead letters
// wait in the store.
func (a *app) newHealth() *web.Health {
	return web.NewHealth(a.log,
		web.Check{Name: "store", Ask: func(ctx context.Context) error { _, err := a.jobs.Holds(ctx); return err }},
		web.Check{Name: "bucket", Ask: a.worker.ProbeStorage, Optional: true},
		web.Check{Name: "stream", Ask: func(ctx context.Context) error { _, err := a.stream.Position(ctx); return err }, Optional: true},
		web.Check{Name: "ledger", Ask: func(context.Context) error { _, err := a.ledger.After(); return err }, Optional: true},
	)
}

func (s *site) ready(w http.ResponseWriter, r *http.Request) {
	answer, status := s.health.Ready(r.Context())
	_ = web.WriteJSON(w, status, answer) // it always marshals
}

// refusals are the answers to requests that are not passed on, or that panicked.
var refusals = map[web.Refusal]refusal.Error{
	web.OtherSite: {Code: code.AuthForbidden, Line: "This request came from another site. Open the page itself and try again."},
	web.OtherHost: {Code: code.AuthForbidden, Status: http.StatusMisdirectedRequest, Line: "This site does not serve that host name. If it should, set HOSTS to the name that visitors use."},
	web.Panicked:  {Code: code.SystemPanic},
}

func refuse(w http.ResponseWriter, why web.Refusal) { refusal.Write(w, refusals[why]) }

// Drain makes /readyz report that the process is about to stop. Requests are still answered.
func (s *site) Drain() { s.health.Drain() }

// Close ends all event streams and refuses new ones.
func (s *site) Close() error {
	s.Drain()
	s.events.Close()
	return nil
}
