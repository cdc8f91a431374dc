package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Problem is an answer that is none, by RFC 9457. Code is what programs go by; Detail tells a person what to do.
type Problem struct {
	Type      string      `json:"type"`
	Title     string      `json:"title"`
	Status    int         `json:"status"`
	Detail    string      `json:"detail,omitempty"`
	Code      string      `json:"code"`
	Job       holdfast.ID `json:"job,omitzero"`         // the job that stands in the way
	Retryable bool        `json:"retryable,omitempty"`  // asking again without a change may help
	After     float64     `json:"after,omitempty"`      // not sooner than in so many seconds
	Request   string      `json:"request_id,omitempty"` // for whoever looks into the log
}

// A trouble is one of the things that can go wrong. This is the only table of them that speaks HTTP.
type trouble struct {
	kind   error
	code   string
	status int
	title  string
	remedy string // what whoever meets it can do
}

// Errors that only a server has.
var (
	// ErrUnauthenticated: no key, or one that is not good.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the key is good, and may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrTooLarge: more was sent than is taken.
	ErrTooLarge = errors.New("too large")
	// ErrUnsupported: a body in a form that nobody here reads.
	ErrUnsupported = errors.New("unsupported")
	// ErrPrecondition: it is not as the asker saw it. It is a conflict, as stores see it.
	ErrPrecondition = fmt.Errorf("precondition failed: %w", holdfast.ErrConflict)
	// ErrReused: an idempotency key was used for something else before. It is a conflict, as stores see it.
	ErrReused = fmt.Errorf("idempotency key reused: %w", holdfast.ErrConflict)
	// ErrMethod: there is such a path, and not with this method.
	ErrMethod = errors.New("method not allowed")
	// ErrInternal: it is our fault. The log knows more, by the request's id.
	ErrInternal = errors.New("internal")
)

var troubles = []trouble{
	{ErrUnauthenticated, "unauthenticated", http.StatusUnauthorized, "A key is needed", "Send a key: Authorization: Bearer hf_... The first one is made beside the store, with holdfast keys create."},
	{ErrForbidden, "forbidden", http.StatusForbidden, "This key may not do that", "Use a key whose scope allows it, and whose owner it is bound to, if any. The detail names what is missing."},
	{ErrTooLarge, "too_large", http.StatusRequestEntityTooLarge, "Too much was sent", "Send less at once. The detail names the limit; jobs in great numbers travel as NDJSON to /v1/jobs/bulk."},
	{ErrUnsupported, "unsupported", http.StatusUnsupportedMediaType, "The body has a form that is not read here", "Send JSON, not packed, and say so: Content-Type: application/json. Bulk may be application/x-ndjson."},
	{ErrPrecondition, "precondition_failed", http.StatusPreconditionFailed, "It has changed since", "Read it again, look at what changed, and send the new ETag as If-Match."},
	{ErrReused, "idempotency_key_reused", http.StatusUnprocessableEntity, "The idempotency key was used for something else", "Take a new key for a new request; the same key belongs to the same body."},
	{ErrMethod, "method_not_allowed", http.StatusMethodNotAllowed, "Not with this method", "The header Allow says which methods there are."},
	{holdfast.ErrPurged, "purged", http.StatusGone, "It was deleted by retention", "What is left of it is its tombstone: GET /v1/tombstones, or holdfast retention tombstones."},
	{holdfast.ErrNotFound, "not_found", http.StatusNotFound, "There is no such thing", "Look at the id or the name. What belongs to somebody else answers the same."},
	{holdfast.ErrLeaseLost, "lease_lost", http.StatusConflict, "The job is in other hands", "Drop what you hold of the job: another worker has it, or it has ended. What you say about it changes nothing."},
	{holdfast.ErrConflict, "conflict", http.StatusConflict, "What is there stands against it", "The detail says what stands against it and names the job, if one does. Look at it, then decide."},
	{holdfast.ErrThrottled, "throttled", http.StatusTooManyRequests, "Too often", "Wait for as long as Retry-After says. Limits are per key."},
	{holdfast.ErrUnavailable, "unavailable", http.StatusServiceUnavailable, "Not now", "Ask again after Retry-After. Nothing of a refused request was done."},
	{holdfast.ErrInvalid, "invalid", http.StatusBadRequest, "The request makes no sense as it stands", "The detail names the field and what is allowed. Asking again without a change does not help."},
	{ErrInternal, "internal", http.StatusInternalServerError, "Something is broken here", "Give the request id to whoever runs the server: its log says more under it."},
}

// internal is told where nobody knows better: what lies underneath is for the log.
const internalDetail = "this is a fault of the server; its log says more under the request's id"

// ProblemPage is what the type of a problem leads to: what it means, and what can be done. False when there is no problem of that code.
func ProblemPage(code string) (text string, ok bool) {
	for _, t := range troubles {
		if t.code == code {
			return fmt.Sprintf("%s\n\nCode %s, HTTP status %d %s.\n\n%s\n", t.title, t.code, t.status, http.StatusText(t.status), t.remedy), true
		}
	}
	return "", false
}

// ProblemOf tells an error over HTTP. What is not known to be safe to tell is told as internal.
func ProblemOf(err error) *Problem {
	t := troubles[len(troubles)-1]
	for _, known := range troubles {
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
	p.Detail = clean(err.Error())
	if said := (*holdfast.Error)(nil); errors.As(err, &said) {
		p.Job, p.After = said.Job, said.RetryAfter.Seconds()
	}
	if p.Retryable && p.After == 0 {
		p.After = 1
	}
	return p
}

// Err is the error that a problem tells of, on the other side.
func (p *Problem) Err() error {
	if p == nil {
		return nil
	}
	kind := error(ErrInternal)
	for _, known := range troubles {
		if known.code == p.Code {
			kind = known.kind
		}
	}
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return &holdfast.Error{Kind: kind, Message: message, Job: p.Job, RetryAfter: time.Duration(p.After * float64(time.Second))}
}

// RetryAfter is what the header of that name says: whole seconds, at least one; 0 when the problem says nothing.
func (p *Problem) RetryAfter() int { return int(math.Ceil(p.After)) }

// Problems tell what became of each of many; nil where all is well.
func Problems(errs []error) []*Problem {
	told := make([]*Problem, len(errs))
	for i, err := range errs {
		if err != nil {
			told[i] = ProblemOf(err)
		}
	}
	return told
}

// Errs are the errors that problems tell of.
func Errs(told []*Problem) []error {
	errs := make([]error, len(told))
	for i, p := range told {
		errs[i] = p.Err()
	}
	return errs
}
