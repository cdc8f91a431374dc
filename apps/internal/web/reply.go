// Package web has what the HTTP servers of applications share: answers with ids, deadlines and headers, the names of this site, and a listener that stops gracefully.
package web

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Reply is the ResponseWriter of a request. It keeps what the log and the metrics need, and moves the write deadline.
type Reply struct {
	http.ResponseWriter
	ID     string // of the request
	Begun  time.Time
	Status int // 0: nothing was written yet

	OwnDeadlines bool // the handler sets the write deadlines itself
}

const (
	readTimeout  = 30 * time.Second // for a request body; uploads have deadlines of their own
	writeTimeout = 60 * time.Second // for a client to accept one write of an answer
)

// WriteHeader records the status.
func (a *Reply) WriteHeader(status int) {
	if a.Status == 0 && status >= 200 {
		a.Status = status
	}
	a.extendDeadline()
	a.ResponseWriter.WriteHeader(status)
}

// Write sends the status 200 if none was sent. Each write extends the deadline: a slow client receives everything, and a client that stopped reading does not keep the
// file open.
func (a *Reply) Write(text []byte) (int, error) {
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	a.extendDeadline()
	return a.ResponseWriter.Write(text)
}

func (a *Reply) extendDeadline() {
	if !a.OwnDeadlines {
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout)) // the recorder of a test has no deadlines
	}
}

// Unwrap gives http.ResponseController access to the connection.
func (a *Reply) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ReplyOf returns the Reply that a writer is or wraps.
func ReplyOf(w http.ResponseWriter) *Reply {
	for inner := w; ; {
		if a, ok := inner.(*Reply); ok {
			return a
		}
		wrapped, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return &Reply{ResponseWriter: w, ID: holdfast.NewID().String(), Begun: time.Now()}
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

// NewReply starts an answer: it gives the request an id and sets the common headers and deadlines.
func NewReply(w http.ResponseWriter, r *http.Request) *Reply {
	a := &Reply{ResponseWriter: w, ID: requestID(r), Begun: time.Now()}
	header := w.Header()
	for name, value := range commonHeaders {
		header.Set(name, value)
	}
	policy := pagePolicy
	if strings.HasPrefix(r.URL.Path, "/api/") {
		policy = dataPolicy
	}
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Request-Id", a.ID)
	control := http.NewResponseController(w) // the recorder of a test has no deadlines; its errors are ignored
	if r.Body != nil && r.Body != http.NoBody {
		_ = control.SetReadDeadline(time.Now().Add(readTimeout))
	}
	_ = control.SetWriteDeadline(time.Time{}) // clear the deadline of the previous request on this connection
	return a
}

// An Observer counts requests.
type Observer interface {
	ObserveRequest(route string, status int, took time.Duration)
}

// Finish logs and counts a request; it must be deferred directly. A panic ends the request, not the process: panicked answers the client.
func (a *Reply) Finish(r *http.Request, log *slog.Logger, count Observer, panicked func(w http.ResponseWriter)) {
	caught := recover()
	if caught != nil && caught != http.ErrAbortHandler { //nolint:errorlint // net/http compares with this very value
		log.Error("a request panicked", "event", "request_panicked", "request_id", a.ID, "method", r.Method, "path", PathOf(r), "panic", caught, "stack", string(debug.Stack()))
		caught = nil
		if a.Status != 0 { // close the connection, so that the client does not take the answer as complete
			caught = http.ErrAbortHandler
		} else {
			panicked(a)
		}
	}
	level, took := slog.LevelDebug, time.Since(a.Begun)
	if r.Method == http.MethodPost || a.Status >= 400 {
		level = slog.LevelInfo // a change, or an error
	}
	log.Log(r.Context(), level, "request", "event", "request", "request_id", a.ID, "method", r.Method, "path", PathOf(r), "status", a.Status, "duration_ms", took.Milliseconds())
	count.ObserveRequest(RouteOf(r), a.Status, took)
	if caught != nil {
		panic(caught)
	}
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

// PathOf returns a request's path for the log: escaped, without the query, with API keys masked, and at most 300 bytes long.
func PathOf(r *http.Request) string {
	path := keyLike.ReplaceAllLiteralString(r.URL.EscapedPath(), "hf_...")
	if len(path) > 300 {
		path = path[:300] + "..."
	}
	return path
}

// RouteOf returns the route of a request for metrics. The number of routes is fixed, whatever paths clients request.
func RouteOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/api/" {
		return "none"
	}
	return r.Pattern
}

// WriteJSON answers a request with a value as JSON. An error means that the value cannot be marshalled and nothing was sent.
func WriteJSON(w http.ResponseWriter, status int, value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text) // it ends with a line break, which is convenient in a shell
	enc.SetEscapeHTML(false)      // the content type is JSON and browsers must not sniff it (nosniff)
	if err := enc.Encode(value); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the client may be gone
	return nil
}
