package main

import (
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A reply is the ResponseWriter of a request. It keeps what the log and the metrics need, and moves the write deadline.
type reply struct {
	http.ResponseWriter
	id     string // of the request
	begun  time.Time
	status int // 0: nothing was written yet

	ownDeadlines bool // the handler sets the write deadlines itself
}

const (
	readTimeout  = 30 * time.Second // for a request body; uploads have deadlines of their own (intake.go)
	writeTimeout = 60 * time.Second // for a client to accept one write of an answer
)

// WriteHeader records the status.
func (a *reply) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.extendDeadline()
	a.ResponseWriter.WriteHeader(status)
}

// Write sends the status 200 if none was sent. Each write extends the deadline: a slow client receives everything, and a client that stopped reading does not keep the
// file open.
func (a *reply) Write(text []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.extendDeadline()
	return a.ResponseWriter.Write(text)
}

func (a *reply) extendDeadline() {
	if !a.ownDeadlines {
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout)) // the recorder of a test has no deadlines
	}
}

// Unwrap gives http.ResponseController access to the connection.
func (a *reply) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// replyOf returns the reply that a writer is or wraps.
func replyOf(w http.ResponseWriter) *reply {
	for inner := w; ; {
		if a, ok := inner.(*reply); ok {
			return a
		}
		wrapped, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return &reply{ResponseWriter: w, id: holdfast.NewID().String(), begun: time.Now()}
		}
		inner = wrapped.Unwrap()
	}
}

// commonHeaders are set on every answer. Together with the two policies below: a page may load resources from this site only and must not be framed; an API answer may
// load nothing.
var commonHeaders = map[string]string{
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

const (
	pagePolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
	dataPolicy = "default-src 'none'; frame-ancestors 'none'"
)

// newReply starts an answer: it gives the request an id and sets the common headers and deadlines.
func newReply(w http.ResponseWriter, r *http.Request) *reply {
	a := &reply{ResponseWriter: w, id: requestID(r), begun: time.Now()}
	header := w.Header()
	for name, value := range commonHeaders {
		header.Set(name, value)
	}
	policy := pagePolicy
	if strings.HasPrefix(r.URL.Path, "/api/") {
		policy = dataPolicy
	}
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Request-Id", a.id)
	control := http.NewResponseController(w) // the recorder of a test has no deadlines; its errors are ignored
	if r.Body != nil && r.Body != http.NoBody {
		_ = control.SetReadDeadline(time.Now().Add(readTimeout))
	}
	_ = control.SetWriteDeadline(time.Time{}) // clear the deadline of the previous request on this connection
	return a
}

// finish logs and counts a request. A panic ends the request, not the process.
func (f *webHandler) finish(a *reply, r *http.Request) {
	panicked := recover()
	if panicked != nil && panicked != http.ErrAbortHandler { //nolint:errorlint // net/http compares with this very value
		f.log.Error("a request panicked", "event", "request_panicked", "request_id", a.id, "method", r.Method, "path", pathOf(r), "panic", panicked, "stack", string(debug.Stack()))
		panicked = f.answerPanic(a)
	}
	level, took := slog.LevelDebug, time.Since(a.begun)
	if r.Method == http.MethodPost || a.status >= 400 {
		level = slog.LevelInfo // a change, or an error
	}
	f.log.Log(r.Context(), level, "request", "event", "request", "request_id", a.id, "method", r.Method, "path", pathOf(r), "status", a.status, "duration_ms", took.Milliseconds())
	f.metrics.ObserveRequest(routeOf(r), a.status, took)
	if panicked != nil {
		panic(panicked)
	}
}

// answerPanic answers after a panic if nothing was sent yet. Otherwise it returns http.ErrAbortHandler, which closes the connection, so that the client does not take the
// answer as complete.
func (f *webHandler) answerPanic(a *reply) (abort any) {
	if a.status != 0 {
		return http.ErrAbortHandler
	}
	f.writeError(a, apiErrorOf(nil))
	return nil
}

// requestID returns the caller's X-Request-Id if it is safe to log and show, or a new id.
func requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && validRequestID.MatchString(given[0]) {
		return given[0]
	}
	return holdfast.NewID().String()
}

var (
	validRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	keyLike        = regexp.MustCompile(`hf_[0-9A-Za-z_]+`)
)

// pathOf returns a request's path for the log: escaped, without the query, with API keys masked, and at most 300 bytes long.
func pathOf(r *http.Request) string {
	path := keyLike.ReplaceAllLiteralString(r.URL.EscapedPath(), "hf_...")
	if len(path) > 300 {
		path = path[:300] + "..."
	}
	return path
}

// routeOf returns the route of a request for metrics. The number of routes is fixed, whatever paths clients request.
func routeOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/api/" {
		return "none"
	}
	return r.Pattern
}
