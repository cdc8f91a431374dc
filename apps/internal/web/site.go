package web

import (
	"bytes"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/internal/limit"
)

// A Site receives all requests of an application. It refuses those that come from another site or ask for another name, and logs and counts all.
type Site struct {
	Addr       string   // where it listens
	Hosts      []string // its names; see KnownHost
	TrustProxy bool     // X-Forwarded-For is the address of the client
	Log        *slog.Logger
	Count      Observer

	// Refused answers a request that is not passed on, or that panicked before anything was sent.
	Refused func(w http.ResponseWriter, why Refusal)
}

// A Refusal is why a Site does not pass a request on.
type Refusal int

// The refusals.
const (
	OtherHost Refusal = iota // the request asks for a name that is not one of this site
	OtherSite                // a page of another site sent the request
	Panicked
)

// Handler returns the site with what is in it.
func (s *Site) Handler(inner http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.Refused(w, OtherSite) }))
	protected := protection.Handler(inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.TrustProxy {
			r = limit.FromProxy(r)
		}
		a := NewReply(w, r)
		defer a.Finish(r, s.Log, s.Count, func(w http.ResponseWriter) { s.Refused(w, Panicked) })
		if !KnownHost(r, s.Hosts, s.Addr) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			s.Refused(a, OtherHost)
			return
		}
		protected.ServeHTTP(a, r)
	})
}

// ReportError logs an error that is answered with a status, in full if it is one of the server: clients see one line. If part of an answer was sent, it closes the
// connection, so that the client does not take it as complete; it does not return then.
func ReportError(w http.ResponseWriter, r *http.Request, log *slog.Logger, status int, err error) {
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		log.Error("request failed", "event", "request_failed", "request_id", ReplyOf(w).ID, "method", r.Method, "path", PathOf(r), "error", err.Error())
	}
	if ReplyOf(w).Status != 0 {
		panic(http.ErrAbortHandler)
	}
}

// SetRetryAfter tells the client to wait, at least for a duration. Zero sets nothing.
func SetRetryAfter(w http.ResponseWriter, d time.Duration) {
	if d > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((d+time.Second-1)/time.Second)))
	}
}

// Methods returns which of some methods a mux has a handler for at the path of a request, other than for all paths, and sets the header Allow if there are any.
func Methods(w http.ResponseWriter, r *http.Request, mux *http.ServeMux, some ...string) (allowed []string) {
	for _, method := range some {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" && !slices.Contains([]string{"/", "/api/"}, pattern) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
	}
	return allowed
}

// WritePage answers a request with a page. An error means that the template failed and nothing was sent.
func WritePage(w http.ResponseWriter, status int, pages *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the client may be gone
	return nil
}
