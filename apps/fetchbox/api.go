package main

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/internal/keyring"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/internal/limit"
	"github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

// An api serves everything over HTTP: the API, the page, health checks and metrics.
type api struct {
	*app
	mux    *http.ServeMux
	site   http.Handler // what surrounds the mux
	feed   *sse.Handler
	health *web.Health
	keys   *keyring.Gate

	intakes   limit.AtOnce
	streaming limit.AtOnce
}

const maxStreams = 1000

// handler returns the *api of this process. The caller must call Close before it stops the server, because event streams do not end by themselves.
func (a *app) handler() (*api, error) {
	f := &api{app: a, mux: http.NewServeMux(), health: a.newHealth(), keys: keyring.NewGate()}
	var err error
	if f.feed, err = a.newFeed(); err != nil {
		return nil, err
	}
	f.mountAPI()
	f.mountHealth()
	f.mountPage()
	site := web.Site{Addr: a.set.Addr, Hosts: a.set.Hosts, TrustProxy: a.set.TrustProxy, Log: a.log, Count: a.metrics, Refused: f.refused}
	f.site = site.Handler(f.mux)
	return f, nil
}

func (f *api) mountAPI() {
	for pattern, do := range map[string]func(w http.ResponseWriter, r *http.Request, c caller) error{
		"POST /api/jobs":                                 f.submit,
		"GET /api/jobs":                                  f.list,
		"GET /api/jobs/{id}":                             f.get,
		"GET /api/jobs/{id}/resources":                   f.resources,
		"GET /api/jobs/{id}/resources/{resource}":        f.resource,
		"POST /api/jobs/{id}/resources/{resource}/retry": f.retryResource,
		"POST /api/jobs/{id}/retry":                      f.retryJob,
		"POST /api/jobs/{id}/cancel":                     f.cancelJob,
		"GET /api/jobs/{id}/results":                     f.results,
		"GET /api/jobs/{id}/events":                      f.jobEvents,
		"GET /api/events":                                f.events,
		"GET /api/dead-letters":                          f.deadLetters,
		"GET /api/dead-letters/{sequence}":               f.deadLetter,
		"GET /api/replays":                               f.listReplays,
		"POST /api/replays":                              f.startReplay,
		"POST /api/replays/{id}/cancel":                  f.cancelReplay,
		"GET /api/proxies":                               f.proxies,
		"GET /api/codes":                                 f.codes,
	} {
		f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := f.caller(w, r)
			if err == nil {
				err = do(w, r, c)
			}
			if err != nil {
				f.handleError(w, r, err)
			}
		})
	}
	f.mux.HandleFunc("/api/", f.notFound)
}

// refused answers a request that is not passed on, or that panicked.
func (f *api) refused(w http.ResponseWriter, why web.Refusal) {
	f.writeError(w, map[web.Refusal]apiError{web.OtherSite: otherSite, web.OtherHost: otherHost, web.Panicked: {code: code.SystemPanic}}[why])
}

// ServeHTTP answers a request, and logs and counts it.
func (f *api) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.site.ServeHTTP(w, r) }

// Drain makes /readyz report that the process is about to stop. Requests are still answered.
func (f *api) Drain() { f.health.Drain() }

// Close ends all event streams and refuses new ones.
func (f *api) Close() error {
	f.Drain()
	f.feed.Close()
	return nil
}

// A caller is the API key of a request.
type caller struct {
	owner string // of what it submits
	all   bool   // it sees and changes the jobs of every owner
	name  string // for the audit log
}

// scope returns the owner whose jobs the caller sees; empty: every owner's.
func (c caller) scope() string {
	if c.all {
		return ""
	}
	return c.owner
}

// caller identifies the caller by its API key. A read-only key gets an error for anything but GET and HEAD.
func (f *api) caller(w http.ResponseWriter, r *http.Request) (caller, error) {
	given := r.Header["Authorization"]
	if len(given) == 0 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="fetchbox"`)
		return caller{}, apiError{code: code.AuthMissing, line: "Send Authorization: Bearer hf_... with an API key. `fetchbox key create --name NAME` makes one."}
	}
	k, err := f.keys.Bearer(r.Context(), f.jobs, given, r.RemoteAddr)
	if err = keyError(err); err != nil {
		if errors.As(err, new(apiError)) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="fetchbox"`)
		}
		return caller{}, err
	}
	return callerOf(k, r.Method)
}

// keyError returns the answer for an error of a key.
func keyError(err error) error {
	switch {
	case errors.Is(err, keyring.ErrInvalid):
		return badKey
	case errors.Is(err, keyring.ErrTooMany):
		return tooManyBadKeys
	}
	return err
}

// callerOf returns what a key allows for a request with a method.
func callerOf(k apikey.Key, method string) (caller, error) {
	needed := apikey.Operator
	if method == http.MethodGet || method == http.MethodHead {
		needed = apikey.Viewer
	}
	if !k.Scope.Allows(needed) {
		return caller{}, apiError{code: code.AuthForbidden, line: "This API key is read-only."}
	}
	c := caller{owner: k.Owner, all: k.Scope.Allows(apikey.Admin) && k.Owner == "", name: k.Name}
	if c.owner == "" {
		c.owner = "key-" + k.ID
	}
	return c, nil
}

