package main

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
)

// A webHandler serves everything: the API, the page, health checks and metrics.
type webHandler struct {
	*app
	mux      *http.ServeMux
	inner    http.Handler // the mux with protection against cross-origin requests
	feed     *sse.Handler
	draining atomic.Bool // the process is about to stop: it still answers, but is not ready

	health        healthCache
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
	f.mountAPI()
	f.mountHealth()
	f.mux.Handle("/", f.page())
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.writeError(w, otherSite)
	}))
	f.inner = protection.Handler(f.mux)
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

// ServeHTTP answers a request, and logs and counts it.
func (f *webHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.set.TrustProxy {
		r = limit.FromProxy(r)
	}
	a := web.NewReply(w, r)
	defer a.Finish(r, f.log, f.metrics, func(w http.ResponseWriter) { f.writeError(w, apiErrorOf(nil)) })
	if !web.KnownHost(r, f.set.Hosts, f.set.Addr) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
		f.writeError(a, otherHost)
		return
	}
	f.inner.ServeHTTP(a, r)
}

// Drain makes /readyz report that the process is about to stop. Requests are still answered.
func (f *webHandler) Drain() { f.draining.Store(true) }

// Close ends all event streams and refuses new ones.
func (f *webHandler) Close() error {
	f.Drain()
	f.feed.Close()
	return nil
}

// handleError answers a request with an error. An error of the server is logged in full; the client sees one line.
func (f *webHandler) handleError(w http.ResponseWriter, r *http.Request, err error) {
	answer := apiErrorOf(err)
	if answer.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		f.log.Error("request failed", "event", "request_failed", "request_id", web.ReplyOf(w).ID, "method", r.Method, "path", web.PathOf(r), "error", err.Error())
	}
	if web.ReplyOf(w).Status != 0 { // part of an answer was sent: close the connection, so that the client does not take it as complete
		panic(http.ErrAbortHandler)
	}
	f.writeError(w, answer)
}

// notFound answers requests for unknown paths with 404, and for known paths with a wrong method with 405.
func (f *webHandler) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := f.mux.Handler(other); pattern != "" && !slices.Contains([]string{"/", "/api/"}, pattern) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		f.writeError(w, noSuchPath)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	f.writeError(w, apiError{code: codeUnknown, status: http.StatusMethodNotAllowed, line: "Use " + strings.Join(allowed, " or ") + " for this path."})
}
