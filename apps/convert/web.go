package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
)

// A front is everything that is served: the API, the page, health and metrics.
type front struct {
	*app
	mux      *http.ServeMux
	inner    http.Handler // the mux, behind what protects it
	feed     *sse.Handler
	draining atomic.Bool // about to end: answers on, and is not ready any more
	health   health
	offer    offer
	banner   banner
}

// handler is everything that is served. It is a *front: who ends it says so with Close, because those who follow events would stay for ever.
func (a *app) handler() (http.Handler, error) {
	f := &front{app: a, mux: http.NewServeMux()}
	var err error
	if f.feed, err = a.events(); err != nil {
		return nil, err
	}
	f.mountAPI()
	f.mountHealth()
	f.mux.Handle("/", f.page())
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, otherSite)
	}))
	f.inner = guard.Handler(f.mux)
	return f, nil
}

// mountAPI mounts what programs and the page's script ask. Whoever asks is somebody: a session, or the owner of a key.
func (f *front) mountAPI() {
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
				f.refused(w, r, err)
			}
		})
	}
	f.mux.HandleFunc("POST /api/upload", f.upload)
	f.mux.HandleFunc("/api/", f.nowhere)
}

// ServeHTTP answers a request, and closes the books on it.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.set.TrustProxy {
		r = limit.FromProxy(r)
	}
	a := begin(w, r)
	defer f.end(a, r)
	if !f.knownHost(r) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
		f.fail(a, otherHost)
		return
	}
	f.inner.ServeHTTP(a, r)
}

// Drain says that the process is about to end: it is not ready any more, and answers on.
func (f *front) Drain() { f.draining.Store(true) }

// Close sends away those who follow events, and takes on no more of them.
func (f *front) Close() error {
	f.Drain()
	f.feed.Close()
	return nil
}

// refused tells what went wrong. What is our fault goes to the log, whole; people see a line.
func (f *front) refused(w http.ResponseWriter, r *http.Request, err error) {
	told := faultOf(err)
	if told.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		f.log.Error("a request failed", "event", "request_failed", "request_id", answerOf(w).id, "method", r.Method, "path", pathOf(r), "error", err.Error())
	}
	if answerOf(w).status != 0 { // an answer is under way: it can only be broken off, so that nobody takes it for whole
		panic(http.ErrAbortHandler)
	}
	f.fail(w, told)
}

// nowhere answers for paths that lead nowhere, and for those that lead somewhere with another method.
func (f *front) nowhere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := f.mux.Handler(other); pattern != "" && !slices.Contains([]string{"/", "/api/"}, pattern) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		f.fail(w, noSuchPath)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	f.fail(w, fault{code: codeUnknown, status: http.StatusMethodNotAllowed, line: "This path is asked with " + strings.Join(allowed, " or ") + "."})
}

// answer writes what comes back, as JSON.
func answer(w http.ResponseWriter, status int, value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text) // it ends with a line break, for whoever asks from a shell
	enc.SetEscapeHTML(false)      // it is JSON, said to be JSON, and sniffed by nobody
	if err := enc.Encode(value); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // whoever went away does not miss it
	return nil
}
