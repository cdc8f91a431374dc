package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Problem is the body of every error answer (RFC 9457). Programs act on code; detail is for people.
type Problem struct {
	Type      string      `json:"type" doc:"Path of a page that describes this kind of problem."`
	Title     string      `json:"title" doc:"Short description of this kind of problem."`
	Status    int         `json:"status" doc:"HTTP status."`
	Detail    string      `json:"detail,omitempty" doc:"What is wrong with this request, and what to do about it."`
	Code      string      `json:"code" doc:"Kind of problem, for programs."`
	Job       holdfast.ID `json:"job,omitzero" doc:"Job that conflicts with the request."`
	Retryable bool        `json:"retryable,omitempty" doc:"The same request may succeed later."`
	After     float64     `json:"after,omitempty" doc:"Minimum number of seconds before a retry."`
	Request   string      `json:"request_id,omitempty" doc:"Id of the request, which the server's log contains."`
}

// A problemKind is one kind of problem. The list problemKinds is the only place that maps errors to HTTP.
type problemKind struct {
	kind   error
	code   string
	status int
	title  string
	remedy string // what the caller can do
}

// Errors that only a server returns.
var (
	// ErrUnauthenticated: the request has no key, or one that is not valid.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the key is valid, but does not allow this.
	ErrForbidden = errors.New("forbidden")
	// ErrTooLarge: the body is larger than the route accepts.
	ErrTooLarge = errors.New("too large")
	// ErrUnsupported: the body has a content type or encoding that the route does not accept.
	ErrUnsupported = errors.New("unsupported")
	// ErrPrecondition: the resource has changed since the caller read it. It wraps holdfast.ErrConflict, which a store would return.
	ErrPrecondition = fmt.Errorf("precondition failed: %w", holdfast.ErrConflict)
	// ErrReused: the idempotency key was used for a different request. It wraps holdfast.ErrConflict, which a store would return.
	ErrReused = fmt.Errorf("idempotency key reused: %w", holdfast.ErrConflict)
	// ErrMethod: the path exists, but not with this method.
	ErrMethod = errors.New("method not allowed")
	// ErrInternal: a fault of the server. Its log has the cause under the request id.
	ErrInternal = errors.New("internal")
)

var problemKinds = []problemKind{
	{ErrUnauthenticated, "unauthenticated", http.StatusUnauthorized, "An API key is required", "Send an API key in the header: Authorization: Bearer hf_... Create the first one on the machine of the store, with: holdfast keys create."},
	{ErrForbidden, "forbidden", http.StatusForbidden, "The API key does not allow this", "Use a key whose scope allows the operation. A key that is bound to an owner can only access that owner's jobs and groups. The detail names what is missing."},
	{ErrTooLarge, "too_large", http.StatusRequestEntityTooLarge, "The request body is too large", "Send less at a time. The detail names the maximum. To enqueue many jobs, send NDJSON to /v1/jobs/bulk."},
	{ErrUnsupported, "unsupported", http.StatusUnsupportedMediaType, "The content type or encoding is not supported", "Send uncompressed JSON with the header Content-Type: application/json. The bulk route also accepts application/x-ndjson."},
	{ErrPrecondition, "precondition_failed", http.StatusPreconditionFailed, "The resource has changed since you read it", "Read it again, check what has changed, and send the new ETag as If-Match."},
	{ErrReused, "idempotency_key_reused", http.StatusUnprocessableEntity, "The idempotency key was used for a different request", "Use a new key for a new request. A repeated request needs the same key and the same body."},
	{ErrMethod, "method_not_allowed", http.StatusMethodNotAllowed, "The method is not allowed", "Use one of the methods in the header Allow."},
	{holdfast.ErrPurged, "purged", http.StatusGone, "The job was deleted by retention", "Only its tombstone is left: GET /v1/tombstones, or holdfast retention tombstones."},
	{holdfast.ErrNotFound, "not_found", http.StatusNotFound, "Not found", "Check the id or the name. Jobs and groups of other owners are answered in the same way."},
	{holdfast.ErrLeaseLost, "lease_lost", http.StatusConflict, "The lease on the job is lost", "Stop working on the job: another worker holds it, or it has ended. What you send about it changes nothing."},
	{holdfast.ErrConflict, "conflict", http.StatusConflict, "The request conflicts with the present state", "The detail says what conflicts, and the field job names the job if it is one. Read it, then decide again."},
	{holdfast.ErrThrottled, "throttled", http.StatusTooManyRequests, "Too many requests", "Wait for the time in the header Retry-After. Limits apply to each key."},
	{holdfast.ErrUnavailable, "unavailable", http.StatusServiceUnavailable, "The service is unavailable", "Send the request again after the time in the header Retry-After. A refused request has changed nothing."},
	{holdfast.ErrInvalid, "invalid", http.StatusBadRequest, "The request is not valid", "The detail names the field and what is allowed. The same request fails again."},
	{ErrInternal, "internal", http.StatusInternalServerError, "Internal server error", "Give the request id to the operator of the server: the log has the cause under it."},
}

// internalDetail is the detail of every internal error: the cause may contain anything, so only the log has it.
const internalDetail = "a fault of the server: its log has the cause under the request id"

// ProblemPage is the text behind a problem's type: what it means and what to do. ok is false when no problem has the code.
func ProblemPage(code string) (text string, ok bool) {
	for _, t := range problemKinds {
		if t.code == code {
			return fmt.Sprintf("%s\n\nCode %s, HTTP status %d %s.\n\n%s\n", t.title, t.code, t.status, http.StatusText(t.status), t.remedy), true
		}
	}
	return "", false
}

// ProblemOf returns the problem for an error. The message of an error of unknown kind is not shown: it becomes an internal problem.
func ProblemOf(err error) *Problem {
	t := problemKinds[len(problemKinds)-1]
	for _, known := range problemKinds {
		if errors.Is(err, known.kind) {
			t = known
			break
		}
	}
	p := &Problem{Type: "/problems/" + t.code, Title: t.title, Status: t.status, Code: t.code}
	p.Retryable = t.kind == holdfast.ErrThrottled || t.kind == holdfast.ErrUnavailable
	if t.kind == ErrInternal {
		p.Detail = internalDetail
		return p
	}
	p.Detail = Clean(err.Error())
	if herr := (*holdfast.Error)(nil); errors.As(err, &herr) {
		p.Job, p.After = herr.Job, herr.RetryAfter.Seconds()
	}
	if p.Retryable && p.After == 0 {
		p.After = 1
	}
	return p
}

// Err turns a problem back into an error, for clients. The kind of the error is the one that the code stands for.
func (p *Problem) Err() error {
	if p == nil {
		return nil
	}
	kind := error(ErrInternal)
	for _, known := range problemKinds {
		if known.code == p.Code {
			kind = known.kind
		}
	}
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return &holdfast.Error{Err: kind, Message: message, Job: p.Job, RetryAfter: time.Duration(p.After * float64(time.Second))}
}

// RetryAfter is the value of the header Retry-After: whole seconds, at least one; 0 when the problem has none.
func (p *Problem) RetryAfter() int { return int(math.Ceil(p.After)) }

// Problems returns one problem for each error; nil for nil.
func Problems(errs []error) []*Problem {
	told := make([]*Problem, len(errs))
	for i, err := range errs {
		if err != nil {
			told[i] = ProblemOf(err)
		}
	}
	return told
}

// Errs is the reverse of Problems.
func Errs(told []*Problem) []error {
	errs := make([]error, len(told))
	for i, p := range told {
		errs[i] = p.Err()
	}
	return errs
}
