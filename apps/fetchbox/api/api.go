// Package api is the HTTP API. It finds the caller of a request, reads its parameters and answers in JSON; what happens is decided by the packages that it calls.
package api

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/spool"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/ops"
)

// A Config is what the API calls.
type Config struct {
	Gate     *access.Gate
	Intake   *intake.Intake
	Views    *view.Reader
	Events   *events.Streams
	Operator *ops.Service
	Replays  *replay.Runner
	Proxies  *proxy.Pools
	Spool    *spool.Spool
	Log      *slog.Logger
}

type api struct {
	Config
	mux *http.ServeMux
}

// Mount mounts the API below /api/.
func Mount(mux *http.ServeMux, cfg Config) {
	a := &api{Config: cfg, mux: mux}
	for pattern, do := range map[string]func(w http.ResponseWriter, r *http.Request, c access.Caller) error{
		"POST /api/jobs":                                 a.submit,
		"GET /api/jobs":                                  a.list,
		"GET /api/jobs/{id}":                             a.get,
		"GET /api/jobs/{id}/resources":                   a.resources,
		"GET /api/jobs/{id}/resources/{resource}":        a.resource,
		"POST /api/jobs/{id}/resources/{resource}/retry": a.retryResource,
		"POST /api/jobs/{id}/retry":                      a.retryJob,
		"POST /api/jobs/{id}/cancel":                     a.cancelJob,
		"GET /api/jobs/{id}/results":                     a.results,
		"GET /api/jobs/{id}/events":                      a.jobEvents,
		"GET /api/events":                                a.events,
		"GET /api/dead-letters":                          a.deadLetters,
		"GET /api/dead-letters/{sequence}":               a.deadLetter,
		"GET /api/replays":                               a.listReplays,
		"POST /api/replays":                              a.startReplay,
		"POST /api/replays/{id}/cancel":                  a.cancelReplay,
		"GET /api/proxies":                               a.proxies,
		"GET /api/codes":                                 a.codes,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := cfg.Gate.Client(w, r)
			if err == nil {
				err = do(w, r, c)
			}
			if err != nil {
				a.failed(w, r, err)
			}
		})
	}
	mux.HandleFunc("/api/", a.notFound)
}

// failed answers a request with an error. An error of the server is logged in full; the client sees one line.
func (a *api) failed(w http.ResponseWriter, r *http.Request, err error) {
	answer := refusal.Of(err)
	web.ReportError(w, r, a.Log.With("error_code", answer.Code), answer.HTTPStatus(), err)
	refusal.Write(w, answer)
}

// notFound answers requests for unknown paths with 404, and for known paths with a wrong method with 405.
func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	allowed := web.Methods(w, r, a.mux, http.MethodGet, http.MethodPost)
	if len(allowed) == 0 {
		refusal.Write(w, refusal.NoSuchPath)
		return
	}
	refusal.Write(w, refusal.Error{Code: code.ValidationInvalidField, Status: http.StatusMethodNotAllowed, Line: "Use " + strings.Join(allowed, " or ") + " for this path."})
}

// proxies answers GET /api/proxies.
func (a *api) proxies(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"proxies": a.Proxies.Status(), "spool": a.Spool.Usage()})
}

// codes answers GET /api/codes: what each code means, and what to do.
func (a *api) codes(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"codes": code.All()})
}
