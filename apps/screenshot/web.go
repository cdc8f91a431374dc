package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/apps/screenshot/api"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/apps/screenshot/site"
)

// A face serves everything over HTTP: the API, the pages, health checks and metrics.
type face struct {
	*app
	site   http.Handler
	api    *api.API
	health *web.Health
	feed   *events.Streams
}

// face returns the HTTP side of this process. The caller must call Close before it stops the server, because event streams do not end by themselves.
func (a *app) face() (*face, error) {
	mux := http.NewServeMux()
	f := &face{app: a, health: a.newHealth()}
	var err error
	if f.feed, err = site.NewFeed(a.jobs, a.service, a.log); err != nil {
		return nil, err
	}
	f.api = api.New(api.Config{Service: a.service, Accounts: a.accounts, Feed: f.feed, Log: a.log, PerMinute: a.set.PerMinute})
	f.api.Mount(mux)
	f.mountHealth(mux)
	pages := site.New(site.Config{Service: a.service, Accounts: a.accounts, Operator: a.operator, API: f.api, Feed: f.feed, Log: a.log, SignUp: !a.set.SignUpOff, Base: a.set.Public})
	pages.Mount(mux)
	outer := web.Site{Addr: a.set.Addr, Hosts: a.set.Hosts, TrustProxy: a.set.TrustProxy, Log: a.log, Count: a.metrics, Refused: f.refused}
	f.site = outer.Handler(mux)
	return f, nil
}

// ServeHTTP answers a request, and logs and counts it.
func (f *face) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.site.ServeHTTP(w, r) }

// Drain makes /readyz report that the process is about to stop. Requests are still answered.
func (f *face) Drain() { f.health.Drain() }

// Close ends all event streams and refuses new ones.
func (f *face) Close() error {
	f.Drain()
	f.feed.Close()
	return nil
}

// refused answers a request that is not passed on, or that panicked.
func (f *face) refused(w http.ResponseWriter, why web.Refusal) {
	answer := map[web.Refusal]*service.Error{
		web.OtherSite: {Code: code.Forbidden, Message: "This request came from another site. Open the page itself and try again."},
		web.OtherHost: {Code: code.Forbidden, Message: "This site does not serve that host name. If it should, set HOSTS to the name that visitors use."},
		web.Panicked:  {Code: code.SystemPanic},
	}[why]
	status := code.Of(answer.Code).HTTPStatus
	if why == web.OtherHost {
		status = http.StatusMisdirectedRequest
	}
	_ = web.WriteJSON(w, status, map[string]string{"error": answer.Code, "message": answer.Error(), "requestId": web.ReplyOf(w).ID}) // it always marshals
}

// Alerts of the health check.
const (
	deepQueue   = 10_000 // shots that are due
	badRetries  = 0.9    // of retries failed
	fewAttempts = 20     // below this number the rate says nothing
)

// newHealth returns the health of this process, with the checks of the specification. While browsers or pictures are unavailable, shots are accepted and wait.
func (a *app) newHealth() *web.Health {
	return web.NewHealth(a.log,
		web.Check{Name: "store", Ask: func(ctx context.Context) error { _, err := a.jobs.Holds(ctx); return err }},
		web.Check{Name: "pictures", Ask: func(ctx context.Context) error { return blob.Probe(ctx, a.bucket, "probe/"+holdfast.NewID().String()) }, Optional: true},
		web.Check{Name: "browsers", Ask: a.browsersWork, Optional: true},
		web.Check{Name: "retry-scheduler", Ask: a.schedulerRuns, Optional: true},
		web.Check{Name: "queue-depth", Ask: a.queueIsShort, Optional: true},
		web.Check{Name: "stuck-jobs", Ask: a.noneIsStuck, Optional: true},
		web.Check{Name: "retry-rate", Ask: a.retriesSucceed, Optional: true},
	)
}

func (a *app) browsersWork(context.Context) error {
	if problem := a.camera.Status().Problem; problem != "" {
		return errors.New(problem)
	}
	return nil
}

func (a *app) schedulerRuns(ctx context.Context) error {
	duties, err := a.service.Scheduler(ctx)
	for _, d := range duties {
		if d.Paused {
			return fmt.Errorf("%s is paused by %s", d.Type, d.PausedBy)
		}
	}
	return err
}

func (a *app) queueIsShort(ctx context.Context) error {
	d, err := a.service.Depth(ctx)
	if err == nil && d.Ready >= deepQueue {
		err = fmt.Errorf("%d shots are due", d.Ready)
	}
	return err
}

func (a *app) noneIsStuck(ctx context.Context) error {
	list, err := a.service.Stuck(ctx)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%d shots have been processed for more than 30 minutes", len(list))
	}
	return err
}

func (a *app) retriesSucceed(context.Context) error {
	if rate, n := errorRate(a.service.Attempts()); n >= fewAttempts && rate >= badRetries {
		return fmt.Errorf("%.0f %% of %d retries failed", rate*100, n)
	}
	return nil
}

// mountHealth mounts the health checks, and /metrics if it may be served.
func (f *face) mountHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", f.health.Alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer, status := f.health.Ready(r.Context())
		_ = web.WriteJSON(w, status, answer) // it always marshals
	})
	if f.set.Metrics || web.IsLoopback(f.set.Addr) {
		mux.Handle("GET /metrics", f.metrics.handler())
	}
}
