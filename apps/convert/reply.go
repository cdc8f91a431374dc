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

// A reply is an answer under way, and what is known of its request.
type reply struct {
	http.ResponseWriter
	id     string // of the request
	begun  time.Time
	status int  // 0: nothing was written yet
	own    bool // whoever answers sets the ends of writing
}

// writeWithin is how long a client may take to accept a piece of an answer, readWithin how long a body may take that is no upload. Uploads have
// their own patience.
const (
	readWithin  = 30 * time.Second
	writeWithin = 60 * time.Second
)

// WriteHeader remembers what was said.
func (a *reply) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.hurry()
	a.ResponseWriter.WriteHeader(status)
}

// Write says 200 where nothing else was said. The end of writing moves along with what is taken: a slow client gets all of it, one that has stopped does not
// hold on to the file.
func (a *reply) Write(text []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.hurry()
	return a.ResponseWriter.Write(text)
}

func (a *reply) hurry() {
	if !a.own {
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeWithin)) // a recorder of a test has none
	}
}

// Unwrap leads http.ResponseController to the connection.
func (a *reply) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// answerOf is the reply that a writer is, or belongs to.
func answerOf(w http.ResponseWriter) *reply {
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

// always is on every answer. A page may use what comes from here and nothing else, and nobody may frame it; an answer of the API may do nothing at all.
var always = map[string]string{
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

// begin starts an answer: its request has an id, and what is true of every answer is said.
func begin(w http.ResponseWriter, r *http.Request) *reply {
	a := &reply{ResponseWriter: w, id: requestID(r), begun: time.Now()}
	header := w.Header()
	for name, value := range always {
		header.Set(name, value)
	}
	policy := pagePolicy
	if strings.HasPrefix(r.URL.Path, "/api/") {
		policy = dataPolicy
	}
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Request-Id", a.id)
	control := http.NewResponseController(w) // a recorder of a test has no deadlines, and its errors are nobody's
	if r.Body != nil && r.Body != http.NoBody {
		_ = control.SetReadDeadline(time.Now().Add(readWithin))
	}
	_ = control.SetWriteDeadline(time.Time{}) // of the request before, on the same connection
	return a
}

// end closes the books on a request. A panic ends the request and not the process.
func (f *front) end(a *reply, r *http.Request) {
	broken := recover()
	if broken != nil && broken != http.ErrAbortHandler { //nolint:errorlint // this very value is what net/http goes by
		f.log.Error("a request panicked", "event", "request_panicked", "request_id", a.id, "method", r.Method, "path", pathOf(r), "panic", broken, "stack", string(debug.Stack()))
		broken = f.apologise(a)
	}
	level, took := slog.LevelDebug, time.Since(a.begun)
	if r.Method == http.MethodPost || a.status >= 400 {
		level = slog.LevelInfo // what changes something, or did not work
	}
	f.log.Log(r.Context(), level, "request", "event", "request", "request_id", a.id, "method", r.Method, "path", pathOf(r), "status", a.status, "duration_ms", took.Milliseconds())
	f.watch.Asked(routeOf(r), a.status, took)
	if broken != nil {
		panic(broken)
	}
}

// apologise answers after a panic, if nothing was answered yet; else the connection must be broken off.
func (f *front) apologise(a *reply) (abort any) {
	if a.status != 0 {
		return http.ErrAbortHandler
	}
	f.fail(a, faultOf(nil))
	return nil
}

// requestID is the one the caller gave, if it is fit to be seen everywhere, or a new one.
func requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && fitID.MatchString(given[0]) {
		return given[0]
	}
	return holdfast.NewID().String()
}

var (
	fitID   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	keyLike = regexp.MustCompile(`hf_[0-9A-Za-z_]+`)
)

// pathOf is a request's path as it may be logged: escaped, without a query, without a key that somebody put there, and not endless.
func pathOf(r *http.Request) string {
	path := keyLike.ReplaceAllLiteralString(r.URL.EscapedPath(), "hf_...")
	if len(path) > 300 {
		path = path[:300] + "..."
	}
	return path
}

// routeOf names a request's route for metrics: there are few of them, whatever people ask for.
func routeOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/api/" {
		return "none"
	}
	return r.Pattern
}
