package server

import (
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

// A reply is the response to one request, and what is known about the request.
type reply struct {
	http.ResponseWriter
	id     string // id of the request
	route  string // name of the route; empty until it is found
	key    string // id of the caller's key
	remote string // remote address
	begun  time.Time
	status int    // 0: nothing was written yet
	leave  func() // gives back what the request holds of the limits
	quota  *quota // of the caller's key; nil without a key
	vital  bool
	long   bool
}

// WriteHeader records the status.
func (a *reply) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write records status 200 if no other was written.
func (a *reply) Write(text []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (a *reply) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written so far.
func (a *reply) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// replyOf returns the reply that w is or wraps.
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

// securityHeaders are the headers of every response. Pages for browsers replace the Content-Security-Policy.
var securityHeaders = map[string][]string{
	"X-Content-Type-Options":       {"nosniff"},
	"Cache-Control":                {"no-store"},
	"Referrer-Policy":              {"no-referrer"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
}

// begin makes the reply of a request, with its id and the headers that every response has.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) *reply {
	a := &reply{ResponseWriter: w, id: requestID(r), remote: r.RemoteAddr, begun: time.Now()}
	header := w.Header()
	for name, value := range securityHeaders {
		header[name] = value[:1:1]
	}
	header["X-Request-Id"] = []string{a.id}
	if r.TLS != nil || s.cfg.TrustProxy && r.Header.Get("X-Forwarded-Proto") == "https" {
		header["Strict-Transport-Security"] = []string{"max-age=31536000"}
	}
	setDeadlines(a, r, false)
	return a
}

// end finishes a request: it recovers a panic, gives back what the request holds, and records metrics and log. A panic ends the request and not the
// server.
func (s *Server) end(a *reply, r *http.Request) {
	broken := recover()
	if broken != nil && broken != http.ErrAbortHandler { //nolint:errorlint // net/http compares this value
		s.cfg.Log.Error("request panicked", "event", "request_panicked", "request_id", a.id, "method", r.Method, "path", pathOf(r), "panic", broken, "stack", string(debug.Stack()))
		broken = s.answerPanic(a, r)
	}
	if a.leave != nil {
		a.leave()
	}
	took, route := time.Since(a.begun), a.route
	if route == "" {
		route = "none"
	}
	if s.cfg.Watch != nil {
		s.cfg.Watch.ObserveRequest(route, a.status, took)
	}
	if s.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
		s.cfg.Log.Debug("request", "event", "request", "request_id", a.id, "method", r.Method, "route", route, "path", pathOf(r), "status", a.status, "took", took, "key", a.key, "remote", r.RemoteAddr)
	}
	if broken != nil {
		panic(broken)
	}
}

// answerPanic answers status 500 after a panic. If an answer has begun, it returns the panic value that makes net/http break the connection.
func (s *Server) answerPanic(a *reply, r *http.Request) (abort any) {
	if a.status != 0 {
		return http.ErrAbortHandler
	}
	s.refuse(a, r, &holdfast.Error{Err: api.ErrInternal, Message: "a panic"})
	return nil
}

var keyLike = regexp.MustCompile(`hf_[0-9A-Za-z_]+`)

// requestID is the id that the caller gave, if it is short and has only letters, digits, - _ and dot; otherwise a new one.
func requestID(r *http.Request) string {
	given := r.Header["X-Request-Id"]
	if len(given) != 1 || given[0] == "" || len(given[0]) > 64 {
		return holdfast.NewID().String()
	}
	for _, c := range []byte(given[0]) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return holdfast.NewID().String()
		}
	}
	return given[0]
}

// pathOf is the path of a request for the log: escaped, without the query, without API keys, and at most 300 bytes.
func pathOf(r *http.Request) string {
	path := keyLike.ReplaceAllLiteralString(r.URL.EscapedPath(), "hf_...")
	if len(path) > 300 {
		path = path[:300] + "..."
	}
	return path
}

// The time limits of reading a body and of writing an answer.
const (
	readWithin  = 30 * time.Second
	writeWithin = 60 * time.Second
)

// setDeadlines sets the deadlines of reading the body, if there is one, and of writing the answer. Long requests get no deadline here: they set their own as they
// go. A read deadline must not stay after the body was read: it would break the connection while the answer is made.
func setDeadlines(w http.ResponseWriter, r *http.Request, long bool) {
	c := http.NewResponseController(w) // the recorder of a test has no deadlines; its error does not matter
	if long {
		_ = c.SetReadDeadline(time.Time{})
		_ = c.SetWriteDeadline(time.Time{})
		return
	}
	if r.Body != nil && r.Body != http.NoBody {
		_ = c.SetReadDeadline(time.Now().Add(readWithin))
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeWithin))
}
