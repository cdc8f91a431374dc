package main

import (
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/events"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// A webHandler serves everything: the API, the page, health checks and metrics.
type webHandler struct {
	*app
	mux    *http.ServeMux
	site   http.Handler // what surrounds the mux
	feed   *events.Streams
	health *web.Health

	mappingsCache mappingsCache
	gatewayCache  gatewayCache
}

// handler returns the *webHandler of this process. The caller must call Close before it stops the server, because event streams do not end by themselves.
func (a *app) handler() (http.Handler, error) {
	f := &webHandler{app: a, mux: http.NewServeMux()}
	var err error
	if f.feed, err = a.newFeed(); err != nil {
		return nil, err
	}
	f.health = f.newHealth()
	f.mountAPI()
	f.mountHealth()
	f.mux.Handle("/", f.page())
	site := web.Site{Addr: a.set.Addr, Hosts: a.set.Hosts, TrustProxy: a.set.TrustProxy, Log: a.log, Count: a.metrics, Refused: a.refused}
	f.site = site.Handler(f.mux)
	return f, nil
}

// mountAPI mounts the API for programs and for the page's script. Every request has an owner: a session or that of an API key.
func (f *webHandler) mountAPI() {
	for pattern, do := range map[string]func(w http.ResponseWriter, r *http.Request, owner string) error{
		"GET /api/jobs":               f.list,
		"GET /api/jobs/{id}":          f.get,
		"GET /api/jobs/{id}/download": f.download,
		"GET /api/jobs/{id}/preview":  f.preview,
		"POST /api/jobs/{id}/retry":   f.retry,
		"GET /api/mappings":           f.mappings,
		"GET /api/gateway":            f.gateway,
		"GET /api/events":             f.follow,
	} {
		f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			owner, err := f.owner(w, r)
			if err == nil {
				err = do(w, r, owner)
			}
			if err != nil {
				f.handleError(w, r, err)
			}
		})
	}
	f.mux.HandleFunc("POST /api/upload", f.upload)
	f.mux.HandleFunc("/api/", f.notFound)
}

// refused answers a request that is not passed on, or that panicked.
func (a *app) refused(w http.ResponseWriter, why web.Refusal) {
	a.writeError(w, map[web.Refusal]apiError{web.OtherSite: otherSite, web.OtherHost: otherHost, web.Panicked: apiErrorOf(nil)}[why])
}

// ServeHTTP answers a request, and logs and counts it.
func (f *webHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.site.ServeHTTP(w, r) }

// Drain makes /readyz report that the process is about to stop. Requests are still answered.
func (f *webHandler) Drain() { f.health.Drain() }

// Close ends all event streams and refuses new ones.
func (f *webHandler) Close() error {
	f.Drain()
	f.feed.Close()
	return nil
}

// handleError answers a request with an error. An error of the server is logged in full; the client sees one line.
func (f *webHandler) handleError(w http.ResponseWriter, r *http.Request, err error) {
	answer := apiErrorOf(err)
	web.ReportError(w, r, f.log, answer.status, err)
	f.writeError(w, answer)
}

// notFound answers requests for unknown paths with 404, and for known paths with a wrong method with 405.
func (f *webHandler) notFound(w http.ResponseWriter, r *http.Request) {
	allowed := web.Methods(w, r, f.mux, http.MethodGet, http.MethodHead, http.MethodPost)
	if len(allowed) == 0 {
		f.writeError(w, noSuchPath)
		return
	}
	f.writeError(w, apiError{code: codeUnknown, status: http.StatusMethodNotAllowed, line: "Use " + strings.Join(allowed, " or ") + " for this path."})
}
