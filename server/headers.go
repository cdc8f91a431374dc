package server

import (
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// A reply is an answer under way, and what is known of its request.
type reply struct {
	http.ResponseWriter
	id     string // of the request
	route  string // by name; empty while none was found
	key    string // the id of the caller's key
	remote string // where the request comes from
	begun  time.Time
	status int    // 0: nothing was written yet
	leave  func() // gives back what the request holds of the limits
	quota  *quota // of the caller's key; nil without one
	vital  bool
	long   bool
}

// WriteHeader remembers what was said.
func (a *reply) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write says 200 where nothing else was said.
func (a *reply) Write(text []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(text)
}

// Unwrap leads http.ResponseController to the connection.
func (a *reply) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what was written so far.
func (a *reply) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// replyOf is the reply that a writer is, or belongs to.
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

// always is on every answer. Whoever answers with a page for browsers says what that page may do instead.
var always = map[string][]string{
	"X-Content-Type-Options":       {"nosniff"},
	"Cache-Control":                {"no-store"},
	"Referrer-Policy":              {"no-referrer"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
}

// begin starts an answer: its request has an id, and what is true of every answer is said.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) *reply {
	a := &reply{ResponseWriter: w, id: requestID(r), remote: r.RemoteAddr, begun: time.Now()}
	header := w.Header()
	for name, value := range always {
		header[name] = value[:1:1]
	}
	header["X-Request-Id"] = []string{a.id}
	if r.TLS != nil {
		header["Strict-Transport-Security"] = []string{"max-age=31536000"}
	}
	hurry(a, r, false)
	return a
}

// end closes the books on a request. A panic ends the request and not the server.
func (s *Server) end(a *reply, r *http.Request) {
	broken := recover()
	if broken != nil && broken != http.ErrAbortHandler { //nolint:errorlint // this very value is what net/http goes by
		s.cfg.Log.Error("a request panicked", "event", "request_panicked", "request_id", a.id, "method", r.Method, "path", pathOf(r), "panic", broken, "stack", string(debug.Stack()))
		broken = s.apologise(a, r)
	}
	if a.leave != nil {
		a.leave()
	}
	took, route := time.Since(a.begun), a.route
	if route == "" {
		route = "none"
	}
	if s.cfg.Watch != nil {
		s.cfg.Watch.Asked(route, a.status, took)
	}
	if s.cfg.Log.Enabled(r.Context(), slog.LevelDebug) {
		s.cfg.Log.Debug("request", "event", "request", "request_id", a.id, "method", r.Method, "route", route, "path", pathOf(r), "status", a.status, "took", took, "key", a.key, "remote", r.RemoteAddr)
	}
	if broken != nil {
		panic(broken)
	}
}

// apologise answers after a panic, if nothing was answered yet; else the connection must be broken off.
func (s *Server) apologise(a *reply, r *http.Request) (abort any) {
	if a.status != 0 {
		return http.ErrAbortHandler
	}
	s.refuse(a, r, &holdfast.Error{Kind: api.ErrInternal, Message: "a panic"})
	return nil
}

var keyLike = regexp.MustCompile(`hf_[0-9A-Za-z_]+`)

// requestID is the one the caller gave, if it is fit to be seen everywhere, or a new one.
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

// pathOf is a request's path as it may be logged: escaped, without a query, without a key that somebody put there, and not endless.
func pathOf(r *http.Request) string {
	path := keyLike.ReplaceAllLiteralString(r.URL.EscapedPath(), "hf_...")
	if len(path) > 300 {
		path = path[:300] + "..."
	}
	return path
}

// How long a request's body may take to arrive, and its answer to be taken.
const (
	readWithin  = 30 * time.Second
	writeWithin = 60 * time.Second
)

// hurry sets the ends of reading a body, if there is one, and of writing. Those who wait, or stream, set their own as they go. Where nothing is read any more
// there must be no end of it: the connection would be given up while the answer is made.
func hurry(w http.ResponseWriter, r *http.Request, long bool) {
	c := http.NewResponseController(w) // a recorder of a test has no deadlines, and its errors are nobody's
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