// An apiError is the answer to a request that cannot be served. A zero status or line is taken from the code.
type apiError struct {
	code     string
	status   int
	line     string             // the message
	after    time.Duration      // Retry-After
	problems *manifest.Problems // of a manifest
	cause    error              // for the log
}

// Error is for the log; clients see the line.
func (e apiError) Error() string {
	if e.cause != nil {
		return e.code + ": " + e.cause.Error()
	}
	return e.code + ": " + e.line
}

// Unwrap returns the cause.
func (e apiError) Unwrap() error { return e.cause }

var (
	badKey         = apiError{code: code.AuthInvalid, line: "This API key is not valid. Send Authorization: Bearer hf_... with a complete key that is not revoked or expired."}
	tooManyBadKeys = apiError{code: code.AuthInvalid, status: http.StatusTooManyRequests, line: "Too many requests with an invalid API key came from this address. Check the key and try again later.", after: 2 * time.Second}
	otherSite      = apiError{code: code.AuthForbidden, line: "This request came from another site. Open the page itself and try again."}
	otherHost      = apiError{code: code.AuthForbidden, status: http.StatusMisdirectedRequest, line: "This site does not serve that host name. If it should, set HOSTS to the name that visitors use."}
	overloaded     = apiError{code: code.SystemOverloaded, line: "Too many manifests are being received. Try again in a moment.", after: 2 * time.Second}
	tooManyStreams = apiError{code: code.SystemOverloaded, line: "Too many event streams are open.", after: 5 * time.Second}
	noSuchPath     = apiError{code: code.ValidationNotFound, line: "There is nothing at this path. The README lists the paths of the API."}
	noSuchJob      = apiError{code: code.ValidationNotFound, line: "There is no such job. Check the id; records are deleted after RETENTION_RECORD."}
)

func refusedManifest(p *manifest.Problems) apiError {
	line := strconv.Itoa(p.Count) + " problems in the manifest. Nothing was accepted."
	if p.Count == 1 {
		line = "One problem in the manifest. Nothing was accepted."
	}
	return apiError{code: p.List[0].Code, status: http.StatusUnprocessableEntity, line: line, problems: p}
}

// apiErrorOf returns the answer for any error.
func apiErrorOf(err error) apiError {
	var answer apiError
	refused := (*holdfast.Error)(nil)
	switch {
	case errors.As(err, &answer):
		return answer
	case !errors.As(err, &refused):
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return noSuchJob
	case errors.Is(err, holdfast.ErrInvalid):
		return apiError{code: code.ValidationInvalidField, line: refused.Message}
	case errors.Is(err, holdfast.ErrConflict):
		return apiError{code: code.ValidationConflict, line: refused.Message}
	case errors.Is(err, holdfast.ErrUnavailable):
		return apiError{code: code.StorageUnavailable, after: retryAfter, cause: err}
	}
	return apiError{code: code.SystemError, cause: err}
}

// apiErrorOr returns err if it is an apiError, and otherwise the other one.
func apiErrorOr(err error, otherwise apiError) error {
	if errors.As(err, new(apiError)) {
		return err
	}
	return otherwise
}

// handleError answers a request with an error. An error of the server is logged in full; the client sees one line.
func (f *api) handleError(w http.ResponseWriter, r *http.Request, err error) {
	answer := apiErrorOf(err)
	web.ReportError(w, r, f.log.With("error_code", answer.code), f.statusOf(answer), err)
	f.writeError(w, answer)
}

func (f *api) statusOf(e apiError) int {
	return orElse(e.status, code.Of(e.code).HTTPStatus)
}

// writeError writes the answer for an error.
func (f *api) writeError(w http.ResponseWriter, e apiError) {
	body := struct {
		Code     string             `json:"code"`
		Message  string             `json:"message"`
		Problems []manifest.Problem `json:"problems,omitempty"`
		Unlisted int                `json:"unlisted_problems,omitempty"`
		Request  string             `json:"request_id"`
	}{Code: e.code, Message: orElse(e.line, code.Of(e.code).Message), Request: web.ReplyOf(w).ID}
	if e.problems != nil {
		body.Problems, body.Unlisted = e.problems.List, e.problems.Count-len(e.problems.List)
	}
	web.SetRetryAfter(w, e.after)
	_ = web.WriteJSON(w, f.statusOf(e), map[string]any{"error": body}) // it always marshals
}

// notFound answers requests for unknown paths with 404, and for known paths with a wrong method with 405.
func (f *api) notFound(w http.ResponseWriter, r *http.Request) {
	allowed := web.Methods(w, r, f.mux, http.MethodGet, http.MethodPost)
	if len(allowed) == 0 {
		f.writeError(w, noSuchPath)
		return
	}
	f.writeError(w, apiError{code: code.ValidationInvalidField, status: http.StatusMethodNotAllowed, line: "Use " + strings.Join(allowed, " or ") + " for this path."})
}

// ownIntervention names the group that a caller changes.
func ownIntervention(group holdfast.ID, actor, reason string) store.Intervention {
	return store.Intervention{Group: group, Actor: actor, Reason: reason}
}
